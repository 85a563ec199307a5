/// One token of a rules file of Cloud Firestore.
struct Token: Equatable, Sendable {
  /// The kinds of tokens.
  enum Kind: Equatable, Sendable {
    /// An identifier that is not reserved.
    case identifier(String)
    /// A reserved word.
    case keyword(Keyword)
    /// An operator or bracket, such as `&&` or `{`.
    case symbol(Symbol)
    /// The segment directly after a slash, without the slash.
    case segment(String)
    /// Digits without a point. They may exceed 64 bits, since a sign may precede them.
    case integer(String)
    /// A number with a point.
    case float(Double)
    /// Text, its escapes replaced.
    case string(RuleText)
    /// Bytes, their escapes replaced.
    case bytes([UInt8])
    /// A quote that is not closed on its line.
    case unpairedQuote(String)
    /// The end of the file.
    case end
  }

  /// The reserved words.
  enum Keyword: String, Sendable {
    case service, match, allow, function, `return`, `let`, `if`, `is`, `in`, `true`, `false`, null
    case rulesVersion = "rules_version"
    case `import`
  }

  /// The operators and brackets.
  enum Symbol: String, Sendable {
    case openBrace = "{"
    case closeBrace = "}"
    case openParenthesis = "("
    case closeParenthesis = ")"
    case openBracket = "["
    case closeBracket = "]"
    case comma = ","
    case semicolon = ";"
    case colon = ":"
    case question = "?"
    case dot = "."
    case dollar = "$"
    case at = "@"
    case assign = "="
    case equal = "=="
    case notEqual = "!="
    case less = "<"
    case lessOrEqual = "<="
    case greater = ">"
    case greaterOrEqual = ">="
    case plus = "+"
    case minus = "-"
    case increment = "++"
    case decrement = "--"
    case star = "*"
    case doubleStar = "**"
    case slash = "/"
    case percent = "%"
    case not = "!"
    case and = "&&"
    case or = "||"
  }

  /// The token's kind and value.
  var kind: Kind
  /// The position of its first character.
  var position: SourcePosition
  /// The position of its last character.
  var end: SourcePosition
  /// Its characters in the file, for error messages.
  var text: String
}
