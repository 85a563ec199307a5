/// Checks the functions of a file: repeated names, limits, recursion and the depth of calls.
struct FunctionChecker: RuleWalker {
  let tree: SyntaxTree
  /// The findings.
  private(set) var issues: [RulesIssue] = []

  /// Maximum parameters of a function.
  static let maximumParameters = 7
  /// Maximum lets of a function. The published limit is 10; Google's compiler accepts 11.
  static let maximumLets = 11
  /// Maximum functions in a chain of calls.
  static let maximumCallDepth = 21

  private var functions: [(declaration: SyntaxTree.Function, calls: [Int])] = []

  init(_ tree: SyntaxTree) { self.tree = tree }

  /// Checks all functions.
  mutating func check() {
    for list in [tree.functions] + tree.services.map(\.functions) + tree.allMatches.map(\.functions) {
      var names = Set<String>()
      for function in list where !names.insert(function.name).inserted {
        error(function.position, "Function \(function.name) is already defined.")
      }
    }
    walk()
    checkRecursion()
  }

  private mutating func error(_ position: SourcePosition, _ text: String) {
    issues.append(RulesIssue(.error, at: position, text))
  }

  mutating func visit(_ function: SyntaxTree.Function, index: Int, scope: RuleScope) {
    if function.parameters.count > Self.maximumParameters {
      error(
        function.position,
        "Maximum allowed function arguments of \(Self.maximumParameters) for function \(function.name) is reached."
      )
    }
    if function.lets.count > Self.maximumLets {
      // Google's compiler reports the position after the first let above the limit.
      let next = function.lets.dropFirst(Self.maximumLets + 1).first?.start
      error(
        next ?? tree[function.result].position,
        "Maximum allowed variable count of 10 for a given function has been reached.")
    }
    if tree.version == .one {
      for variable in function.lets {
        error(variable.position, "Let bindings are not allowed in rules_version=\"1\";")
      }
    }
    var names = Set<String>()
    for variable in function.parameters + function.lets where !names.insert(variable.name).inserted {
      error(variable.position, "Variable \(variable.name) is already defined.")
    }
    var calls: [Int] = []
    for root in function.lets.compactMap(\.value) + [function.result] {
      tree.forEach(below: root) { expression in
        if case .call(let name, _) = expression.kind, let callee = scope.function(name) {
          calls.append(callee)
        }
      }
    }
    functions.append((function, calls))
  }

  mutating func visit(_ allow: SyntaxTree.Allow, in path: [SyntaxTree.Match], scope: RuleScope) {}

  /// Reports cycles of calls, and the first chain that is too long.
  private mutating func checkRecursion() {
    enum State { case unknown, active, finished(Int) }
    var states = Array(repeating: State.unknown, count: functions.count)
    var reported = Set<Int>()
    var trail: [Int] = []

    func depth(_ index: Int) -> Int {
      if case .finished(let depth) = states[index] { return depth }
      states[index] = .active
      trail.append(index)
      var deepest = 0
      for callee in functions[index].calls {
        if case .active = states[callee] {
          report(callee)
        } else {
          deepest = max(deepest, depth(callee))
        }
      }
      trail.removeLast()
      states[index] = .finished(deepest + 1)
      return deepest + 1
    }

    func report(_ callee: Int) {
      guard reported.insert(callee).inserted else { return }
      let cycle = trail[(trail.firstIndex(of: callee) ?? 0)...]
      let names = cycle.map { functions[$0].declaration.name }
      error(
        functions[callee].declaration.position,
        names.count == 1
          ? "Recursive call is not allowed."
          : "Detected a call cycle between [\(names.joined(separator: ","))] functions.")
    }

    guard let start = functions.indices.first(where: { depth($0) > Self.maximumCallDepth }) else { return }
    var chain = [start]
    while chain.count <= Self.maximumCallDepth,
      let next = functions[chain[chain.count - 1]].calls.max(by: { depth($0) < depth($1) })
    {
      chain.append(next)
    }
    let names = chain.dropLast().map { functions[$0].declaration.name }.joined(separator: "->")
    error(
      functions[chain[chain.count - 1]].declaration.position,
      "Maximum allowed call depth of 20 is reached for [\(names)] call stack.")
  }
}

extension SyntaxTree {
  /// Calls `body` with an expression and all expressions inside it, from left to right.
  func forEach(below root: ExpressionID, _ body: (Expression) -> Void) {
    var stack = [root]
    while let id = stack.popLast() {
      body(self[id])
      stack += self[id].children.reversed()
    }
  }
}
