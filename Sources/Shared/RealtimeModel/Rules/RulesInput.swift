// Reads the tokens of a rules file: strings, words, brackets and comments.
//
// Invariant: `offset <= bytes.count`, and each index is checked against `bytes.count` before the byte is read.

/// A string of a rules file, with the offset of each of its bytes in the file.
struct RulesString {
  fileprivate(set) var bytes: [UInt8] = []
  private var offsets: [Int] = []
  private var end = 0

  var string: String { String(decoding: bytes, as: UTF8.self) }

  /// The offset in the file of a byte of the string, or of its end.
  func offset(of index: Int) -> Int { offsets.indices.contains(index) ? offsets[index] : end }

  fileprivate mutating func append(_ byte: UInt8, at offset: Int) {
    bytes.append(byte)
    offsets.append(offset)
  }

  fileprivate mutating func finish(at offset: Int) { end = offset }
}

/// Reads the tokens of a rules file.
struct RulesInput {
  typealias ParseError = RulesReader.ParseError

  private let bytes: [UInt8]
  private(set) var offset = 0
  private var levels = 0
  /// Whether the innermost object or array was just opened, so that its first member is next.
  private var isFirst = false

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// The next byte; nil at the end.
  var peek: UInt8? { offset < bytes.count ? bytes[offset] : nil }

  private func byte(_ ahead: Int) -> UInt8? { offset + ahead < bytes.count ? bytes[offset + ahead] : nil }

  func unexpected(_ expected: String) -> ParseError {
    ParseError(offset: offset, message: "Parse error: expected \(expected).")
  }

  /// Skips white space and comments.
  mutating func skipSpace() throws(ParseError) {
    while let next = peek {
      switch next {
      case 0x20, 0x09, 0x0A, 0x0D: offset += 1
      case UInt8(ascii: "/"):
        if byte(1) == UInt8(ascii: "/") {
          while let next = peek, next != 0x0A { offset += 1 }
        } else if byte(1) == UInt8(ascii: "*") {
          try skipBlock()
        } else {
          throw unexpected("a value or a comment")
        }
      default: return
      }
    }
  }

  private mutating func skipBlock() throws(ParseError) {
    let start = offset
    offset += 2
    while peek != nil {
      if peek == UInt8(ascii: "*"), byte(1) == UInt8(ascii: "/") {
        offset += 2
        return
      }
      offset += 1
    }
    throw ParseError(offset: start, message: "Parse error: the comment does not end.")
  }

  mutating func expect(_ byte: UInt8) throws(ParseError) {
    guard peek == byte else { throw unexpected("'\(Character(UnicodeScalar(byte)))'") }
    offset += 1
  }

  /// Opens an object or array, which ``next(before:)`` reads.
  mutating func open() throws(ParseError) {
    guard levels < RulesFile.maximumLevels else {
      throw ParseError(offset: offset, message: "Rules may have at most \(RulesFile.maximumLevels) levels.")
    }
    offset += 1
    levels += 1
    isFirst = true
  }

  /// Advances to the next member; consumes the closing byte and returns false at the end.
  mutating func next(before closing: UInt8) throws(ParseError) -> Bool {
    try skipSpace()
    if !isFirst, peek != closing {
      guard peek == UInt8(ascii: ",") else {
        throw unexpected("',' or '\(Character(UnicodeScalar(closing)))'")
      }
      offset += 1
      try skipSpace()
    }
    if peek == closing {
      offset += 1
      levels -= 1
      isFirst = false
      return false
    }
    isFirst = false
    if closing == UInt8(ascii: "}"), peek != UInt8(ascii: "\"") { throw unexpected("a name in quotes") }
    return true
  }

  /// Reads a JSON literal or number unchanged.
  mutating func readWord() throws(ParseError) -> String {
    let start = offset
    while let next = peek {
      switch next {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "+"), UInt8(ascii: "."):
        offset += 1
        continue
      default: break
      }
      break
    }
    let word = String(decoding: bytes[start..<offset], as: UTF8.self)
    if let first = word.utf8.first, (0x30...0x39).contains(first) || first == UInt8(ascii: "-") {
      return word
    }
    if word == "true" || word == "false" || word == "null" { return word }
    throw ParseError(offset: start, message: "Parse error: expected a value.")
  }

  // MARK: Strings

  mutating func readString() throws(ParseError) -> RulesString {
    let start = offset
    try expect(UInt8(ascii: "\""))
    var text = RulesString()
    while let next = peek {
      switch next {
      case UInt8(ascii: "\""):
        text.finish(at: offset)
        offset += 1
        return text
      case UInt8(ascii: "\\"): try readEscape(into: &text)
      case 0x09, 0x0A, 0x0D, 0x20...:
        text.append(next, at: offset)
        offset += 1
      default: throw ParseError(offset: offset, message: "Parse error: a control character in a string.")
      }
    }
    throw ParseError(offset: start, message: "Parse error: the string does not end.")
  }

  private mutating func readEscape(into text: inout RulesString) throws(ParseError) {
    let start = offset
    let plain: UInt8
    switch byte(1) {
    case UInt8(ascii: "\""): plain = UInt8(ascii: "\"")
    case UInt8(ascii: "\\"): plain = UInt8(ascii: "\\")
    case UInt8(ascii: "/"): plain = UInt8(ascii: "/")
    case UInt8(ascii: "b"): plain = 0x08
    case UInt8(ascii: "f"): plain = 0x0C
    case UInt8(ascii: "n"): plain = 0x0A
    case UInt8(ascii: "r"): plain = 0x0D
    case UInt8(ascii: "t"): plain = 0x09
    case UInt8(ascii: "u"):
      for byte in String(try readScalar()).utf8 { text.append(byte, at: start) }
      return
    default: throw ParseError(offset: offset, message: "Parse error: an escape that JSON does not know.")
    }
    text.append(plain, at: start)
    offset += 2
  }

  private mutating func readScalar() throws(ParseError) -> Character {
    let start = offset
    let invalid = ParseError(offset: start, message: "Parse error: \\u needs the four digits of a character.")
    guard let first = hexadecimal() else { throw invalid }
    if let scalar = UnicodeScalar(first) { return Character(scalar) }
    guard first < 0xDC00, let second = hexadecimal(), 0xDC00...0xDFFF ~= second,
      let scalar = UnicodeScalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
    else { throw invalid }
    return Character(scalar)
  }

  /// Reads `\uXXXX`; nil if the input continues otherwise.
  private mutating func hexadecimal() -> UInt32? {
    guard byte(0) == UInt8(ascii: "\\"), byte(1) == UInt8(ascii: "u") else { return nil }
    var value: UInt32 = 0
    for ahead in 2..<6 {
      switch byte(ahead) {
      case .some(let digit) where (0x30...0x39).contains(digit): value = value << 4 | UInt32(digit - 0x30)
      case .some(let digit) where (0x61...0x66).contains(digit | 0x20):
        value = value << 4 | UInt32((digit | 0x20) - 0x57)
      default: return nil
      }
    }
    offset += 6
    return value
  }
}
