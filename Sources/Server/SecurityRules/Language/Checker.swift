// Checks a parsed rules file in the same stages as Google's compiler. The first stage checks patterns. The second
// checks packages that are used as variables, and the nesting of expressions. The third checks names, functions,
// arguments, types and regular expressions. If a stage finds errors, later stages do not run.

/// Checks a syntax tree and collects the findings.
struct Checker {
  let tree: SyntaxTree
  /// The findings.
  private(set) var issues: [RulesIssue] = []

  init(_ tree: SyntaxTree) { self.tree = tree }

  /// Runs all stages.
  mutating func check() {
    if tree.version == .one {
      issues.append(
        RulesIssue(
          .warning, at: nil,
          "Ruleset uses old version (version [1]). Please update to the latest version (version [2])."))
    }
    var patterns = PatternChecker(tree)
    patterns.check()
    issues += patterns.issues
    guard !hasErrors else { return }
    checkPackageNames()
    checkNesting()
    guard !hasErrors else { return }
    var functions = FunctionChecker(tree)
    functions.check()
    issues += functions.issues
    var types = TypeChecker(tree)
    types.check()
    issues += types.issues
  }

  private var hasErrors: Bool { issues.contains { $0.severity == .error } }

  /// Reports packages such as `math` that are used as a variable.
  private mutating func checkPackageNames() {
    func report(_ name: String, _ position: SourcePosition) {
      guard Builtin.packages.contains(name) else { return }
      issues.append(
        RulesIssue(.error, at: position, "\(name) is a package and cannot be used as variable name."))
    }
    var receivers = Set<ExpressionID>()
    for expression in tree.expressions {
      if case .method(let base, _, _) = expression.kind { receivers.insert(base) }
    }
    for (index, expression) in tree.expressions.enumerated() {
      if case .name(let name) = expression.kind, !receivers.contains(ExpressionID(index)) {
        report(name, expression.anchor)
      }
    }
    for function in tree.allFunctions {
      for variable in function.parameters + function.lets { report(variable.name, variable.position) }
    }
    for match in tree.allMatches {
      for segment in match.pattern {
        if case .literal = segment.kind { continue }
        for name in [segment].compactMap(\.name) { report(name, segment.position) }
      }
    }
  }

  /// The greatest depth of an expression. Parentheses count; chains of members and calls do not.
  static let maximumDepth = 99
  /// The maximum length of a chain of members. A longer chain would exceed the budget of the evaluation.
  static let maximumChain = 1000

  private mutating func checkNesting() {
    var roots = tree.allFunctions.flatMap { $0.lets.compactMap(\.value) + [$0.result] }
    for match in tree.allMatches { roots += match.allows.compactMap(\.condition) }
    // Uses an explicit stack, because a long chain of operators would overflow the call stack.
    var stack = roots.map { (id: $0, depth: 1, chain: 0) }
    while let (id, depth, chain) = stack.popLast() {
      let expression = tree[id]
      let expressionDepth = depth + expression.parentheses
      guard expressionDepth <= Self.maximumDepth, chain <= Self.maximumChain else {
        var position = expression.position
        position.column += max(0, min(expression.parentheses, Self.maximumDepth + 1 - depth))
        issues.append(
          RulesIssue(.error, at: position, "Expression is too complex to evaluate safely."))
        continue
      }
      let children = expression.children
      switch expression.kind {
      case .member, .index, .slice, .method:
        stack.append((children[0], expressionDepth, chain + 1))
        for child in children.dropFirst() { stack.append((child, expressionDepth + 1, 0)) }
      default: for child in children { stack.append((child, expressionDepth + 1, 0)) }
      }
    }
  }
}

extension SyntaxTree.PatternSegment {
  /// The wildcard's name.
  var name: String? {
    switch kind {
    case .single(let name), .rest(let name): name
    case .literal: nil
    }
  }
}

extension SyntaxTree {
  /// All match blocks, outer ones first.
  var allMatches: [Match] {
    func inside(_ match: Match) -> [Match] { [match] + match.matches.flatMap(inside) }
    return services.flatMap { $0.matches.flatMap(inside) }
  }

  /// All functions.
  var allFunctions: [Function] {
    functions + services.flatMap(\.functions) + allMatches.flatMap(\.functions)
  }
}
