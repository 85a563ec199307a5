// The names that are visible at a position of a rules file.
//
// The checker and the compiler walk the file with the same scopes, so that a name means the same to both.

/// The names that are visible at a position of a rules file.
struct RuleScope {
  /// The functions of each enclosing level, by name; the innermost level last. A function is identified by its number in
  /// the order of declarations.
  private(set) var functionLevels: [[String: Int]] = []
  /// The wildcards of the enclosing patterns, from the left.
  private(set) var wildcards: [String] = []
  /// The parameters and visible lets of the enclosing function.
  var locals: [String] = []

  /// The function that a name calls.
  func function(_ name: String) -> Int? {
    for level in functionLevels.reversed() {
      if let index = level[name] { return index }
    }
    return nil
  }

  /// The slot of a parameter or let. ``FunctionChecker`` reports a later let of the same name as an error.
  func local(_ name: String) -> Int? { locals.lastIndex { $0 == name } }

  /// The slot of a wildcard; the innermost of the same name.
  func wildcard(_ name: String) -> Int? { wildcards.lastIndex { $0 == name } }

  /// The scope inside a block that declares functions and wildcards.
  func inside(functions: [String: Int], wildcards: [String] = []) -> RuleScope {
    var scope = self
    scope.functionLevels.append(functions)
    scope.wildcards += wildcards
    return scope
  }
}

/// A walk over all declarations of a file, in the order of their positions, with the scope of each.
protocol RuleWalker {
  var tree: SyntaxTree { get }
  /// Visits a function with the scope of its declaration.
  mutating func visit(_ function: SyntaxTree.Function, index: Int, scope: RuleScope)
  /// Visits an allow statement. `path` holds the enclosing blocks, the outermost first.
  mutating func visit(_ allow: SyntaxTree.Allow, in path: [SyntaxTree.Match], scope: RuleScope)
}

extension RuleWalker {
  /// Walks over the file. Functions are numbered in this order.
  mutating func walk() {
    var counter = 0
    let file = walkLevel(tree.functions, scope: RuleScope(), wildcards: [], &counter)
    for service in tree.services {
      let scope = walkLevel(service.functions, scope: file, wildcards: [], &counter)
      for match in service.matches { walk(match, path: [], scope: scope, &counter) }
    }
  }

  /// Visits the functions of a level, and returns the scope inside the level.
  private mutating func walkLevel(
    _ functions: [SyntaxTree.Function], scope: RuleScope, wildcards: [String], _ counter: inout Int
  ) -> RuleScope {
    var names: [String: Int] = [:]
    for (offset, function) in functions.enumerated() where names[function.name] == nil {
      names[function.name] = counter + offset
    }
    let inner = scope.inside(functions: names, wildcards: wildcards)
    for (offset, function) in functions.enumerated() {
      visit(function, index: counter + offset, scope: inner)
    }
    counter += functions.count
    return inner
  }

  private mutating func walk(
    _ match: SyntaxTree.Match, path: [SyntaxTree.Match], scope: RuleScope, _ counter: inout Int
  ) {
    let scope = walkLevel(match.functions, scope: scope, wildcards: match.wildcardNames, &counter)
    let path = path + [match]
    for inner in match.matches { walk(inner, path: path, scope: scope, &counter) }
    for allow in match.allows { visit(allow, in: path, scope: scope) }
  }
}

extension SyntaxTree.Match {
  /// The names of the wildcards in the pattern of this block, from the left.
  var wildcardNames: [String] {
    pattern.compactMap { segment in
      switch segment.kind {
      case .single(let name), .rest(let name): name
      case .literal: nil
      }
    }
  }
}
