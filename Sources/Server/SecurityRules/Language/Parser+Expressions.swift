// Parses expressions by precedence climbing. `is` is weaker than `==`, but any operator may follow its type: `1 is int
// == true` compares `1 is int` with true, and `1 == 1 is bool` tests `1 == 1`.

extension Parser {
  /// The depth at which parsing ends; the checker's limit is far below.
  private static let maximumDepth = 250

  private static let tooComplex = "Expression is too complex to evaluate safely."

  /// The precedence of each operator. An operator with a greater number binds first.
  private enum Precedence {
    static let conditional = 1
    static let or = 2
    static let and = 3
    static let `in` = 4
    static let type = 5
    static let equality = 6
    static let order = 7
    static let sum = 8
    static let product = 9
  }

  private static func binary(_ kind: Token.Kind) -> (Expression.Operator, Int)? {
    switch kind {
    case .keyword(.in): (.in, Precedence.in)
    case .symbol(let symbol):
      switch symbol {
      case .or: (.or, Precedence.or)
      case .and: (.and, Precedence.and)
      case .equal: (.equal, Precedence.equality)
      case .notEqual: (.notEqual, Precedence.equality)
      case .less: (.less, Precedence.order)
      case .lessOrEqual: (.lessOrEqual, Precedence.order)
      case .greater: (.greater, Precedence.order)
      case .greaterOrEqual: (.greaterOrEqual, Precedence.order)
      case .plus: (.plus, Precedence.sum)
      case .minus: (.minus, Precedence.sum)
      case .star: (.times, Precedence.product)
      case .slash: (.divided, Precedence.product)
      case .percent: (.modulo, Precedence.product)
      default: nil
      }
    default: nil
    }
  }

  /// Whether an expression may begin with a token.
  func beginsExpression(_ token: Token) -> Bool {
    switch token.kind {
    case .identifier, .segment, .integer, .float, .string, .bytes, .unpairedQuote: true
    case .keyword(let keyword): [.true, .false, .null].contains(keyword)
    case .symbol(let symbol):
      [.openBrace, .openBracket, .openParenthesis, .minus, .not, .slash, .increment, .decrement].contains(
        symbol)
    case .end: false
    }
  }

  /// Parses an expression of any precedence.
  mutating func expression() throws(Stop) -> ExpressionID { try expression(minimum: Precedence.conditional) }

  private mutating func expression(minimum: Int) throws(Stop) -> ExpressionID {
    depth += 1
    defer { depth -= 1 }
    guard depth <= Self.maximumDepth else { throw fail(at: token.position, Self.tooComplex) }
    var left = try unary()
    while true {
      if token.kind == .keyword(.is), minimum <= Precedence.type {
        let anchor = advance().position
        let type = try typeName()
        left = add(.type(left, type), from: left, anchor: anchor)
      } else if token.kind == .symbol(.question), minimum <= Precedence.conditional {
        let anchor = advance().position
        let then = try expression(minimum: Precedence.conditional)
        try expect(.colon)
        let otherwise = try expression(minimum: Precedence.conditional)
        left = add(.conditional(left, then, otherwise), from: left, anchor: anchor)
      } else if let (op, precedence) = Self.binary(token.kind), precedence >= minimum {
        if op == .divided, !beginsExpression(peek()) {
          throw fail(
            at: token.position, "Forward slash '/' found where identifier or binding expected.")
        }
        let anchor = advance().position
        let right = try expression(minimum: precedence + 1)
        left = add(.binary(op, left, right), from: left, anchor: anchor)
      } else {
        return left
      }
    }
  }

  private mutating func add(
    _ kind: Expression.Kind, from first: ExpressionID, anchor: SourcePosition
  ) -> ExpressionID {
    let position = tree[first].position
    return tree.add(
      Expression(kind: kind, position: position, anchor: anchor, end: max(lastEnd, position)))
  }

  private mutating func add(_ kind: Expression.Kind, at position: SourcePosition) -> ExpressionID {
    tree.add(
      Expression(kind: kind, position: position, anchor: position, end: max(lastEnd, position)))
  }

