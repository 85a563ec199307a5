// Compiles a checked syntax tree to a program: names become slots, literal patterns become automata, and calls that
// cannot succeed become faults.

/// Compiles a checked syntax tree.
struct RuleCompiler: RuleWalker {
  let tree: SyntaxTree
  /// The program compiled so far.
  private(set) var program = RuleProgram()
  private var scope = RuleScope()

  init(_ tree: SyntaxTree) {
    self.tree = tree
    program.version = tree.version
  }

  /// Compiles the file.
  mutating func compile() { walk() }

  mutating func visit(_ function: SyntaxTree.Function, index: Int, scope: RuleScope) {
    self.scope = scope
    self.scope.locals = function.parameters.map(\.name)
    var lets: [Int32] = []
    for variable in function.lets {
      guard let value = variable.value else { continue }
      lets.append(compile(value))
      self.scope.locals.append(variable.name)
    }
    let result = compile(function.result)
    precondition(
      program.functions.count == index, "invariant: functions are numbered in the order of the walk")
    program.functions.append(
      RuleProgram.Function(
        name: function.name, parameterCount: function.parameters.count, lets: lets, result: result,
        start: function.lets.first?.start))
    program.roots.append(.function(Int32(index)))
  }

  mutating func visit(_ allow: SyntaxTree.Allow, in path: [SyntaxTree.Match], scope: RuleScope) {
    // Skips blocks of other services, whose rules Cloud Firestore never evaluates.
    guard let service = tree.services.first(where: { $0.name == "cloud.firestore" }),
      service.matches.contains(where: { $0.position == path.first?.position })
    else { return }
    self.scope = scope
    let methods = allow.methods.flatMap { RuleMethod.named($0.name) }.reduce(0) { $0 | $1.bit }
    guard methods != 0 else { return }
    // The walk visits the statements block by block.
    if program.patterns.last?.block != path.last?.position || program.patterns.isEmpty {
      program.patterns.append(
        MatchPattern(
          path.flatMap(\.pattern).map(\.kind), version: tree.version, block: path.last?.position))
    }
    let condition = allow.condition.map { compile($0) } ?? -1
    program.statements.append(
      RuleProgram.Statement(
        pattern: program.patterns.count - 1, methods: methods, condition: condition, position: allow.position)
    )
    if condition >= 0 { program.roots.append(.condition(condition)) }
  }

  private mutating func add(
    _ node: RuleProgram.Node, _ position: SourcePosition, _ end: SourcePosition
  ) -> Int32 {
    program.nodes.append(node)
    program.positions.append(position)
    program.ends.append(end)
    return Int32(program.nodes.count - 1)
  }

  private mutating func children(_ nodes: [Int32]) -> RuleProgram.Children {
    let start = Int32(program.children.count)
    program.children += nodes
    return RuleProgram.Children(start: start, count: Int32(nodes.count))
  }

  private mutating func list(_ items: RuleProgram.Children) -> RuleProgram.Node {
    var values: [RuleValue] = []
    for item in program.children[items.range] {
      guard case .constant(let index) = program.nodes[Int(item)] else { return .list(items) }
      values.append(program.constants[Int(index)])
    }
    program.constants.append(.list(.built(values)))
    return .constantList(Int32(program.constants.count - 1), items)
  }

  private mutating func children(of ids: [ExpressionID]) -> RuleProgram.Children {
    let nodes = ids.map { compile($0) }
    return children(nodes)
  }

  private mutating func compile(_ id: ExpressionID) -> Int32 {
    let expression = tree[id]
    let node = node(of: expression)
    return add(node, expression.position, expression.end)
  }

