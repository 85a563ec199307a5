// Parses the declarations of a rules file: version, functions, services, match blocks and allow statements.

extension Parser {
  /// `file := [ rules_version ] { import } { function } { service }`
  mutating func file() throws(Stop) {
    if token.kind == .keyword(.rulesVersion) { try version() }
    while token.kind == .keyword(.import) { try importStatement() }
    while token.kind == .keyword(.function) { tree.functions.append(try function()) }
    guard token.kind == .keyword(.service) else {
      throw unexpected("expecting 'function', 'import' or 'service'")
    }
    while token.kind != .end {
      switch token.kind {
      case .keyword(.service): try service()
      case .keyword(.function): tree.functions.append(try function())
      default: throw unexpected()
      }
    }
  }

  private mutating func version() throws(Stop) {
    let position = advance().position
    try expect(.assign)
    guard case .string(let text) = token.kind else { throw unexpected("expecting a quoted version") }
    advance()
    _ = take(.semicolon)
    if let version = SyntaxTree.Version(rawValue: text.string) {
      tree.version = version
    } else {
      issues.append(RulesIssue(.error, at: position, "Unsupported rules version \(text.string)."))
    }
  }

  private mutating func importStatement() throws(Stop) {
    let position = advance().position
    guard case .string = token.kind else { throw unexpected("expecting a quoted module") }
    advance()
    if case .identifier("as") = token.kind {
      advance()
      _ = try identifier()
    }
    try expect(.semicolon)
    issues.append(RulesIssue(.error, at: position, "Import statements are not allowed."))
  }

  private mutating func service() throws(Stop) {
    advance()
    let position = token.position
    if case .string = token.kind { throw fail(at: token.end, "A service name has no quotes.") }
    var name = try identifier().name
    while take(.dot) { name += "." + (try identifier().name) }
    try expect(.openBrace)
    if tree.services.contains(where: { $0.name == name }) {
      issues.append(RulesIssue(.error, at: position, "Duplicate service name declaration."))
    }
    var service = SyntaxTree.Service(name: name, position: position)
    while token.kind != .symbol(.closeBrace) {
      switch token.kind {
      case .keyword(.function): service.functions.append(try function())
      case .keyword(.match): service.matches.append(try match(nesting: 0))
      default: throw unexpected("expecting 'match' or 'function'")
      }
    }
    if service.functions.isEmpty, service.matches.isEmpty {
      throw fail(at: token.position, "The 'service' body must contain at least one declaration.")
    }
    advance()
    tree.services.append(service)
  }

  /// The depth at which parsing of nested blocks ends; the checker's limit is far below.
  private static let maximumNesting = 64

  private mutating func match(nesting: Int) throws(Stop) -> SyntaxTree.Match {
    let position = advance().position
    let patternPosition = token.position
    let pattern = try self.pattern()
    guard take(.openBrace) else {
      throw fail(at: patternPosition, unexpectedText("expecting '{' after the path"))
    }
    guard nesting < Self.maximumNesting else {
      throw fail(at: position, "Maximum allowed resource rule depth of 10 is reached.")
    }
    var match = SyntaxTree.Match(position: position, patternPosition: patternPosition, pattern: pattern)
    var isEmpty = true
    while token.kind != .symbol(.closeBrace) {
      switch token.kind {
      case .keyword(.function): match.functions.append(try function())
      case .keyword(.match): match.matches.append(try self.match(nesting: nesting + 1))
      case .keyword(.allow): match.allows.append(try allow())
      default:
        if isEmpty { throw fail(at: patternPosition, unexpectedText("expecting a declaration")) }
        throw unexpected("expecting 'allow', 'match' or 'function'")
      }
      isEmpty = false
    }
    if isEmpty { throw fail(at: token.position, "The 'match' body must contain at least one declaration.") }
    advance()
    return match
  }

  private mutating func pattern() throws(Stop) -> [SyntaxTree.PatternSegment] {
    let start = token.position
    var segments: [SyntaxTree.PatternSegment] = []
    while true {
      if case .segment(let text) = token.kind {
        segments.append(
          SyntaxTree.PatternSegment(kind: .literal(text.percentDecoded), position: advance().position))
        continue
      }
      guard token.kind == .symbol(.slash) else { break }
      let slash = advance().position
      guard take(.openBrace) else {
        throw fail(at: start, "Forward slash '/' found where identifier or binding expected.")
      }
      segments.append(try wildcard(start: start, slash: slash))
    }
    guard !segments.isEmpty else { throw unexpected("expecting a path") }
    return segments
  }