  private mutating func typeName() throws(Stop) -> RuleType {
    guard case .identifier(let name) = token.kind else { throw unexpected("expecting a type") }
    advance()
    guard let type = RuleType(rawValue: name) else {
      let names = RuleType.allCases.map(\.rawValue).joined(separator: ",")
      throw fail(
        at: token.position,
        "An unsupported type identifier was used with the 'is' operator. Received \(name). Expected one of \(names)"
      )
    }
    return type
  }

  private mutating func unary() throws(Stop) -> ExpressionID {
    let position = token.position
    switch token.kind {
    case .symbol(.not):
      // A loop, so that a long run of `!` does not nest calls.
      var count = 0
      while take(.not) { count += 1 }
      var operand = try unaryOperand()
      guard count <= Self.maximumDepth else { throw fail(at: position, Self.tooComplex) }
      for distance in 0..<count {
        let symbolPosition = SourcePosition(
          line: position.line, column: position.column + count - 1 - distance)
        operand = add(.not(operand), at: symbolPosition)
      }
      return operand
    default: return try unaryOperand()
    }
  }

  private mutating func unaryOperand() throws(Stop) -> ExpressionID {
    let position = token.position
    switch token.kind {
    case .symbol(.increment), .symbol(.decrement):
      advance()
      throw fail(at: token.position, "Increment (++) and decrement (--) operators are not supported.")
    case .symbol(.minus):
      advance()
      if case .integer(let digits) = token.kind {
        let start = advance().position
        guard let value = Int64("-" + digits) else {
          throw fail(at: start, "Invalid number literal \(digits).")
        }
        // The sign of the least integer belongs to its literal; its digits alone do not fit.
        if value == .min { return try postfix(add(.int(.min), at: position)) }
        let operand = try postfix(add(.int(-value), at: start))
        return add(.negate(operand), at: position)
      }
      if token.kind == .symbol(.minus) { throw unexpected() }
      let operand = try postfix(try primary())
      return add(.negate(operand), at: position)
    default: return try postfix(try primary())
    }
  }

  private mutating func postfix(_ first: ExpressionID) throws(Stop) -> ExpressionID {
    var base = first
    while true {
      if token.kind == .symbol(.dot) {
        advance()
        let (name, position) = try memberName()
        if token.kind == .symbol(.openParenthesis) {
          let arguments = try self.arguments()
          base = add(.method(base, name, arguments), from: base, anchor: position)
        } else {
          base = add(.member(base, name), from: base, anchor: position)
        }
      } else if token.kind == .symbol(.openBracket) {
        base = try subscripted(base)
      } else {
        return base
      }
    }
  }

  private mutating func subscripted(_ base: ExpressionID) throws(Stop) -> ExpressionID {
    let anchor = advance().position
    openBrackets += 1
    defer { openBrackets -= 1 }
    var from: ExpressionID?
    if token.kind != .symbol(.colon) {
      let index = try expression()
      if take(.closeBracket) { return add(.index(base, index), from: base, anchor: anchor) }
      from = index
    }
    try expectAfterOperand(.colon)
    var to: ExpressionID?
    if token.kind != .symbol(.closeBracket) { to = try expression() }
    try expectAfterOperand(.closeBracket)
    return add(.slice(base, from, to), from: base, anchor: anchor)
  }

  /// Parses `( arguments )`.
  private mutating func arguments() throws(Stop) -> [ExpressionID] {
    advance()
    return try items(until: .closeParenthesis)
  }

  private mutating func items(until end: Token.Symbol) throws(Stop) -> [ExpressionID] {
    openBrackets += 1
    defer { openBrackets -= 1 }
    var items: [ExpressionID] = []
    while token.kind != .symbol(end) {
      items.append(try expression())
      if !take(.comma) { break }
    }
    try expectAfterOperand(end)
    return items
  }

