// Splits a rule expression of the Realtime Database into tokens.
//
// A slash is an operator or starts a regular expression. Only the parser can distinguish the two: it calls
// `readPattern()` where an operand must begin.
//
// Invariant: `offset <= bytes.count`, and every access to a byte is preceded by that check.

/// A token of an expression.
enum RealtimeToken: Hashable, Sendable {
  case end
  /// A name. `true`, `false` and `null` have the same form.
  case name(String)
  /// A wildcard's name, with its `$`.
  case wildcard(String)
  case number(Double)
  case string(String)
  case symbol(RealtimeSymbol)
}

/// An operator or a bracket.
enum RealtimeSymbol: String, Hashable, Sendable, CaseIterable {
  // Longer symbols precede their prefixes.
  case strictEqual = "==="
  case strictUnequal = "!=="
  case equal = "=="
  case unequal = "!="
  case lessOrEqual = "<="
  case greaterOrEqual = ">="
  case and = "&&"
  case or = "||"
  case less = "<"
  case greater = ">"
  case plus = "+"
  case minus = "-"
  case star = "*"
  case slash = "/"
  case percent = "%"
  case not = "!"
  case question = "?"
  case colon = ":"
  case openParenthesis = "("
  case closeParenthesis = ")"
  case openBracket = "["
  case closeBracket = "]"
  case dot = "."
  case comma = ","
}

/// Reads the tokens of an expression, one ahead.
struct RealtimeLexer {
  private let bytes: [UInt8]
  private var offset = 0
  /// The next token.
  private(set) var current = RealtimeToken.end
  /// The offset of the next token.
  private(set) var start = 0
  /// The end offset of the token before the next one.
  private(set) var previousEnd = 0

  init(_ text: String) { bytes = Array(text.utf8) }

  private func byte(_ ahead: Int = 0) -> UInt8? {
    offset + ahead < bytes.count ? bytes[offset + ahead] : nil
  }

  /// A fault that reports the next token where another was expected.
  func unexpected(_ expected: String) -> RealtimeFault {
    guard current != .end else {
      return RealtimeFault(offset: start, message: "Parse error: expected \(expected), found the end.")
    }
    let found = String(decoding: bytes[start..<max(start, offset)].prefix(40), as: UTF8.self)
    return RealtimeFault(offset: start, message: "Parse error: expected \(expected), found '\(found)'.")
  }

  private func fault(_ message: String) -> RealtimeFault {
    RealtimeFault(offset: start, message: "Parse error: \(message).")
  }

  // MARK: Tokens

  private static let symbols = RealtimeSymbol.allCases.map { ($0, Array($0.rawValue.utf8)) }

  /// Advances to the next token.
  mutating func advance() throws(RealtimeFault) {
    previousEnd = offset
    skipSpace()
    start = offset
    guard let next = byte() else {
      current = .end
      return
    }
    switch next {
    case UInt8(ascii: "'"), UInt8(ascii: "\""): current = .string(try readString(next))
    case 0x30...0x39: current = .number(try readNumber())
    case UInt8(ascii: "$"):
      offset += 1
      let name = readName()
      guard !name.isEmpty else { throw fault("a $ without a name") }
      current = .wildcard("$" + name)
    case _ where Self.beginsName(next): current = .name(readName())
    default:
      if next == UInt8(ascii: "."), let digit = byte(1), Self.isDigit(digit) {
        current = .number(try readNumber())
        return
      }
      guard let (symbol, text) = Self.symbols.first(where: { bytes[offset...].starts(with: $0.1) }) else {
        throw fault("unexpected character")
      }
      offset += text.count
      current = .symbol(symbol)
    }
  }