  private mutating func node(of expression: Expression) -> RuleProgram.Node {
    switch expression.kind {
    case .null: return constant(.null)
    case .bool(let value): return constant(.bool(value))
    case .int(let value): return constant(.int(value))
    case .float(let value): return constant(.float(value))
    case .string(let value): return constant(.string(value))
    case .bytes(let value): return constant(.bytes(value))
    case .name(let name): return node(ofName: name)
    case .list(let items): return list(children(of: items))
    case .map(let entries): return .map(children(of: entries.flatMap { [$0.key, $0.value] }))
    case .path(let parts): return path(parts)
    case .member(let base, let name): return member(name, of: base)
    case .index(let base, let index): return .index(compile(base), compile(index))
    case .slice(let base, let from, let to):
      return .slice(compile(base), from: from.map { compile($0) } ?? -1, to: to.map { compile($0) } ?? -1)
    case .call(let name, let arguments): return call(name, arguments)
    case .method(let base, let name, let arguments): return method(name, of: base, arguments)
    case .not(let operand): return .not(compile(operand))
    case .negate(let operand): return .negate(compile(operand))
    case .binary(.and, let left, let right): return .and(compile(left), compile(right))
    case .binary(.or, let left, let right): return .or(compile(left), compile(right))
    case .binary(let op, let left, let right): return .binary(op, compile(left), compile(right))
    case .type(let base, let type): return .type(compile(base), type)
    case .conditional(let condition, let then, let otherwise):
      return .conditional(compile(condition), compile(then), compile(otherwise))
    }
  }

  private mutating func constant(_ value: RuleValue) -> RuleProgram.Node {
    program.constants.append(value)
    return .constant(Int32(program.constants.count - 1))
  }

  private mutating func fault(_ fault: RuleFault, after operands: RuleProgram.Children) -> RuleProgram.Node {
    program.faults.append(fault)
    return .fault(Int32(program.faults.count - 1), operands)
  }

  private mutating func path(_ parts: [Expression.PathPart]) -> RuleProgram.Node {
    let compiled = parts.map { part -> RuleProgram.PathPart in
      switch part {
      case .literal(let text): .segment(.text(RuleText(text)))
      case .placeholder(let name, let isRest): .segment(.placeholder(name, isRest: isRest))
      case .interpolation(let id): .interpolation(compile(id))
      }
    }
    program.paths.append(compiled)
    return .path(Int32(program.paths.count - 1))
  }

  private func node(ofName name: String) -> RuleProgram.Node {
    if let slot = scope.local(name) { return .local(Int32(slot)) }
    if let slot = scope.wildcard(name) { return .wildcard(Int32(slot)) }
    return switch name {
    case "request": .request
    case "resource": .resource
    default: .undeclared
    }
  }

  private mutating func member(_ name: String, of base: ExpressionID) -> RuleProgram.Node {
    if case .name("request") = tree[base].kind, case .request = node(ofName: "request"),
      let member = RuleProgram.RequestMember(rawValue: name)
    {
      return .requestMember(member)
    }
    let receiver = compile(base)
    program.names.append(RuleText(name))
    return .member(receiver, Int32(program.names.count - 1))
  }

  private mutating func call(_ name: String, _ arguments: [ExpressionID]) -> RuleProgram.Node {
    let nodes = children(of: arguments)
    guard let function = scope.function(name) else { return builtin(name, nodes) }
    return .call(function: Int32(function), nodes)
  }

  private mutating func builtin(_ name: String, _ nodes: RuleProgram.Children) -> RuleProgram.Node {
    guard let builtin = Builtin(rawValue: name) else { return fault(.functionNotFound(name), after: nodes) }
    if builtin.argumentCount.map({ $0 != nodes.count }) ?? (nodes.count == 0) {
      return fault(.argumentCount(name), after: nodes)
    }
    return .builtin(builtin, nodes)
  }

  private mutating func method(
    _ name: String, of base: ExpressionID, _ arguments: [ExpressionID]
  ) -> RuleProgram.Node {
    if case .name(let package) = tree[base].kind, Builtin.packages.contains(package) {
      return builtin("\(package).\(name)", children(of: arguments))
    }
    let receiver = compile(base)
    let nodes = children(of: arguments)
    guard let method = Method(rawValue: name) else {
      return fault(.functionNotFound(name), after: children([receiver]))
    }
    guard nodes.count == method.argumentCount else {
      return fault(.argumentCount(name), after: children([receiver]))
    }
    if [.matches, .split, .replace].contains(method), case .string(let text) = tree[arguments[0]].kind,
      let regex = try? RuleRegex(text, for: method)
    {
      program.regexes.append(regex)
      return .pattern(receiver, method, Int32(program.regexes.count - 1), nodes)
    }
    // Computes the Unicode tables now, so that no evaluation waits for them.
    if [.matches, .split, .replace].contains(method) { UnicodeSets.prepare() }
    return .method(receiver, method, nodes)
  }
}