  /// Consumes the symbol that must follow an operand. Inside brackets, an error after a path literal is reported at the
  /// position of the path.
  private mutating func expectAfterOperand(_ symbol: Token.Symbol) throws(Stop) {
    if take(symbol) { return }
    if openBrackets > 0, let last = tree.expressions.last, case .path = last.kind {
      throw fail(at: last.position, unexpectedText("expecting '\(symbol.rawValue)' after the path"))
    }
    throw unexpected("expecting '\(symbol.rawValue)'")
  }

  private mutating func primary() throws(Stop) -> ExpressionID {
    let position = token.position
    switch token.kind {
    case .keyword(.null): return literal(.null)
    case .keyword(.true): return literal(.bool(true))
    case .keyword(.false): return literal(.bool(false))
    case .float(let value): return literal(.float(value))
    case .string(let text): return literal(.string(text))
    case .bytes(let bytes): return literal(.bytes(bytes))
    case .integer(let digits):
      guard let value = Int64(digits) else {
        throw fail(at: position, "Invalid number literal \(digits).")
      }
      return literal(.int(value))
    case .identifier(let name):
      advance()
      guard token.kind == .symbol(.openParenthesis) else { return add(.name(name), at: position) }
      let arguments = try self.arguments()
      return add(.call(name, arguments), at: position)
    case .symbol(.openParenthesis): return try parenthesised()
    case .symbol(.openBracket):
      advance()
      let items = try self.items(until: .closeBracket)
      return add(.list(items), at: position)
    case .symbol(.openBrace): return try map()
    case .segment, .symbol(.slash): return try path()
    case .unpairedQuote(let quote): throw fail(at: token.position, "Missing a closing \(quote)")
    default: throw unexpected()
    }
  }

  private mutating func literal(_ kind: Expression.Kind) -> ExpressionID {
    add(kind, at: advance().position)
  }

  private mutating func parenthesised() throws(Stop) -> ExpressionID {
    let position = advance().position
    openBrackets += 1
    let inner = try expression()
    try expectAfterOperand(.closeParenthesis)
    openBrackets -= 1
    tree.expressions[Int(inner)].position = position
    tree.expressions[Int(inner)].parentheses += 1
    return inner
  }

  private mutating func map() throws(Stop) -> ExpressionID {
    let position = advance().position
    openBrackets += 1
    defer { openBrackets -= 1 }
    var entries: [(key: ExpressionID, value: ExpressionID)] = []
    while token.kind != .symbol(.closeBrace) {
      let key = try expression()
      try expectAfterOperand(.colon)
      entries.append((key, try expression()))
      if !take(.comma) { break }
    }
    try expectAfterOperand(.closeBrace)
    return add(.map(entries), at: position)
  }

  private mutating func path() throws(Stop) -> ExpressionID {
    let position = token.position
    var parts: [Expression.PathPart] = []
    while true {
      if case .segment(let text) = token.kind {
        parts.append(.literal(text.percentDecoded))
        advance()
        continue
      }
      guard token.kind == .symbol(.slash) else { break }
      switch peek().kind {
      case .symbol(.openBrace):
        guard case .identifier = peek(2).kind else {
          throw fail(at: token.position, "A placeholder has a name.")
        }
        advance()
        advance()
        let name = try identifier().name
        let isRest = take(.assign) && token.kind == .symbol(.doubleStar)
        _ = take(.doubleStar) || take(.star)
        try expect(.closeBrace)
        parts.append(.placeholder(name, isRest: isRest))
      case .symbol(.dollar):
        advance()
        advance()
        try expect(.openParenthesis)
        if token.kind == .symbol(.closeParenthesis) {
          throw fail(at: position, "Forward slash '/' found where identifier or binding expected.")
        }
        openBrackets += 1
        parts.append(.interpolation(try expression()))
        try expectAfterOperand(.closeParenthesis)
        openBrackets -= 1
      default:
        // A slash after a path is a division, as in `/a / b`. A slash that begins no segment is an error.
        if !parts.isEmpty { return add(.path(parts), at: position) }
        throw fail(
          at: token.position, "Forward slash '/' found where identifier or binding expected.")
      }
    }
    return add(.path(parts), at: position)
  }
}
