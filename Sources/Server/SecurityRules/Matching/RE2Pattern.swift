// Parses the regular expressions of Firestore rules: the syntax of RE2 over Unicode code points.
//
// Look-around and back-references do not exist. As in RE2, a quantifier may not follow a quantifier, a repetition
// counts to 1000 at most, and `{` that begins no repetition is literal.

/// Parses one regular expression in the syntax of RE2.
package struct RE2Pattern {
  /// The largest number in a counted repetition.
  package static let maximumRepetition = 1000
  /// The deepest nesting of groups.
  package static let maximumLevels = 200
  /// The largest code point.
  static let maximumUnit: UInt32 = 0x10FFFF

  /// The flags in force at a position of the pattern.
  struct Flags {
    /// `i`: letters match both cases.
    var ignoresCase = false
    /// `m`: `^` and `$` match at line feeds.
    var isMultiline = false
    /// `s`: `.` matches a line feed.
    var dotMatchesLineFeed = false
    /// `U`: quantifiers prefer fewer repetitions.
    var isUngreedy = false
  }

  private(set) var scalars: [Unicode.Scalar]
  var offset = 0
  var flags = Flags()
  private var levels = 0
  private var groupCount = 0
  private var groupNames = Set<String>()
  private var budget: PatternBudget

  /// Compiles a regular expression.
  ///
  /// - Parameters:
  ///   - matchesCompleteText: whether a match must cover the complete text.
  ///   - budget: the steps that remain; compiling a text from a request spends them.
  /// - Throws: ``PatternError`` with the offset in code points.
  package static func compile(
    _ text: String, matchesCompleteText: Bool, budget: inout PatternBudget
  ) throws(PatternError) -> Pattern {
    var parser = RE2Pattern(scalars: [], budget: budget)
    defer { budget = parser.budget }
    try parser.spend(text.utf8.count)
    parser.scalars = Array(text.unicodeScalars)
    let node = try parser.alternatives()
    guard parser.peek == nil else { throw parser.error("a ')' without its '('") }
    let complete: PatternNode =
      matchesCompleteText ? .concatenation([.assertion(.textStart), node, .assertion(.textEnd)]) : node
    return try Pattern(complete, budget: &parser.budget)
  }

  /// Compiles a regular expression of a trusted author.
  ///
  /// - Parameter matchesCompleteText: whether a match must cover the complete text.
  /// - Throws: ``PatternError`` with the offset in code points.
  package static func compile(_ text: String, matchesCompleteText: Bool) throws(PatternError) -> Pattern {
    var budget = PatternBudget.unlimited
    return try compile(text, matchesCompleteText: matchesCompleteText, budget: &budget)
  }

  private init(scalars: [Unicode.Scalar], budget: PatternBudget) {
    self.scalars = scalars
    self.budget = budget
  }

  /// Spends steps on parsing.
  mutating func spend(_ count: Int) throws(PatternError) {
    do { try budget.spend(count) } catch { throw .exhausted }
  }

  // MARK: Reading

  var peek: Unicode.Scalar? { offset < scalars.count ? scalars[offset] : nil }

  mutating func accept(_ scalar: Unicode.Scalar) -> Bool {
    guard peek == scalar else { return false }
    offset += 1
    return true
  }

  mutating func accept(_ text: String) -> Bool {
    let wanted = Array(text.unicodeScalars)
    guard offset + wanted.count <= scalars.count, Array(scalars[offset..<(offset + wanted.count)]) == wanted
    else { return false }
    offset += wanted.count
    return true
  }

  func error(_ message: String) -> PatternError { .syntax(offset: offset, message: message) }

  // MARK: Structure

  private mutating func alternatives() throws(PatternError) -> PatternNode {
    let outer = flags
    defer { flags = outer }
    var branches = [try sequence()]
    while accept("|") { branches.append(try sequence()) }
    return branches.count == 1 ? branches[0] : .alternation(branches)
  }

  private mutating func sequence() throws(PatternError) -> PatternNode {
    var nodes: [PatternNode] = []
    while let next = peek, next != "|", next != ")" {
      if accept("\\Q") {
        nodes += try quotedText()
        if let last = nodes.popLast() { nodes.append(try quantified(last)) }
        continue
      }
      guard let atom = try atom(next) else { continue }
      nodes.append(try quantified(atom))
    }
    return nodes.count == 1 ? nodes[0] : nodes.isEmpty ? .empty : .concatenation(nodes)
  }

  /// Reads literal text up to `\E` or the end. A quantifier after it applies to its last character.
  private mutating func quotedText() throws(PatternError) -> [PatternNode] {
    var nodes: [PatternNode] = []
    while let next = peek, !accept("\\E") {
      try spend(32)
      offset += 1
      nodes.append(.set(try literal(next)))
    }
    return nodes
  }

  /// Reads one atom. A group that only sets flags yields nil.
  private mutating func atom(_ next: Unicode.Scalar) throws(PatternError) -> PatternNode? {
    try spend(next == "\\" ? 128 : 32)
    switch next {
    case "(": return try group()
    case "[":
      return .set(try characterClass())
    case ".":
      offset += 1
      let lineFeed = UnitSet(0x0A)
      return .set(
        flags.dotMatchesLineFeed
          ? UnitSet(CollectionOfOne(0...Self.maximumUnit)) : lineFeed.inverted(upTo: Self.maximumUnit))
    case "^":
      offset += 1
      return .assertion(flags.isMultiline ? .lineStart : .textStart)
    case "$":
      offset += 1
      return .assertion(flags.isMultiline ? .lineEnd : .textEnd)
    case "*", "+", "?": throw error("a quantifier without an expression before it")
    case "\\": return try escapedAtom()
    default:
      if next == "{", repetitionCounts() != nil {
        throw error("a quantifier without an expression before it")
      }
      offset += 1
      return .set(try literal(next))
    }
  }

  private mutating func escapedAtom() throws(PatternError) -> PatternNode {
    for (text, assertion) in [
      ("\\A", PatternAssertion.textStart), ("\\z", .textEnd), ("\\b", .wordBoundary),
      ("\\B", .notWordBoundary),
    ] where accept(text) { return .assertion(assertion) }
    if let set = try classEscape() { return .set(set) }
    return .set(try literal(try characterEscape()))
  }

  // MARK: Groups

  private mutating func group() throws(PatternError) -> PatternNode? {
    let start = offset
    guard levels < Self.maximumLevels else {
      throw error("groups may lie at most \(Self.maximumLevels) levels deep")
    }
    offset += 1
    let outer = flags
    var isCapturing = true
    if accept("?P<") || accept("?<") {
      try groupName()
    } else if accept("?") {
      isCapturing = false
      try groupFlags()
      if accept(")") { return nil }
      guard accept(":") else { throw error("unknown group") }
    }
    if isCapturing { groupCount += 1 }
    let number = groupCount
    levels += 1
    let node = try alternatives()
    levels -= 1
    guard accept(")") else { throw .syntax(offset: start, message: "a '(' without its ')'") }
    flags = outer
    return isCapturing ? .group(node, number: number) : node
  }

  private mutating func groupName() throws(PatternError) {
    var name = ""
    while let next = peek, next != ">" {
      guard next.isASCII, next == "_" || next.properties.isAlphabetic || ("0"..."9").contains(next) else {
        throw error("a group's name has letters, digits and '_'")
      }
      name.unicodeScalars.append(next)
      offset += 1
    }
    guard accept(">"), !name.isEmpty else { throw error("a group's name is missing") }
    guard groupNames.insert(name).inserted else { throw error("a group's name is used twice") }
  }

  private mutating func groupFlags() throws(PatternError) {
    var isOn = true
    var isComplete = false
    while let next = peek, next != ":", next != ")" {
      switch next {
      case "i": flags.ignoresCase = isOn
      case "m": flags.isMultiline = isOn
      case "s": flags.dotMatchesLineFeed = isOn
      case "U": flags.isUngreedy = isOn
      case "-" where isOn:
        isOn = false
        isComplete = false
        offset += 1
        continue
      default: throw error("unknown flag or group")
      }
      isComplete = true
      offset += 1
    }
    guard peek != nil, isComplete || (isOn && peek == ":") else { throw error("a flag is missing") }
  }

  // MARK: Quantifiers

  private mutating func quantified(_ atom: PatternNode) throws(PatternError) -> PatternNode {
    guard let (minimum, maximum) = try quantifier() else { return atom }
    let isLazy = accept("?")
    if peek == "*" || peek == "+" || peek == "?" || (peek == "{" && repetitionCounts() != nil) {
      throw error("a quantifier may not follow a quantifier")
    }
    return .repetition(atom, minimum: minimum, maximum: maximum, isGreedy: isLazy == flags.isUngreedy)
  }

  private mutating func quantifier() throws(PatternError) -> (Int, Int?)? {
    if accept("*") { return (0, nil) }
    if accept("+") { return (1, nil) }
    if accept("?") { return (0, 1) }
    guard peek == "{", let counts = repetitionCounts() else { return nil }
    guard counts.maximum ?? counts.minimum >= counts.minimum,
      max(counts.minimum, counts.maximum ?? 0) <= Self.maximumRepetition
    else { throw error("a repetition of more than \(Self.maximumRepetition) times, or a descending one") }
    offset = counts.end
    return (counts.minimum, counts.maximum)
  }

  /// The counts of `{n}`, `{n,}` or `{n,m}` at the current position; nil for anything else.
  private func repetitionCounts() -> (minimum: Int, maximum: Int?, end: Int)? {
    var index = offset + 1
    func number() -> Int? {
      var value: Int?
      while index < scalars.count, let digit = Int(String(scalars[index])), scalars[index].isASCII {
        value = min((value ?? 0) * 10 + digit, 1 << 20)
        index += 1
      }
      return value
    }
    guard let minimum = number(), index < scalars.count else { return nil }
    var maximum: Int? = minimum
    if scalars[index] == "," {
      index += 1
      maximum = number()
    }
    guard index < scalars.count, scalars[index] == "}" else { return nil }
    return (minimum, maximum, index + 1)
  }

  /// The set of a literal character under the flags in force.
  private mutating func literal(_ scalar: Unicode.Scalar) throws(PatternError) -> UnitSet {
    let set = UnitSet(scalar.value)
    return flags.ignoresCase ? try closedUnderCase(set) : set
  }

  /// A set, extended by the other cases of its letters.
  mutating func closedUnderCase(_ set: UnitSet) throws(PatternError) -> UnitSet {
    // Beyond ASCII all letters with two cases are compared with the set.
    let isASCII = (set.ranges.last?.upperBound ?? 0) < 0x80
    try spend(isASCII ? 16 : 8_000 + 8 * set.ranges.count)
    return UnicodeSets.closedUnderCase(set)
  }
}
