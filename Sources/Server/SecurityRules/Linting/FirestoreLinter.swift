// Finds allow statements of Cloud Firestore that grant access to everyone or to every user, have no effect, or check
// less in `update` than in `create`. It also finds functions that hide others.

/// Checks a rules file of Cloud Firestore.
struct FirestoreLinter: RuleWalker {
  let tree: SyntaxTree
  private var found: Set<RuleFinding> = []
  private var functions: [(declaration: SyntaxTree.Function, scope: RuleScope)] = []
  private var statements: [Statement] = []
  private let opennessCache = OpennessCache()

  /// The openness of evaluated expressions: the callers to whom an expression grants access. A function is evaluated
  /// once, even if several functions call it.
  private final class OpennessCache {
    var values: [ExpressionID: RuleOpenness] = [:]
  }

  /// An allow statement with its position in the file.
  private struct Statement {
    let allow: SyntaxTree.Allow
    let path: [SyntaxTree.Match]
    let scope: RuleScope

    var methods: Set<RuleMethod> { Set(allow.methods.flatMap { RuleMethod.named($0.name) }) }
    /// The position of the block, which identifies it.
    var block: SourcePosition { path.last?.position ?? allow.position }
  }

  private init(_ tree: SyntaxTree) { self.tree = tree }

  /// The compiler's warnings and the findings, by position.
  static func findings(_ ruleset: FirestoreRuleset) -> [RuleFinding] {
    var parser = Parser(ruleset.source)
    parser.parse()
    var linter = FirestoreLinter(parser.tree)
    linter.walk()
    linter.checkStatements()
    for warning in ruleset.warnings {
      linter.found.insert(
        RuleFinding(
          line: warning.position?.line ?? 0, column: warning.position?.column ?? 0, text: warning.text))
    }
    return linter.found.sorted()
  }

  // MARK: Walk

  mutating func visit(_ function: SyntaxTree.Function, index: Int, scope: RuleScope) {
    functions.append((function, scope))
    if scope.functionLevels.dropLast().contains(where: { $0[function.name] != nil }) {
      add(function.position, "The function '\(function.name)' hides an outer function of the same name.")
    }
    for variable in function.parameters + function.lets where scope.wildcards.contains(variable.name) {
      add(variable.position, "'\(variable.name)' hides the wildcard of the same name.")
    }
  }

  mutating func visit(_ allow: SyntaxTree.Allow, in path: [SyntaxTree.Match], scope: RuleScope) {
    statements.append(Statement(allow: allow, path: path, scope: scope))
  }

  private mutating func add(_ position: SourcePosition, _ text: String) {
    found.insert(RuleFinding(position, text))
  }

  // MARK: Statements

  private mutating func checkStatements() {
    for statement in statements {
      checkPattern(statement)
      checkOpenness(statement)
      checkQueries(statement)
      checkStrings(statement)
    }
    for group in Dictionary(grouping: statements, by: \.block).values { checkUpdates(group) }
  }

  private mutating func checkPattern(_ statement: Statement) {
    let segments = statement.path.flatMap(\.pattern)
    if segments.contains(where: { if case .rest = $0.kind { true } else { false } }) && segments.count < 3 {
      return
    }
    let isBelowDocuments =
      segments.count > 3 && segments[0].kind == .literal("databases")
      && segments[2].kind == .literal("documents")
    guard !isBelowDocuments, let block = statement.path.last else { return }
    add(
      block.position,
      "No document has a path that this block covers: patterns begin with /databases/{database}/documents.")
  }

  private mutating func checkOpenness(_ statement: Statement) {
    let openness = openness(statement)
    let methods = statement.methods
    let isRead = !methods.isDisjoint(with: [.get, .list])
    let isWrite = !methods.isDisjoint(with: [.create, .update, .delete])
    let action = isRead && isWrite ? "read and write here" : isWrite ? "write here" : "read here"
    guard !methods.isEmpty, let warning = openness.warning(action) else { return }
    add(statement.allow.position, warning)
  }

