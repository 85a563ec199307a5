// The syntax tree of a rule expression of the Realtime Database.
//
// Invariant: `depth` is at most ``RealtimeParser/maximumDepth``, so that recursion over the tree needs little stack.
// Operators of one precedence form one node: `a || b || c` is one level deep.

/// An expression, before its names and types are checked.
struct RealtimeSyntax: Sendable {
  indirect enum Kind: Sendable {
    case null
    case bool(Bool)
    case number(Double)
    case string(String)
    case pattern(Pattern)
    case name(String)
    case wildcard(String)
    case member(RealtimeSyntax, String)
    case element(RealtimeSyntax, RealtimeSyntax)
    case call(RealtimeSyntax, [RealtimeSyntax])
    case list([RealtimeSyntax])
    case not(RealtimeSyntax)
    case negative(RealtimeSyntax)
    /// `&&` between all operands.
    case all([RealtimeSyntax])
    /// `||` between all operands.
    case any([RealtimeSyntax])
    /// Operators of one precedence, applied from left to right.
    case chain(RealtimeSyntax, [(operation: RealtimeOperator, operand: RealtimeSyntax)])
    case conditional(RealtimeSyntax, RealtimeSyntax, RealtimeSyntax)
  }

  let kind: Kind
  /// The offset in the rule, in bytes of UTF-8, that a ``RealtimeFault`` in this expression reports: that of the
  /// operator, of a member's name, or of the first character.
  let offset: Int
  /// The bytes of the expression with its parts, without the parentheses around it.
  let range: Range<Int>
  /// The number of levels of the tree below and including this node.
  let depth: Int
}

/// An operator with two operands, except for `&&` and `||`.
enum RealtimeOperator: String, Hashable, Sendable {
  case equal = "=="
  case unequal = "!="
  case less = "<"
  case lessOrEqual = "<="
  case greater = ">"
  case greaterOrEqual = ">="
  case add = "+"
  case subtract = "-"
  case multiply = "*"
  case divide = "/"
  case remainder = "%"
}

extension RealtimeSymbol {
  /// The precedence of an operator with two operands, from 1 for `||`; nil for another symbol.
  var precedence: Int? {
    switch self {
    case .or: 1
    case .and: 2
    case .equal, .strictEqual, .unequal, .strictUnequal: 3
    case .less, .lessOrEqual, .greater, .greaterOrEqual: 4
    case .plus, .minus: 5
    case .star, .slash, .percent: 6
    default: nil
    }
  }

  /// The operator; nil for `&&`, `||` and other symbols. `==` and `===` are the same.
  var operation: RealtimeOperator? {
    switch self {
    case .equal, .strictEqual: .equal
    case .unequal, .strictUnequal: .unequal
    case .less: .less
    case .lessOrEqual: .lessOrEqual
    case .greater: .greater
    case .greaterOrEqual: .greaterOrEqual
    case .plus: .add
    case .minus: .subtract
    case .star: .multiply
    case .slash: .divide
    case .percent: .remainder
    default: nil
    }
  }
}