  private mutating func skipSpace() {
    while let next = byte() {
      switch next {
      case 0x20, 0x09...0x0D: offset += 1
      case 0xC2 where byte(1) == 0xA0: offset += 2
      case 0xE2 where byte(1) == 0x80 && (byte(2) == 0xA8 || byte(2) == 0xA9): offset += 3
      case 0xEF where byte(1) == 0xBB && byte(2) == 0xBF: offset += 3
      default: return
      }
    }
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

  private static func beginsName(_ byte: UInt8) -> Bool {
    (0x61...0x7A).contains(byte | 0x20) || byte == UInt8(ascii: "_")
  }

  private mutating func readName() -> String {
    let first = offset
    while let next = byte(), Self.beginsName(next) || Self.isDigit(next) { offset += 1 }
    return String(decoding: bytes[first..<offset], as: UTF8.self)
  }

  private mutating func readNumber() throws(RealtimeFault) -> Double {
    let malformed = fault("a malformed number")
    func skipDigits() {
      while let next = byte(), Self.isDigit(next) { offset += 1 }
    }
    // JavaScript reads a number with a leading zero as octal.
    if byte() == 0x30, let next = byte(1), Self.isDigit(next) { throw malformed }
    skipDigits()
    if byte() == UInt8(ascii: ".") {
      offset += 1
      skipDigits()
    }
    if let next = byte(), next | 0x20 == UInt8(ascii: "e") {
      offset += 1
      if byte() == UInt8(ascii: "+") || byte() == UInt8(ascii: "-") { offset += 1 }
      guard let digit = byte(), Self.isDigit(digit) else { throw malformed }
      skipDigits()
    }
    if let next = byte(), Self.beginsName(next) || next == UInt8(ascii: "$") { throw malformed }
    var text = String(decoding: bytes[start..<offset], as: UTF8.self)
    if text.utf8.last == UInt8(ascii: ".") { text += "0" }
    guard let value = Double(text.utf8.first == UInt8(ascii: ".") ? "0" + text : text) else {
      throw malformed
    }
    return value
  }

  // MARK: Strings

  private mutating func readString(_ quote: UInt8) throws(RealtimeFault) -> String {
    offset += 1
    var text: [UInt8] = []
    while let next = byte() {
      offset += 1
      switch next {
      case quote: return String(decoding: text, as: UTF8.self)
      case 0x0A, 0x0D: throw fault("a line break in a string")
      case UInt8(ascii: "\\"): try readEscape(into: &text)
      default: text.append(next)
      }
    }
    throw fault("the string does not end")
  }

  private mutating func readEscape(into text: inout [UInt8]) throws(RealtimeFault) {
    guard let next = byte() else { throw fault("the string does not end") }
    offset += 1
    switch next {
    case UInt8(ascii: "n"): text.append(0x0A)
    case UInt8(ascii: "t"): text.append(0x09)
    case UInt8(ascii: "r"): text.append(0x0D)
    case UInt8(ascii: "b"): text.append(0x08)
    case UInt8(ascii: "f"): text.append(0x0C)
    case UInt8(ascii: "v"): text.append(0x0B)
    case UInt8(ascii: "x"): text += UTF8.encode(try readUnit(digits: 2)).map(Array.init) ?? []
    case UInt8(ascii: "u"): text += Array(try readScalar().utf8)
    case 0x0D where byte() == 0x0A: offset += 1
    // A backslash before a line break continues the string on the next line.
    case 0x0A, 0x0D: break
    case 0x30...0x39:
      guard next == 0x30, !(byte().map(Self.isDigit) ?? false) else { throw fault("an octal escape") }
      text.append(0)
    default: text.append(next)
    }
  }

  /// Reads the digits of `\xNN` or `\uNNNN`.
  private mutating func readUnit(digits: Int) throws(RealtimeFault) -> Unicode.Scalar {
    guard let unit = hexadecimal(digits), let scalar = Unicode.Scalar(unit) else {
      throw fault("an escape without its \(digits) hexadecimal digits")
    }
    return scalar
  }

  /// Reads the digits of `\uNNNN` or `\u{N…}`, and the second half of a surrogate pair.
  private mutating func readScalar() throws(RealtimeFault) -> String {
    if byte() == UInt8(ascii: "{") {
      offset += 1
      var count = 0
      while let next = byte(count), next != UInt8(ascii: "}"), count <= 6 { count += 1 }
      guard let value = hexadecimal(count), let scalar = Unicode.Scalar(value), byte() == UInt8(ascii: "}")
      else {
        throw fault("an escape of no character")
      }
      offset += 1
      return String(Character(scalar))
    }
    guard let first = hexadecimal(4) else { throw fault("an escape without its 4 hexadecimal digits") }
    if let scalar = Unicode.Scalar(first) { return String(Character(scalar)) }
    guard first < 0xDC00, byte() == UInt8(ascii: "\\"), byte(1) == UInt8(ascii: "u") else {
      throw fault("half a surrogate pair")
    }
    offset += 2
    guard let second = hexadecimal(4), 0xDC00...0xDFFF ~= second,
      let scalar = Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
    else { throw fault("half a surrogate pair") }
    return String(Character(scalar))
  }

  private mutating func hexadecimal(_ count: Int) -> UInt32? {
    var value: UInt32 = 0
    guard count > 0, count <= 6 else { return nil }
    for ahead in 0..<count {
      switch byte(ahead) {
      case .some(let digit) where Self.isDigit(digit): value = value << 4 | UInt32(digit - 0x30)
      case .some(let digit) where (0x61...0x66).contains(digit | 0x20):
        value = value << 4 | UInt32((digit | 0x20) - 0x57)
      default: return nil
      }
    }
    offset += count
    return value
  }

  // MARK: Regular expressions

  /// Reads a regular expression whose opening slash is the next token. Afterwards the next token is the one after its
  /// flags.
  mutating func readPattern() throws(RealtimeFault) -> Pattern {
    offset = start + 1
    let first = offset
    var isInSet = false
    while let next = byte(), isInSet || next != UInt8(ascii: "/") {
      switch next {
      case UInt8(ascii: "\\"): offset += 1
      case UInt8(ascii: "["): isInSet = true
      case UInt8(ascii: "]"): isInSet = false
      default: break
      }
      offset += 1
    }
    guard offset < bytes.count else {
      offset = bytes.count
      throw RealtimeFault(offset: start, message: "Invalid regular expression: it does not end.")
    }
    let text = String(decoding: bytes[first..<offset], as: UTF8.self)
    offset += 1
    let flags = readName()
    guard flags.isEmpty || flags == "i" else {
      throw RealtimeFault(offset: start, message: "Invalid regular expression: the only flag is 'i'.")
    }
    let pattern: Pattern
    do throws(PatternError) {
      pattern = try RealtimePattern.compile(text, ignoresCase: flags == "i")
    } catch {
      switch error {
      case .tooLarge, .exhausted:
        throw RealtimeFault(offset: start, message: "Invalid regular expression: it is too large.")
      case .syntax(let units, let message):
        let before = text.utf16.prefix(units)
        let offset = text.utf8.distance(from: text.utf8.startIndex, to: before.endIndex)
        throw RealtimeFault(offset: first + offset, message: "Invalid regular expression: \(message).")
      }
    }
    try advance()
    return pattern
  }
}
