// Parses a rules file of Cloud Firestore into a syntax tree.
//
// The first syntax error ends parsing, because the text after it has no known meaning. The error has the position that
// Google's emulator reports first. For an error between `match` and the block's first declaration, this is the position
// of the path.

/// Parses a rules file.
struct Parser {
  /// Ends parsing; the issue has been recorded.
  struct Stop: Error {}

  /// The tree, complete if `issues` is empty.
  var tree = SyntaxTree()
  /// The findings.
  var issues: [RulesIssue] = []

  private var tokens: [Token]
  private var lexerIssues: [RulesIssue]
  private var index = 0
  /// The end of the last consumed token that is not a symbol. The last expression ends there.
  private(set) var lastEnd = SourcePosition(line: 1, column: 1)
  /// The number of expressions that are being parsed inside each other.
  var depth = 0
  /// The number of brackets and parentheses that are open.
  var openBrackets = 0

  /// A parser of `source`.
  init(_ source: String) {
    let lexer = Lexer(source)
    tokens = lexer.tokens
    lexerIssues = lexer.issues
  }

  /// Parses all of the file.
  mutating func parse() {
    guard tokens.count > 1 || !lexerIssues.isEmpty || tokens[0].position.line > 1 else {
      let isEmpty = tokens[0].position == SourcePosition(line: 1, column: 1)
      let position = isEmpty ? SourcePosition(line: 0, column: 0) : tokens[0].position
      issues.append(RulesIssue(.error, at: position, "Rules content empty. Compilation aborted."))
      return
    }
    do {
      try file()
    } catch {}
    if issues.allSatisfy({ $0.severity == .warning }) { issues += lexerIssues }
  }

  // MARK: Tokens

  /// The current token.
  var token: Token { tokens[index] }

  /// The token before the current one.
  var previous: Token? { index > 0 ? tokens[index - 1] : nil }

  /// A token after the current one.
  func peek(_ distance: Int = 1) -> Token { tokens[min(index + distance, tokens.count - 1)] }

  /// Moves to the next token and returns the token that was current.
  @discardableResult
  mutating func advance() -> Token {
    let current = tokens[index]
    if index < tokens.count - 1 { index += 1 }
    if case .symbol = current.kind { return current }
    lastEnd = current.end
    return current
  }

  /// Consumes a symbol if it is next.
  mutating func take(_ symbol: Token.Symbol) -> Bool {
    guard token.kind == .symbol(symbol) else { return false }
    advance()
    return true
  }

  /// Consumes a keyword if it is next.
  mutating func take(_ keyword: Token.Keyword) -> Bool {
    guard token.kind == .keyword(keyword) else { return false }
    advance()
    return true
  }

  /// Consumes a symbol, or records that it is missing.
  mutating func expect(_ symbol: Token.Symbol) throws(Stop) {
    guard take(symbol) else { throw unexpected("expecting '\(symbol.rawValue)'") }
  }

  /// The message of a syntax error at the current token.
  func unexpectedText(_ hint: String?) -> String {
    hint.map { "Unexpected '\(token.text)', \($0)." } ?? "Unexpected '\(token.text)'."
  }

  /// Records a syntax error at the current token.
  mutating func unexpected(_ hint: String? = nil) -> Stop {
    fail(at: token.position, unexpectedText(hint))
  }

  /// Records an error.
  mutating func fail(at position: SourcePosition, _ text: String) -> Stop {
    issues.append(RulesIssue(.error, at: position, text))
    return Stop()
  }

  /// Consumes the name of a member, which may be a reserved word.
  mutating func memberName() throws(Stop) -> (name: String, position: SourcePosition) {
    guard case .keyword(let keyword) = token.kind else { return try identifier() }
    return (keyword.rawValue, advance().position)
  }

  /// Consumes an identifier.
  mutating func identifier(_ message: String? = nil) throws(Stop) -> (name: String, position: SourcePosition)
  {
    guard case .identifier(let name) = token.kind else {
      if let message { throw fail(at: token.position, message) }
      throw unexpected("expecting an identifier")
    }
    return (name, advance().position)
  }
}
