// The syntax tree of a rules file of Cloud Firestore.
//
// Expressions are elements of one array and refer to each other by index. So an operator chain of any length is
// released and scanned without recursion.

/// A parsed rules file.
package struct SyntaxTree: Sendable {
  /// A version of the rules language.
  package enum Version: String, Sendable {
    /// A `**` wildcard is the last segment and matches one segment or more.
    case one = "1"
    /// A `**` wildcard may be any segment and matches any number of segments, including none.
    case two = "2"
  }

  /// All expressions of the file.
  var expressions: [Expression] = []
  /// The version of the rules language.
  var version = Version.one
  /// The functions at file level.
  var functions: [Function] = []
  /// The service blocks.
  var services: [Service] = []

  /// A service block.
  struct Service: Sendable {
    var name: String
    var position: SourcePosition
    var functions: [Function] = []
    var matches: [Match] = []
  }

  /// A match block.
  struct Match: Sendable {
    /// The position of the keyword.
    var position: SourcePosition
    /// The position of the pattern.
    var patternPosition: SourcePosition
    var pattern: [PatternSegment]
    var functions: [Function] = []
    var matches: [Match] = []
    var allows: [Allow] = []
  }

  /// One segment of a match pattern.
  struct PatternSegment: Sendable {
    enum Kind: Hashable, Sendable {
      /// Exactly this text.
      case literal(String)
      /// Any one segment, bound to a name.
      case single(String)
      /// Any number of segments, bound to a name.
      case rest(String)
    }

    var kind: Kind
    /// The position of the name or text.
    var position: SourcePosition
  }

  /// An allow statement.
  struct Allow: Sendable {
    struct Method: Sendable {
      var name: String
      var position: SourcePosition
    }

    var position: SourcePosition
    var methods: [Method]
    /// The condition; nil allows always.
    var condition: ExpressionID?
  }

  /// A declared function.
  struct Function: Sendable {
    struct Variable: Sendable {
      var name: String
      var position: SourcePosition
      /// The position of the keyword; of the name if a keyword is missing.
      var start: SourcePosition
      /// The value of a `let`; nil for a parameter.
      var value: ExpressionID?
    }

    var name: String
    var position: SourcePosition
    var parameters: [Variable]
    var lets: [Variable]
    var result: ExpressionID
  }

  /// Adds an expression.
  mutating func add(_ expression: Expression) -> ExpressionID {
    expressions.append(expression)
    return ExpressionID(expressions.count - 1)
  }

  subscript(id: ExpressionID) -> Expression { expressions[Int(id)] }
}

/// The index of an expression in its tree.
package typealias ExpressionID = Int32

/// One expression of a rules file.
struct Expression: Sendable {
  /// A binary operator.
  enum Operator: String, Sendable {
    case or = "||"
    case and = "&&"
    case `in` = "in"
    case equal = "=="
    case notEqual = "!="
    case less = "<"
    case lessOrEqual = "<="
    case greater = ">"
    case greaterOrEqual = ">="
    case plus = "+"
    case minus = "-"
    case times = "*"
    case divided = "/"
    case modulo = "%"
  }

  /// A part of a path literal.
  enum PathPart: Sendable {
    /// A segment as written, percent-decoded.
    case literal(String)
    /// `{name}`, `{name=*}` or `{name=**}`, which a later `bind` replaces.
    case placeholder(String, isRest: Bool)
    /// `$(expression)`.
    case interpolation(ExpressionID)
  }

  /// The kinds of expressions.
  enum Kind: Sendable {
    case null
    case bool(Bool)
    case int(Int64)
    case float(Double)
    case string(RuleText)
    case bytes([UInt8])
    case name(String)
    case list([ExpressionID])
    case map([(key: ExpressionID, value: ExpressionID)])
    case path([PathPart])
    case member(ExpressionID, String)
    case index(ExpressionID, ExpressionID)
    case slice(ExpressionID, ExpressionID?, ExpressionID?)
    case call(String, [ExpressionID])
    case method(ExpressionID, String, [ExpressionID])
    case not(ExpressionID)
    case negate(ExpressionID)
    case binary(Operator, ExpressionID, ExpressionID)
    case type(ExpressionID, RuleType)
    case conditional(ExpressionID, ExpressionID, ExpressionID)
  }

  /// The expression's kind and parts.
  var kind: Kind
  /// The position of its first character, an opening parenthesis around it included.
  var position: SourcePosition
  /// The position that a warning about its type names: an operator, the name of a method, or the first character.
  var anchor: SourcePosition
  /// The position of its last character. Closing brackets and parentheses do not count, as in Google's coverage report.
  var end: SourcePosition
  /// The number of parentheses around it.
  var parentheses = 0

  /// The expressions directly inside this one, in the order of the file.
  var children: [ExpressionID] {
    switch kind {
    case .null, .bool, .int, .float, .string, .bytes, .name: []
    case .list(let items): items
    case .map(let entries): entries.flatMap { [$0.key, $0.value] }
    case .path(let parts):
      parts.compactMap { if case .interpolation(let id) = $0 { id } else { nil } }
    case .member(let base, _), .not(let base), .negate(let base), .type(let base, _): [base]
    case .index(let base, let index): [base, index]
    case .slice(let base, let from, let to): [base, from, to].compactMap { $0 }
    case .call(_, let arguments): arguments
    case .method(let base, _, let arguments): [base] + arguments
    case .binary(_, let left, let right): [left, right]
    case .conditional(let condition, let then, let otherwise): [condition, then, otherwise]
    }
  }
}

/// A type that `is` accepts.
package enum RuleType: String, Hashable, Sendable, CaseIterable {
  // Error messages list the types in this order.
  case bool, bytes, constraint, duration, float, int, latlng, list, vector, set, number, map, string,
    timestamp, path
  case mapDiff = "map_diff"
}
