// The compiled form of a rules file.
//
// Nodes are elements of one array and refer to each other by index. Names are resolved to numbers, called slots: a
// wildcard has a slot of the matched pattern, and a parameter or `let` has a slot of the call. Evaluation therefore
// compares no names except the fields that rules read.

import FirestoreModel

/// A compiled rules file of Cloud Firestore.
package struct RuleProgram: Sendable {
  /// One operation of the program. Its payloads are indices of nodes or of the program's tables.
  enum Node: Sendable {
    /// A literal, in `constants`.
    case constant(Int32)
    /// A name that nothing declares.
    case undeclared
    /// A parameter or `let` of the current call.
    case local(Int32)
    /// A wildcard of the matched pattern, by its order from the left.
    case wildcard(Int32)
    case request
    case requestMember(RequestMember)
    case resource
    case list(Children)
    /// A list of literals; the list is in `constants`.
    case constantList(Int32, Children)
    /// Keys and values alternate.
    case map(Children)
    /// A path literal, in `paths`.
    case path(Int32)
    /// A member of a value; its name is in `names`.
    case member(Int32, Int32)
    case index(Int32, Int32)
    /// A missing end is −1.
    case slice(Int32, from: Int32, to: Int32)
    case call(function: Int32, Children)
    case builtin(Builtin, Children)
    case method(Int32, Method, Children)
    /// A method call whose pattern is a literal and therefore compiled, in `regexes`.
    case pattern(Int32, Method, Int32, Children)
    /// A call that always fails after its operands are evaluated, such as a call of an unknown function. The
    /// fault is in `faults`.
    case fault(Int32, Children)
    case not(Int32)
    case negate(Int32)
    case and(Int32, Int32)
    case or(Int32, Int32)
    case binary(Expression.Operator, Int32, Int32)
    case type(Int32, RuleType)
    case conditional(Int32, Int32, Int32)
  }

  /// The children of a node: a range of `children`.
  struct Children: Sendable {
    var start: Int32
    var count: Int32
    var range: Range<Int> { Int(start)..<Int(start + count) }
  }

  /// A part of a path literal.
  enum PathPart: Sendable {
    case segment(RulePath.Segment)
    case interpolation(Int32)
  }

  /// A member of `request`.
  enum RequestMember: String, Sendable, CaseIterable {
    case auth, method, path, time, resource, query
  }

  /// A function of the file.
  struct Function: Sendable {
    var name: String
    var parameterCount: Int
    /// The values of the lets, in order.
    var lets: [Int32]
    var result: Int32
    /// The position of the first let; nil without lets.
    var start: SourcePosition?
  }

  /// An expression that is not part of another one.
  enum Root: Sendable {
    /// The body of a function, by its index.
    case function(Int32)
    /// The condition of an allow statement, by its node.
    case condition(Int32)
  }

  /// An allow statement with its complete pattern.
  struct Statement: Sendable {
    /// Index of the pattern.
    var pattern: Int
    /// The methods, by ``RuleMethod/bit``.
    var methods: UInt8
    /// The condition; −1 allows always.
    var condition: Int32
    var position: SourcePosition
  }

  /// The expressions of the file, which refer to each other by index.
  var nodes: [Node] = []
  /// The literals.
  var constants: [RuleValue] = []
  /// The names of members.
  var names: [RuleText] = []
  /// The path literals.
  var paths: [[PathPart]] = []
  /// The faults of calls that always fail.
  var faults: [RuleFault] = []
  /// The children of all nodes with a variable number of children. Each such node has a range of this array.
  var children: [Int32] = []
  /// The position of each node's first character.
  var positions: [SourcePosition] = []
  /// The position of each node's last character, without closing brackets.
  var ends: [SourcePosition] = []
  /// The bodies of functions and the conditions, in the order of a walk over the file.
  var roots: [Root] = []
  /// The functions of the file.
  var functions: [Function] = []
  /// The patterns of blocks with allow statements, in the order of the file.
  var patterns: [MatchPattern] = []
  /// The allow statements, in the order of the file.
  var statements: [Statement] = []
  /// Patterns that are literals, compiled.
  var regexes: [RuleRegex] = []
  /// The version of the file.
  var version = SyntaxTree.Version.one
  /// The source text, which denials for operators quote.
  package var source = ""
  /// The warnings of the compiler.
  package var warnings: [RulesIssue] = []

  /// Compiles a rules file.
  ///
  /// - Throws: all findings, if one of them is an error.
  package init(compiling source: String) throws(RulesError) {
    guard source.utf8.count <= Self.maximumSourceBytes else {
      throw RulesError([
        RulesIssue(.error, at: nil, "Rules content exceeds \(Self.maximumSourceBytes) bytes.")
      ])
    }
    var parser = Parser(source)
    parser.parse()
    if parser.issues.contains(where: { $0.severity == .error }) { throw RulesError(parser.issues) }
    var checker = Checker(parser.tree)
    checker.check()
    if checker.issues.contains(where: { $0.severity == .error }) { throw RulesError(checker.issues) }
    var compiler = RuleCompiler(parser.tree)
    compiler.compile()
    self = compiler.program
    self.source = source
    warnings = Array(Set(checker.issues)).sorted()
  }

  init() {}

  /// The limit of a rules file, in bytes of UTF-8.
  package static let maximumSourceBytes = 256 * 1024
}

/// A method that a rule allows.
package enum RuleMethod: String, Hashable, Sendable, CaseIterable {
  case get, list, create, update, delete

  /// The bit that represents the method in a set of methods.
  var bit: UInt8 {
    switch self {
    case .get: 1
    case .list: 2
    case .create: 4
    case .update: 8
    case .delete: 16
    }
  }

  /// The methods that a name in an allow statement means, without regard to case; none for an unknown name.
  static func named(_ name: String) -> [RuleMethod] {
    switch name.lowercased() {
    case "read": [.get, .list]
    case "write": [.create, .update, .delete]
    case let name: RuleMethod(rawValue: name).map { [$0] } ?? []
    }
  }
}
