// Parses character classes and escapes of RE2.

extension RE2Pattern {
  /// Reads `[…]`.
  mutating func characterClass() throws(PatternError) -> UnitSet {
    let start = offset
    offset += 1
    let isNegated = accept("^")
    var ranges: [ClosedRange<UInt32>] = []
    var isFirst = true
    while isFirst || peek != "]" {
      guard let next = peek else { throw .syntax(offset: start, message: "a '[' without its ']'") }
      isFirst = false
      try spend(16)
      if next == "[", let set = try namedClass() {
        try spend(set.ranges.count)
        ranges += set.ranges
        continue
      }
      if next == "\\" { try spend(128) }
      if next == "\\", let set = try classEscape() {
        ranges += set.ranges
        continue
      }
      let first = try classCharacter()
      guard peek == "-", offset + 1 < scalars.count, scalars[offset + 1] != "]" else {
        ranges.append(first.value...first.value)
        continue
      }
      offset += 1
      let last = try classCharacter()
      guard first.value <= last.value else { throw error("a range ends before it starts") }
      ranges.append(first.value...last.value)
    }
    offset += 1
    // The cost of sorting the ranges in the set.
    try spend(8 * ranges.count)
    var set = UnitSet(ranges)
    if flags.ignoresCase { set = try closedUnderCase(set) }
    return isNegated ? set.inverted(upTo: Self.maximumUnit) : set
  }

  private mutating func classCharacter() throws(PatternError) -> Unicode.Scalar {
    guard let next = peek else { throw error("a '[' without its ']'") }
    if next == "\\" { return try characterEscape() }
    offset += 1
    return next
  }

  /// Reads `[:name:]` inside a class; nil if the bracket is literal.
  private mutating func namedClass() throws(PatternError) -> UnitSet? {
    guard offset + 1 < scalars.count, scalars[offset + 1] == ":" else { return nil }
    var index = offset + 2
    var name = ""
    while index + 1 < scalars.count, !(scalars[index] == ":" && scalars[index + 1] == "]") {
      name.unicodeScalars.append(scalars[index])
      index += 1
    }
    try spend(index - offset)
    guard index + 1 < scalars.count else { return nil }
    let isNegated = name.hasPrefix("^")
    guard let set = Self.namedClasses[isNegated ? String(name.dropFirst()) : name] else {
      throw error("unknown class [:\(name):]")
    }
    offset = index + 2
    return isNegated ? set.inverted(upTo: Self.maximumUnit) : set
  }

  private static let digit = UnitSet([0x30...0x39])
  private static let space = UnitSet([0x09...0x0A, 0x0C...0x0D, 0x20...0x20])
  private static let word = UnitSet([0x30...0x39, 0x41...0x5A, 0x5F...0x5F, 0x61...0x7A])

  private static let namedClasses: [String: UnitSet] = [
    "alnum": UnitSet([0x30...0x39, 0x41...0x5A, 0x61...0x7A]),
    "alpha": UnitSet([0x41...0x5A, 0x61...0x7A]),
    "ascii": UnitSet([0x00...0x7F]),
    "blank": UnitSet([0x09...0x09, 0x20...0x20]),
    "cntrl": UnitSet([0x00...0x1F, 0x7F...0x7F]),
    "digit": digit,
    "graph": UnitSet([0x21...0x7E]),
    "lower": UnitSet([0x61...0x7A]),
    "print": UnitSet([0x20...0x7E]),
    "punct": UnitSet([0x21...0x2F, 0x3A...0x40, 0x5B...0x60, 0x7B...0x7E]),
    "space": UnitSet([0x09...0x0D, 0x20...0x20]),
    "upper": UnitSet([0x41...0x5A]),
    "word": word,
    "xdigit": UnitSet([0x30...0x39, 0x41...0x46, 0x61...0x66]),
  ]

  /// Reads `\d`, `\pL`, `\p{Greek}` and the like; nil if the escape names a character.
  mutating func classEscape() throws(PatternError) -> UnitSet? {
    for (name, set) in [("d", Self.digit), ("s", Self.space), ("w", Self.word)] {
      if accept("\\" + name) { return set }
      if accept("\\" + name.uppercased()) { return set.inverted(upTo: Self.maximumUnit) }
    }
    var isNegated = accept("\\P")
    guard isNegated || accept("\\p") else { return nil }
    var name = ""
    if accept("{") {
      if accept("^") { isNegated.toggle() }
      while let next = peek, next != "}" {
        name.unicodeScalars.append(next)
        offset += 1
      }
      guard accept("}") else { throw error("a '}' is missing") }
    } else if let next = peek {
      name = String(next)
      offset += 1
    }
    guard var set = UnicodeSets.named(name) else { throw error("unknown Unicode class '\(name)'") }
    try spend(4 * set.ranges.count)
    if flags.ignoresCase { set = try closedUnderCase(set) }
    return isNegated ? set.inverted(upTo: Self.maximumUnit) : set
  }

  /// Reads an escape that names one character.
  mutating func characterEscape() throws(PatternError) -> Unicode.Scalar {
    offset += 1
    guard let next = peek else { throw error("a '\\' at the end") }
    offset += 1
    switch next {
    case "a": return "\u{07}"
    case "f": return "\u{0C}"
    case "n": return "\n"
    case "r": return "\r"
    case "t": return "\t"
    case "v": return "\u{0B}"
    case "x": return try hexadecimal()
    case "0": return octal(UInt32(0), digits: 2)
    case "1"..."7":
      // One digit is a back-reference, which RE2 does not have.
      guard let following = peek, ("0"..."7").contains(following) else { break }
      return octal(next.value - 0x30, digits: 2)
    default:
      let isLetterOrDigit = next.properties.isAlphabetic || ("0"..."9").contains(next)
      if next.isASCII, !isLetterOrDigit { return next }
    }
    offset -= 1
    throw error("unknown escape '\\\(String(next))'")
  }

  private mutating func octal(_ first: UInt32, digits: Int) -> Unicode.Scalar {
    var value = first
    for _ in 0..<digits {
      guard let next = peek, ("0"..."7").contains(next) else { break }
      value = value * 8 + next.value - 0x30
      offset += 1
    }
    return Unicode.Scalar(value) ?? "\u{FFFD}"
  }

  private mutating func hexadecimal() throws(PatternError) -> Unicode.Scalar {
    var digits = ""
    let isBraced = accept("{")
    while let next = peek, next.isASCII, next.properties.isASCIIHexDigit, isBraced || digits.utf8.count < 2 {
      digits.unicodeScalars.append(next)
      offset += 1
    }
    guard !isBraced || accept("}"), isBraced || digits.utf8.count == 2,
      let value = UInt32(digits, radix: 16), let scalar = Unicode.Scalar(value)
    else { throw error("a code point is two hexadecimal digits, or some in braces") }
    return scalar
  }
}
