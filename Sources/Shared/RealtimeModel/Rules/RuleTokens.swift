// The tokens of a rule expression. A slash is an operator or starts a regular expression. Only the parser can
// distinguish the two. It calls `readRegularExpression()` where an operand must begin.

/// Reads the tokens of an expression with one token of lookahead.
struct RuleTokens {
  typealias Mistake = RuleExpressionForm.Mistake

  enum Token: Equatable {
    case end
    /// A name. `true`, `false` and `null` count as names, since they have the same form as operands.
    case name(String)
    case wildcard
    /// A number or a string.
    case literal
    case symbol(String)
  }

  private let bytes: [UInt8]
  private var offset = 0
  /// The next token.
  private(set) var current = Token.end
  private(set) var start = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  static func beginsName(_ byte: UInt8) -> Bool {
    (0x61...0x7A).contains(byte | 0x20) || byte == UInt8(ascii: "_")
  }

  private func byte(_ ahead: Int = 0) -> UInt8? {
    offset + ahead < bytes.count ? bytes[offset + ahead] : nil
  }

  /// An error that reports another token in place of the expected one.
  func mistake(_ expected: String) -> Mistake {
    guard current != .end else {
      return Mistake(offset: start, message: "Parse error: expected \(expected), found the end.")
    }
    let found = String(decoding: bytes[start..<max(start, offset)].prefix(40), as: UTF8.self)
    return Mistake(offset: start, message: "Parse error: expected \(expected), found '\(found)'.")
  }

  private static let symbols = [
    "===", "!==", "==", "!=", "<=", ">=", "&&", "||", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", "(",
    ")",
    "[", "]", ".", ",",
  ].map { ($0, Array($0.utf8)) }

  /// Advances to the next token.
  mutating func advance() throws(Mistake) {
    while let next = byte(), next == 0x20 || (0x09...0x0D).contains(next) { offset += 1 }
    start = offset
    guard let next = byte() else {
      current = .end
      return
    }
    switch next {
    case UInt8(ascii: "'"), UInt8(ascii: "\""): try readString(next)
    case 0x30...0x39: try readNumber()
    case UInt8(ascii: "."):
      if let digit = byte(1), (0x30...0x39).contains(digit) { try readNumber() } else { readSymbol() }
    case UInt8(ascii: "$"):
      offset += 1
      guard !readName().isEmpty else {
        throw Mistake(offset: start, message: "Parse error: a $ without a name.")
      }
      current = .wildcard
    case _ where RuleTokens.beginsName(next): current = .name(readName())
    default: readSymbol()
    }
    if current == .end { throw Mistake(offset: start, message: "Parse error: unexpected character.") }
  }

  private mutating func readSymbol() {
    current = .end
    for (symbol, text) in RuleTokens.symbols where bytes[offset...].starts(with: text) {
      offset += text.count
      current = .symbol(symbol)
      return
    }
  }

  private mutating func readName() -> String {
    let first = offset
    while let next = byte(), RuleTokens.beginsName(next) || (offset > first && (0x30...0x39).contains(next)) {
      offset += 1
    }
    return String(decoding: bytes[first..<offset], as: UTF8.self)
  }

  private mutating func readNumber() throws(Mistake) {
    func digits() {
      while let next = byte(), (0x30...0x39).contains(next) { offset += 1 }
    }
    digits()
    if byte() == UInt8(ascii: ".") {
      offset += 1
      digits()
    }
    if let next = byte(), next | 0x20 == UInt8(ascii: "e") {
      offset += 1
      if byte() == UInt8(ascii: "+") || byte() == UInt8(ascii: "-") { offset += 1 }
      let exponent = offset
      digits()
      guard offset > exponent else { throw malformedNumber }
    }
    if let next = byte(), RuleTokens.beginsName(next) { throw malformedNumber }
    current = .literal
  }

  private var malformedNumber: Mistake {
    Mistake(offset: start, message: "Parse error: a number that does not end as one.")
  }

  private mutating func readString(_ quote: UInt8) throws(Mistake) {
    offset += 1
    while let next = byte() {
      offset += next == UInt8(ascii: "\\") ? 2 : 1
      if next == quote {
        current = .literal
        return
      }
    }
    offset = bytes.count
    throw Mistake(offset: start, message: "Parse error: the string does not end.")
  }

  // MARK: Regular expressions

  /// Reads the rest of a regular expression. Its slash is the current token.
  ///
  /// Checks that the expression ends, that groups and sets are closed, that alternatives are not empty, the positions
  /// of `^` and `$`, and the flags.
  mutating func readRegularExpression() throws(Mistake) {
    offset = start + 1
    let first = offset
    var groups = 0
    // Whether the previous character is a bar. A bar at the start of the expression or of a group is an ordinary
    // character.
    var isAfterBar = false
    var isAtStart = true
    while let next = byte(), next != UInt8(ascii: "/") {
      if isAfterBar, next == UInt8(ascii: "|") || next == UInt8(ascii: ")") { throw emptyAlternative }
      isAfterBar = next == UInt8(ascii: "|") && !isAtStart
      isAtStart = next == UInt8(ascii: "(") && !isAtStart
      switch next {
      case UInt8(ascii: "\\"): offset += 1
      case UInt8(ascii: "["): try readSet()
      case UInt8(ascii: "("): groups += 1
      case UInt8(ascii: ")"):
        groups -= 1
        if groups < 0 { throw regular("a ')' without its '('") }
      case UInt8(ascii: "^") where offset != first: throw regular("a '^' may stand at the very start only")
      case UInt8(ascii: "$") where byte(1) != UInt8(ascii: "/"):
        throw regular("a '$' may stand at the very end only")
      default: break
      }
      offset += 1
    }
    guard byte() == UInt8(ascii: "/") else { throw regular("it does not end") }
    if offset == first { throw regular("it is empty") }
    if isAfterBar { throw emptyAlternative }
    if groups > 0 { throw regular("a '(' without its ')'") }
    offset += 1
    let flags = readName()
    guard flags.isEmpty || flags == "i" else { throw regular("the only flag is 'i'") }
    current = .literal
  }

  /// Advances to the end of a set.
  private mutating func readSet() throws(Mistake) {
    while let next = byte(), next != UInt8(ascii: "]") { offset += next == UInt8(ascii: "\\") ? 2 : 1 }
    if byte() == nil { throw regular("a '[' without its ']'") }
  }

  private var emptyAlternative: Mistake { regular("an alternative behind a '|' is empty") }

  private func regular(_ reason: String) -> Mistake {
    Mistake(offset: start, message: "Invalid regular expression: \(reason).")
  }
}