  private mutating func wildcard(
    start: SourcePosition, slash: SourcePosition
  ) throws(Stop) -> SyntaxTree.PatternSegment {
    let text = "A wildcard is '{name}' or '{name=**}'; found '\(token.text)'."
    guard case .identifier(let name) = token.kind else {
      if case .keyword(let keyword) = token.kind, ![.true, .false, .null].contains(keyword) {
        throw fail(at: slash, text)
      }
      throw fail(at: start, text)
    }
    let position = advance().position
    var isRest = false
    if take(.assign) {
      isRest = token.kind == .symbol(.doubleStar)
      guard take(.doubleStar) || take(.star) else { throw fail(at: start, text) }
    }
    guard take(.closeBrace) else { throw fail(at: start, text) }
    return SyntaxTree.PatternSegment(kind: isRest ? .rest(name) : .single(name), position: position)
  }

  private mutating func allow() throws(Stop) -> SyntaxTree.Allow {
    let position = advance().position
    var allow = SyntaxTree.Allow(position: position, methods: [], condition: nil)
    repeat {
      guard case .identifier(let name) = token.kind else {
        throw fail(at: token.position, "Expected at least one 'operation' after 'allow'.")
      }
      allow.methods.append(SyntaxTree.Allow.Method(name: name, position: advance().position))
    } while take(.comma)
    if token.kind == .keyword(.if) { throw fail(at: token.position, "Missing ':' before 'if' condition.") }
    if take(.colon) {
      guard take(.if) else {
        throw fail(at: token.position, "Missing 'if' before conditional expression.")
      }
      if !beginsExpression(token) {
        throw fail(at: token.position, "Missing conditional expression after 'if'.")
      }
      allow.condition = try expression()
    }
    if take(.semicolon) { return allow }
    switch token.kind {
    case .keyword(.allow), .keyword(.match), .keyword(.function), .symbol(.closeBrace): return allow
    default: throw unexpected()
    }
  }

  private mutating func function() throws(Stop) -> SyntaxTree.Function {
    advance()
    if token.kind == .symbol(.openParenthesis) { throw fail(at: token.position, "Missing 'function' id") }
    let (name, position) = try identifier()
    try expect(.openParenthesis)
    var parameters: [SyntaxTree.Function.Variable] = []
    if token.kind != .symbol(.closeParenthesis) {
      repeat {
        if token.kind == .symbol(.closeParenthesis), !parameters.isEmpty { break }
        let (name, position) = try identifier()
        parameters.append(.init(name: name, position: position, start: position, value: nil))
      } while take(.comma)
    }
    try expect(.closeParenthesis)
    try expect(.openBrace)
    if token.kind == .symbol(.closeBrace) { throw fail(at: token.position, "Missing 'function' body") }
    var lets: [SyntaxTree.Function.Variable] = []
    while token.kind == .keyword(.let) {
      let start = advance().position
      let (name, position) = try identifier()
      try expect(.assign)
      let value = try expression()
      try expect(.semicolon)
      lets.append(.init(name: name, position: position, start: start, value: value))
    }
    guard take(.return) else { throw unexpected("expecting 'return'") }
    let result = try expression()
    _ = take(.semicolon)
    try expect(.closeBrace)
    return SyntaxTree.Function(
      name: name, position: position, parameters: parameters, lets: lets, result: result)
  }
}

extension String {
  /// The text with each `%XX` replaced by its byte, as UTF-8.
  var percentDecoded: String {
    guard utf8.contains(UInt8(ascii: "%")) else { return self }
    let bytes = Array(utf8)
    var decoded: [UInt8] = []
    var index = 0
    while index < bytes.count {
      if bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count,
        let byte = UInt8(String(decoding: bytes[(index + 1)...(index + 2)], as: UTF8.self), radix: 16)
      {
        decoded.append(byte)
        index += 3
      } else {
        decoded.append(bytes[index])
        index += 1
      }
    }
    return String(decoding: decoded, as: UTF8.self)
  }
}