  /// Compares the conditions for `create` and `update` in one block.
  private mutating func checkUpdates(_ block: [Statement]) {
    let creates = block.filter { $0.methods.contains(.create) }
    let updates = block.filter { $0.methods.contains(.update) }
    guard let create = creates.map({ openness($0) }).min(), create != .nobody,
      let weakest = updates.min(by: { openness($0) < openness($1) })
    else { return }
    let text = "A client that may not create a document can create a harmless one, and then update it."
    if openness(weakest) < create {
      add(weakest.allow.position, "'update' demands less than 'create'. \(text)")
    } else if creates.allSatisfy({ usesNewData($0) }),
      let unchecked = updates.first(where: { openness($0) == .selected && !usesNewData($0) })
    {
      add(
        unchecked.allow.position,
        "'create' checks the new data (request.resource), but 'update' does not. \(text)")
    }
  }

  // MARK: Openness

  private func openness(_ statement: Statement) -> RuleOpenness {
    guard let condition = statement.allow.condition else { return .everyone }
    return openness(condition, statement.scope)
  }

  private func openness(_ id: ExpressionID, _ scope: RuleScope) -> RuleOpenness {
    if let openness = opennessCache.values[id] { return openness }
    let openness = evaluateOpenness(id, scope)
    opennessCache.values[id] = openness
    return openness
  }

  private func evaluateOpenness(_ id: ExpressionID, _ scope: RuleScope) -> RuleOpenness {
    switch tree[id].kind {
    case .bool(let value): return value ? .everyone : .nobody
    case .binary(.and, let left, let right): return max(openness(left, scope), openness(right, scope))
    case .binary(.or, let left, let right): return min(openness(left, scope), openness(right, scope))
    case .conditional(_, let then, let otherwise):
      let openness = openness(then, scope)
      return openness == self.openness(otherwise, scope) ? openness : .selected
    case .binary(let comparison, let left, let right):
      if comparison == .notEqual, isNull(left) && isCaller(right) || isCaller(left) && isNull(right) {
        return .signedIn
      }
      if comparison == .equal, isNull(left) && isCaller(right) || isCaller(left) && isNull(right) {
        // Every client can omit its credentials.
        return .everyone
      }
      let isEarlier = [.less, .lessOrEqual].contains(comparison) && text(left) == "request.time"
      let isLater = [.greater, .greaterOrEqual].contains(comparison) && text(right) == "request.time"
      return isEarlier || isLater ? .everyoneUntil : .selected
    case .call(let name, _):
      guard let function = self.function(name, scope) else { return .selected }
      return openness(function.declaration.result, function.scope)
    default: return .selected
    }
  }

  private func isNull(_ id: ExpressionID) -> Bool {
    if case .null = tree[id].kind { return true }
    return false
  }

  private func isCaller(_ id: ExpressionID) -> Bool {
    ["request.auth", "request.auth.uid", "request.auth.token"].contains(text(id))
  }

  private func function(
    _ name: String, _ scope: RuleScope
  ) -> (declaration: SyntaxTree.Function, scope: RuleScope)? {
    guard let index = scope.function(name), functions.indices.contains(index) else { return nil }
    return functions[index]
  }

  // MARK: Parts of conditions

  /// A variable with its members, such as `request.auth.uid`; nil for another expression.
  private func text(_ id: ExpressionID) -> String? {
    switch tree[id].kind {
    case .name(let name): return name
    case .member(let base, let name): return text(base).map { "\($0).\(name)" }
    case .index(let base, let key):
      guard case .string(let name) = tree[key].kind else { return nil }
      return text(base).map { "\($0).\(name.string)" }
    default: return nil
    }
  }

