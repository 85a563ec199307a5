// Splits a rules file into tokens.
//
// A slash directly before a segment character begins a segment, even if the author meant a division: `4/2` is a number
// and a segment. Characters that begin no token are skipped. They are reported only if the parser finds no error.

/// Splits the text of a rules file into tokens.
struct Lexer {
  /// The tokens; the last one is the end of the file.
  private(set) var tokens: [Token] = []
  /// The findings about characters that begin no token.
  private(set) var issues: [RulesIssue] = []

  private let scalars: [Unicode.Scalar]
  private var offset = 0
  private var line = 1
  private var column = 1

  /// Reads all of `source`.
  init(_ source: String) {
    scalars = Array(source.unicodeScalars)
    while readNext() {}
  }

  private var position: SourcePosition { SourcePosition(line: line, column: column) }

  private func peek(_ distance: Int = 0) -> Unicode.Scalar? {
    let index = offset + distance
    return index < scalars.count ? scalars[index] : nil
  }

  private mutating func advance(_ count: Int = 1) {
    for _ in 0..<count where offset < scalars.count {
      if scalars[offset] == "\n" {
        line += 1
        column = 1
      } else {
        column += 1
      }
      offset += 1
    }
  }

  /// Reads one token, comment or blank.
  ///
  /// - Returns: whether more follows.
  private mutating func readNext() -> Bool {
    guard let scalar = peek() else {
      tokens.append(Token(kind: .end, position: position, end: position, text: "<EOF>"))
      return false
    }
    switch scalar {
    case " ", "\t", "\r", "\n", "\u{0C}": advance()
    case "/": readSlash()
    case "'", "\"": readQuoted(from: offset, isBytes: false)
    case "b" where peek(1) == "'" || peek(1) == "\"", "B" where peek(1) == "'" || peek(1) == "\"":
      readQuoted(from: offset, isBytes: true)
    case "." where peek(1).map(Self.isDigit) == true, _ where Self.isDigit(scalar): readNumber()
    case _ where Self.isIdentifierStart(scalar) && !(scalar == "$" && peek(1) == "("): readWord()
    default: readSymbol()
    }
    return true
  }

  private mutating func emit(_ kind: Token.Kind, length: Int) {
    let start = position
    let text = String(String.UnicodeScalarView(scalars[offset..<min(offset + length, scalars.count)]))
    advance(max(0, length - 1))
    let end = position
    advance()
    tokens.append(Token(kind: kind, position: start, end: end, text: text))
  }

  private mutating func readSlash() {
    if peek(1) == "/" {
      while let scalar = peek(), scalar != "\n" { _ = scalar; advance() }
      return
    }
    if peek(1) == "*", let length = blockCommentLength() {
      advance(length)
      return
    }
    let length = segmentLength()
    guard length > 0 else { return emit(.symbol(.slash), length: 1) }
    let text = String(String.UnicodeScalarView(scalars[(offset + 1)..<(offset + 1 + length)]))
    emit(.segment(text), length: length + 1)
  }

  private func blockCommentLength() -> Int? {
    var index = offset + 2
    while index + 1 < scalars.count {
      if scalars[index] == "*", scalars[index + 1] == "/" { return index + 2 - offset }
      index += 1
    }
    return nil
  }

  /// The number of characters of the segment after a slash, such as `users`, `a%20b` or `(default)`.
  private func segmentLength() -> Int {
    func plainRun(from start: Int) -> Int {
      var index = start
      while index < scalars.count {
        if Self.isSegmentScalar(scalars[index]) {
          index += 1
        } else if scalars[index] == "%", index + 2 < scalars.count,
          scalars[index + 1].properties.isASCIIHexDigit, scalars[index + 2].properties.isASCIIHexDigit
        {
          index += 3
        } else {
          break
        }
      }
      return index - start
    }
    if peek(1) == "(" {
      let inner = plainRun(from: offset + 2)
      return inner > 0 && peek(2 + inner) == ")" ? inner + 2 : 0
    }
    return plainRun(from: offset + 1)
  }

  private mutating func readNumber() {
    var length = 0
    while let scalar = peek(length), Self.isDigit(scalar) { length += 1 }
    if peek(length) == "." {
      length += 1
      while let scalar = peek(length), Self.isDigit(scalar) { length += 1 }
      let text = String(String.UnicodeScalarView(scalars[offset..<(offset + length)]))
      return emit(.float(Self.float(text)), length: length)
    }
    // A leading zero is a separate number: `01` is the tokens `0` and `1`.
    if peek() == "0" { length = 1 }
    let text = String(String.UnicodeScalarView(scalars[offset..<(offset + length)]))
    emit(.integer(text), length: length)
  }

  private static func float(_ text: String) -> Double {
    Double((text.hasPrefix(".") ? "0" : "") + text + (text.hasSuffix(".") ? "0" : "")) ?? 0
  }

  private mutating func readWord() {
    var length = 1
    while let scalar = peek(length), Self.isIdentifierStart(scalar) || Self.isDigit(scalar) { length += 1 }
    let text = String(String.UnicodeScalarView(scalars[offset..<(offset + length)]))
    emit(Token.Keyword(rawValue: text).map(Token.Kind.keyword) ?? .identifier(text), length: length)
  }

  private mutating func readSymbol() {
    for length in [2, 1] where offset + length <= scalars.count {
      let text = String(String.UnicodeScalarView(scalars[offset..<(offset + length)]))
      if let symbol = Token.Symbol(rawValue: text) { return emit(.symbol(symbol), length: length) }
    }
    issues.append(
      RulesIssue(.error, at: position, "token recognition error at: '\(String(scalars[offset]))'"))
    advance()
  }

  private mutating func readQuoted(from start: Int, isBytes: Bool) {
    let body = isBytes ? start + 2 : start + 1
    var reader = QuotedText(scalars: scalars, start: body, quote: scalars[body - 1], isBytes: isBytes)
    guard reader.read() else {
      var length = reader.offset - offset
      if reader.isEscapeInvalid { length = max(1, length) }
      return emit(.unpairedQuote(String(scalars[body - 1])), length: max(1, length))
    }
    let length = reader.offset - offset
    emit(isBytes ? .bytes(reader.bytes) : .string(RuleText(units: reader.units)), length: length)
  }

  static func isDigit(_ scalar: Unicode.Scalar) -> Bool { scalar >= "0" && scalar <= "9" }

  static func isIdentifierStart(_ scalar: Unicode.Scalar) -> Bool {
    scalar.isASCII && (scalar.properties.isAlphabetic || scalar == "_" || scalar == "$")
  }

  static func isSegmentScalar(_ scalar: Unicode.Scalar) -> Bool {
    guard scalar.isASCII else { return false }
    if isDigit(scalar) || scalar.properties.isAlphabetic { return true }
    return switch scalar {
    case "_", "-", ".", "~", "@", "*", "'", "+", "&", ":": true
    default: false
    }
  }
}
