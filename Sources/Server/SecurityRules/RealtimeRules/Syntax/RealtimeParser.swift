// Parses a rule expression of the Realtime Database, a subset of JavaScript's expressions.
//
//   expr    := or [ "?" expr ":" expr ]
//   or      := and { "||" and }              and   := eq { "&&" eq }
//   eq      := rel { ("==" | "===" | "!=" | "!==") rel }
//   rel     := add { ("<" | "<=" | ">" | ">=") add }
//   add     := mul { ("+" | "-") mul }       mul   := unary { ("*" | "/" | "%") unary }
//   unary   := ("!" | "-") unary | postfix
//   postfix := primary { "." name | "[" expr "]" | "(" [ expr { "," expr } ] ")" }
//   primary := number | string | regex | true | false | null | name | "$"name | "(" expr ")" | list

/// Parses one expression.
struct RealtimeParser {
  /// The deepest syntax tree, and the deepest nesting of brackets and unary operators.
  static let maximumDepth = 128

  private var lexer: RealtimeLexer
  private var levels = 0
  private var patternInstructions = 0

  /// Parses a complete text.
  ///
  /// - Parameter patternInstructions: increased by the compiled size of the regular expressions.
  static func parse(
    _ text: String, patternInstructions: inout Int
  ) throws(RealtimeFault) -> RealtimeSyntax {
    var parser = RealtimeParser(lexer: RealtimeLexer(text))
    try parser.lexer.advance()
    guard parser.lexer.current != .end else { throw parser.lexer.unexpected("an expression") }
    let expression = try parser.readExpression()
    guard parser.lexer.current == .end else {
      throw parser.lexer.unexpected("an operator or the end of the expression")
    }
    patternInstructions += parser.patternInstructions
    return expression
  }

  private init(lexer: RealtimeLexer) { self.lexer = lexer }

  // MARK: Levels

  private var tooDeep: RealtimeFault {
    RealtimeFault(
      offset: lexer.start, message: "Expressions may lie at most \(Self.maximumDepth) levels deep.")
  }

  private mutating func descend() throws(RealtimeFault) {
    levels += 1
    guard levels <= Self.maximumDepth else { throw tooDeep }
  }

  private func make(
    _ kind: RealtimeSyntax.Kind, at offset: Int, over parts: RealtimeSyntax...
  ) throws(RealtimeFault) -> RealtimeSyntax {
    try make(kind, at: offset, over: parts)
  }

  private func make(
    _ kind: RealtimeSyntax.Kind, at offset: Int, over parts: [RealtimeSyntax]
  ) throws(RealtimeFault) -> RealtimeSyntax {
    let depth = 1 + (parts.lazy.map(\.depth).max() ?? 0)
    guard depth <= Self.maximumDepth else { throw tooDeep }
    let start = parts.lazy.map(\.range.lowerBound).reduce(offset, min)
    return RealtimeSyntax(
      kind: kind, offset: offset, range: start..<max(start, lexer.previousEnd), depth: depth)
  }

  private mutating func accept(_ symbol: RealtimeSymbol) throws(RealtimeFault) -> Bool {
    guard lexer.current == .symbol(symbol) else { return false }
    try lexer.advance()
    return true
  }

  private mutating func expect(_ symbol: RealtimeSymbol, _ expected: String) throws(RealtimeFault) {
    guard try accept(symbol) else { throw lexer.unexpected(expected) }
  }

  // MARK: Operators

  private mutating func readExpression() throws(RealtimeFault) -> RealtimeSyntax {
    try descend()
    let condition = try readOperators(from: 1)
    let offset = lexer.start
    guard try accept(.question) else {
      levels -= 1
      return condition
    }
    let first = try readExpression()
    try expect(.colon, "':'")
    let second = try readExpression()
    levels -= 1
    return try make(.conditional(condition, first, second), at: offset, over: condition, first, second)
  }

  /// Reads operands joined by operators of this or a higher precedence.
  private mutating func readOperators(from precedence: Int) throws(RealtimeFault) -> RealtimeSyntax {
    guard precedence <= 6 else { return try readUnary() }
    let first = try readOperators(from: precedence + 1)
    var operands = [first]
    var operations: [RealtimeOperator] = []
    let offset = lexer.start
    while case .symbol(let symbol) = lexer.current, symbol.precedence == precedence {
      try lexer.advance()
      operands.append(try readOperators(from: precedence + 1))
      if let operation = symbol.operation { operations.append(operation) }
    }
    guard operands.count > 1 else { return first }
    switch precedence {
    case 1: return try make(.any(operands), at: offset, over: operands)
    case 2: return try make(.all(operands), at: offset, over: operands)
    default:
      let steps = zip(operations, operands.dropFirst()).map { (operation: $0, operand: $1) }
      return try make(.chain(first, steps), at: offset, over: operands)
    }
  }

  private mutating func readUnary() throws(RealtimeFault) -> RealtimeSyntax {
    let offset = lexer.start
    let isNot = lexer.current == .symbol(.not)
    guard isNot || lexer.current == .symbol(.minus) else { return try readPostfix() }
    try lexer.advance()
    try descend()
    let operand = try readUnary()
    levels -= 1
    return try make(isNot ? .not(operand) : .negative(operand), at: offset, over: operand)
  }

  // MARK: Operands

  private mutating func readPostfix() throws(RealtimeFault) -> RealtimeSyntax {
    var base = try readPrimary()
    while true {
      let offset = lexer.start
      if try accept(.dot) {
        let nameOffset = lexer.start
        guard case .name(let name) = lexer.current else { throw lexer.unexpected("a name") }
        try lexer.advance()
        base = try make(.member(base, name), at: nameOffset, over: base)
      } else if try accept(.openBracket) {
        let key = try readExpression()
        try expect(.closeBracket, "']'")
        base = try make(.element(base, key), at: offset, over: base, key)
      } else if try accept(.openParenthesis) {
        let arguments = try readList(to: .closeParenthesis, "',' or ')'")
        base = try make(.call(base, arguments), at: offset, over: [base] + arguments)
      } else {
        return base
      }
    }
  }

  private mutating func readList(
    to end: RealtimeSymbol, _ expected: String
  ) throws(RealtimeFault) -> [RealtimeSyntax] {
    var elements: [RealtimeSyntax] = []
    if try accept(end) { return elements }
    repeat { elements.append(try readExpression()) } while try accept(.comma)
    try expect(end, expected)
    return elements
  }

  private mutating func readPrimary() throws(RealtimeFault) -> RealtimeSyntax {
    let offset = lexer.start
    let kind: RealtimeSyntax.Kind
    switch lexer.current {
    case .name("null"): kind = .null
    case .name("true"): kind = .bool(true)
    case .name("false"): kind = .bool(false)
    case .name(let name): kind = .name(name)
    case .wildcard(let name): kind = .wildcard(name)
    case .number(let number): kind = .number(number)
    case .string(let text): kind = .string(text)
    case .symbol(.slash):
      let pattern = try lexer.readPattern()
      patternInstructions += pattern.instructionCount
      return try make(.pattern(pattern), at: offset)
    case .symbol(.openParenthesis):
      try lexer.advance()
      let inner = try readExpression()
      try expect(.closeParenthesis, "')'")
      return inner
    case .symbol(.openBracket):
      try lexer.advance()
      let elements = try readList(to: .closeBracket, "',' or ']'")
      return try make(.list(elements), at: offset, over: elements)
    default: throw lexer.unexpected("an operand")
    }
    try lexer.advance()
    return try make(kind, at: offset)
  }
}