  /// Calls `body` with the expressions of a condition, and with the expressions of every function that it calls.
  private func forEach(_ root: ExpressionID, _ scope: RuleScope, _ body: (ExpressionID) -> Void) {
    var stack = [(id: root, scope: scope)]
    var visited = Set<ExpressionID>()
    while let (id, scope) = stack.popLast() {
      guard visited.insert(id).inserted else { continue }
      body(id)
      stack += tree[id].children.map { ($0, scope) }
      if case .call(let name, _) = tree[id].kind, let function = self.function(name, scope) {
        stack.append((function.declaration.result, function.scope))
        stack += function.declaration.lets.compactMap(\.value).map { ($0, function.scope) }
      }
    }
  }

  private func uses(_ root: ExpressionID, _ scope: RuleScope, _ names: Set<String>) -> Bool {
    var isUsed = false
    forEach(root, scope) { if let text = text($0), names.contains(text) { isUsed = true } }
    return isUsed
  }

  private func usesNewData(_ statement: Statement) -> Bool {
    guard let condition = statement.allow.condition else { return false }
    return uses(condition, statement.scope, ["request.resource"])
  }

  // MARK: Queries

  private mutating func checkQueries(_ statement: Statement) {
    guard statement.methods.contains(.list), let condition = statement.allow.condition,
      let segment = statement.path.last?.pattern.last, openness(statement) != .nobody
    else { return }
    var names: Set<String> = ["resource.id", "resource.__name__"]
    if case .single(let name) = segment.kind, !name.isEmpty { names.insert(name) }
    var (documents, requests): ([ExpressionID: Bool], [ExpressionID: Bool]) = ([:], [:])
    if isNeeded(condition, statement.scope, names, &documents) {
      add(
        statement.allow.position,
        "No query can be allowed here unless it names the document: the condition needs the document's ID. "
          + "Allow 'get' by it, and 'list' by fields.")
    } else if isNeeded(condition, statement.scope, ["request.resource"], &requests) {
      add(
        statement.allow.position,
        "No query can be allowed here: the condition needs request.resource, which reads do not have.")
    }
  }

  /// Whether a condition can be true only by using one of these variables.
  /// - Parameter results: the results for functions that were evaluated.
  private func isNeeded(
    _ id: ExpressionID, _ scope: RuleScope, _ names: Set<String>, _ results: inout [ExpressionID: Bool]
  ) -> Bool {
    switch tree[id].kind {
    case .binary(.and, let left, let right):
      return isNeeded(left, scope, names, &results) || isNeeded(right, scope, names, &results)
    case .binary(.or, let left, let right):
      return isNeeded(left, scope, names, &results) && isNeeded(right, scope, names, &results)
    case .conditional(let condition, let then, let otherwise):
      return isNeeded(condition, scope, names, &results)
        || isNeeded(then, scope, names, &results) && isNeeded(otherwise, scope, names, &results)
    case .call(let name, let arguments):
      if arguments.contains(where: { uses($0, scope, names) }) { return true }
      guard let function = self.function(name, scope) else { return false }
      let result = function.declaration.result
      if let answer = results[result] { return answer }
      let answer = isNeeded(result, function.scope, names, &results)
      results[result] = answer
      return answer
    default: return uses(id, scope, names)
    }
  }

  // MARK: Strings

  private mutating func checkStrings(_ statement: Statement) {
    guard !statement.methods.isDisjoint(with: [.create, .update]), let condition = statement.allow.condition
    else { return }
    var strings: [(text: String, position: SourcePosition)] = []
    var bounded = Set<String>()
    forEach(condition, statement.scope) { id in
      switch tree[id].kind {
      case .type(let value, .string):
        if let text = text(value) { strings.append((text, tree[id].position)) }
      case .method(let base, "size", _), .method(let base, "matches", _):
        if let text = text(base) { bounded.insert(text) }
      case .binary(.equal, let left, let right), .binary(.in, let left, let right):
        for side in [left, right] { if let text = text(side) { bounded.insert(text) } }
      default: break
      }
    }
    for string in strings where !bounded.contains(string.text) {
      add(
        string.position,
        "The size of the string '\(string.text)' has no bound: a client may write up to 1 MiB. "
          + "Compare its size().")
    }
  }
}
