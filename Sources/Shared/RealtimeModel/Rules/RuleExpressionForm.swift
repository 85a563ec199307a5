// Checks the form of a rule expression: its tokens and grammar, a subset of JavaScript's expressions.
//
//   expr    := or [ "?" expr ":" expr ]
//   or      := and { "||" and }              and   := eq { "&&" eq }
//   eq      := rel { ("==" | "===" | "!=" | "!==") rel }
//   rel     := add { ("<" | "<=" | ">" | ">=") add }
//   add     := mul { ("+" | "-") mul }       mul   := unary { ("*" | "/" | "%") unary }
//   unary   := ("!" | "-") unary | postfix
//   postfix := primary { "." name | "[" expr "]" | "(" [ expr { "," expr } ] ")" }
//   primary := number | string | regex | true | false | null | name | "$"name | "(" expr ")" | list
//
// A list `[a, b]` occurs only as the argument of `hasChildren`. Names, types and arguments are not checked.

/// Checks the grammar of an expression, but not its meaning.
struct RuleExpressionForm {
  /// A syntax error in an expression, with its byte offset.
  struct Mistake: Error, Equatable {
    let offset: Int
    let message: String
  }

  /// The maximum nesting depth of expressions.
  static let maximumLevels = 128

  private var tokens: RuleTokens
  private var levels = 0

  /// The first syntax error of an expression; nil if it is well formed.
  static func mistake(in bytes: [UInt8]) -> Mistake? {
    var form = RuleExpressionForm(tokens: RuleTokens(bytes))
    do throws(Mistake) {
      try form.checkAll()
      return nil
    } catch { return error }
  }

  /// Whether the bytes are a name.
  static func isName(_ bytes: some Collection<UInt8>) -> Bool {
    guard let first = bytes.first, RuleTokens.beginsName(first) else { return false }
    return bytes.allSatisfy { RuleTokens.beginsName($0) || (0x30...0x39).contains($0) }
  }

  private init(tokens: RuleTokens) { self.tokens = tokens }

  private mutating func checkAll() throws(Mistake) {
    try tokens.advance()
    guard tokens.current != .end else { throw tokens.mistake("an expression") }
    try expression()
    guard tokens.current == .end else { throw tokens.mistake("an operator or the end of the expression") }
  }

  private mutating func expression() throws(Mistake) {
    levels += 1
    guard levels <= RuleExpressionForm.maximumLevels else {
      throw Mistake(
        offset: tokens.start,
        message: "Expressions may lie at most \(RuleExpressionForm.maximumLevels) levels deep.")
    }
    try binary(0)
    if try accept("?") {
      try expression()
      guard try accept(":") else { throw tokens.mistake("':'") }
      try expression()
    }
    levels -= 1
  }

  private static let operators: [Set<String>] = [
    ["||"], ["&&"], ["==", "===", "!=", "!=="], ["<", "<=", ">", ">="], ["+", "-"], ["*", "/", "%"],
  ]

  private mutating func binary(_ level: Int) throws(Mistake) {
    guard level < RuleExpressionForm.operators.count else { return try unary() }
    try binary(level + 1)
    while case .symbol(let symbol) = tokens.current, RuleExpressionForm.operators[level].contains(symbol) {
      try tokens.advance()
      try binary(level + 1)
    }
  }

  private mutating func unary() throws(Mistake) {
    while true {
      if try accept("!") { continue }
      if try accept("-") { continue }
      return try postfix()
    }
  }

  private mutating func postfix() throws(Mistake) {
    var name = try primary()
    while true {
      if try accept(".") {
        guard case .name(let member) = tokens.current else { throw tokens.mistake("a name") }
        name = member
        try tokens.advance()
      } else if try accept("[") {
        try expression()
        guard try accept("]") else { throw tokens.mistake("']'") }
        name = nil
      } else if try accept("(") {
        try arguments(of: name)
        name = nil
      } else {
        return
      }
    }
  }

  private mutating func arguments(of name: String?) throws(Mistake) {
    if try accept(")") { return }
    repeat {
      if tokens.current == .symbol("["), name == "hasChildren" { try list() } else { try expression() }
    } while try accept(",")
    guard try accept(")") else { throw tokens.mistake("',' or ')'") }
  }

  private mutating func list() throws(Mistake) {
    try tokens.advance()
    guard tokens.current != .symbol("]") else { throw tokens.mistake("a key") }
    repeat { try expression() } while try accept(",")
    guard try accept("]") else { throw tokens.mistake("',' or ']'") }
  }

  /// Checks an operand.
  ///
  /// - Returns: the name, if the operand is a name.
  private mutating func primary() throws(Mistake) -> String? {
    switch tokens.current {
    case .name(let name):
      try tokens.advance()
      return name
    case .literal, .wildcard: try tokens.advance()
    case .symbol("/"):
      try tokens.readRegularExpression()
      try tokens.advance()
    case .symbol("("):
      try tokens.advance()
      try expression()
      guard try accept(")") else { throw tokens.mistake("')'") }
    default: throw tokens.mistake("an operand")
    }
    return nil
  }

  private mutating func accept(_ symbol: String) throws(Mistake) -> Bool {
    guard tokens.current == .symbol(symbol) else { return false }
    try tokens.advance()
    return true
  }
}
