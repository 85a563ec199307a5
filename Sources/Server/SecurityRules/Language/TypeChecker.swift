// Warns of names that nothing declares, of calls with wrong arguments, and of types that cannot fit; reports literal
// regular expressions with errors. Warnings never change a verdict: evaluation checks types itself.

/// Checks names, arguments, types and literal patterns.
struct TypeChecker: RuleWalker {
  let tree: SyntaxTree
  /// The findings.
  var issues: [RulesIssue] = []
  private var usedFunctions = Set<Int>()
  private var declarations: [SyntaxTree.Function] = []
  private var scope = RuleScope()
  private var usedLocals = Set<Int>()

  init(_ tree: SyntaxTree) { self.tree = tree }

  /// Checks the file.
  mutating func check() {
    // Collects all declarations first, because calls may name functions that are declared later.
    var collector = FunctionCollector(tree: tree)
    collector.walk()
    declarations = collector.functions
    walk()
    for (index, function) in declarations.enumerated() where !usedFunctions.contains(index) {
      warn(function.position, "Unused function: \(function.name).")
    }
  }

  mutating func warn(_ position: SourcePosition, _ text: String) {
    issues.append(RulesIssue(.warning, at: position, text))
  }

  mutating func visit(_ function: SyntaxTree.Function, index: Int, scope: RuleScope) {
    self.scope = scope
    self.scope.locals = function.parameters.map(\.name)
    usedLocals = []
    for variable in function.lets {
      if let value = variable.value { _ = check(value) }
      self.scope.locals.append(variable.name)
    }
    _ = check(function.result)
    for (slot, variable) in (function.parameters + function.lets).enumerated()
    where !usedLocals.contains(slot) { warn(variable.position, "Unused variable: \(variable.name).") }
  }

  mutating func visit(_ allow: SyntaxTree.Allow, in path: [SyntaxTree.Match], scope: RuleScope) {
    self.scope = scope
    for method in allow.methods where RuleMethod.named(method.name).isEmpty {
      warn(method.position, "Invalid method name: \(method.name).")
    }
    guard let condition = allow.condition else { return }
    if case .conditional = tree[condition].kind {
      _ = check(condition, expecting: [.bool])
    } else if let types = check(condition), !types.contains(.bool) {
      warn(
        tree[condition].anchor,
        "Invalid type. Permission statements expect a boolean value. Received one of \(Self.list(types)).")
    }
  }

  static func list(_ types: [StaticType]) -> String { "[\(types.map(\.rawValue).joined(separator: ", "))]" }

  /// Checks an expression.
  ///
  /// - Parameter expected: the types that its position takes.
  /// - Returns: the types that it may have.
  mutating func check(_ id: ExpressionID, expecting expected: StaticTypes = nil) -> StaticTypes {
    if case .conditional(let condition, let then, let otherwise) = tree[id].kind {
      _ = check(condition, expecting: [.bool])
      let (first, second) = (check(then, expecting: expected), check(otherwise, expecting: expected))
      if expected == nil, let first, let second, !Self.areComparable(first, second) {
        warn(
          tree[id].anchor,
          "Ternary operator result if condition is true has a different type than if condition is false.")
      }
      return nil
    }
    let types = typesOfOperation(id)
    if let expected, let types, !types.contains(where: expected.contains) {
      warn(
        tree[id].anchor,
        "Invalid type. Received one of \(Self.list(types)). Expected one of \(Self.list(expected)).")
    }
    return types
  }

  private static func areComparable(_ first: [StaticType], _ second: [StaticType]) -> Bool {
    let numbers: [StaticType] = [.int, .float]
    if first.contains(where: numbers.contains), second.contains(where: numbers.contains) { return true }
    return first.contains(where: second.contains)
  }

  private mutating func typesOfOperation(_ id: ExpressionID) -> StaticTypes {
    let expression = tree[id]
    switch expression.kind {
    case .null: return [.null]
    case .bool: return [.bool]
    case .int: return [.int]
    case .float: return [.float]
    case .string: return [.string]
    case .bytes: return [.bytes]
    case .name(let name): return typesOfName(name, expression)
    case .list(let items):
      for item in items { _ = check(item) }
      return [.list]
    case .map(let entries):
      for entry in entries {
        _ = check(entry.key, expecting: [.string])
        _ = check(entry.value)
      }
      return [.map]
    case .path(let parts):
      for case .interpolation(let part) in parts {
        _ = check(part, expecting: [.path, .null, .int, .float, .string, .bool])
      }
      return [.path]
    case .member(let base, _):
      _ = check(base, expecting: [.map])
      return nil
    case .index(let base, let index):
      _ = check(base, expecting: [.string, .list, .map, .path])
      _ = check(index, expecting: [.int, .string])
      return nil
    case .slice(let base, let from, let to):
      _ = check(base, expecting: [.string, .list, .path])
      for bound in [from, to].compactMap({ $0 }) { _ = check(bound, expecting: [.null, .int]) }
      return [.string, .list, .path]
    case .call(let name, let arguments): return typesOfCall(name, arguments, expression)
    case .method(let base, let name, let arguments): return typesOfMethod(base, name, arguments, expression)
    case .not(let operand):
      _ = check(operand, expecting: [.bool])
      return [.bool]
    case .negate(let operand):
      _ = check(operand, expecting: [.int, .float, .duration])
      return [.int, .float, .duration]
    case .binary(let op, let left, let right): return typesOfBinary(op, left, right, expression)
    case .type(let base, _):
      _ = check(base)
      return [.bool]
    case .conditional: return nil
    }
  }

  private mutating func typesOfName(_ name: String, _ expression: Expression) -> StaticTypes {
    if let slot = scope.local(name) {
      usedLocals.insert(slot)
      return nil
    }
    if scope.wildcard(name) != nil { return [.string, .path] }
    if name != "request", name != "resource" {
      warn(expression.anchor, "Invalid variable name: \(name).")
    }
    return nil
  }

  private mutating func typesOfBinary(
    _ op: Expression.Operator, _ left: ExpressionID, _ right: ExpressionID, _ expression: Expression
  ) -> StaticTypes {
    switch op {
    case .and, .or:
      _ = check(left, expecting: [.bool])
      _ = check(right, expecting: [.bool])
      return [.bool]
    case .in:
      _ = check(left)
      _ = check(right, expecting: [.list, .set, .map, .constraint])
      return [.bool]
    case .equal, .notEqual:
      let (first, second) = (check(left), check(right))
      if let first, let second, !Self.areComparable(first, second) {
        warn(
          expression.anchor,
          "The sub-expressions are not comparable, so this comparison will always return \(op == .notEqual).")
      }
      return [.bool]
    case .less, .lessOrEqual, .greater, .greaterOrEqual:
      _ = check(left)
      _ = check(right)
      return [.bool]
    case .plus: return checkOperands(left, right, [.int, .float, .string, .duration, .timestamp], nil)
    case .minus:
      return checkOperands(
        left, right, [.int, .float, .duration, .timestamp], [.int, .float, .duration, .timestamp])
    case .times, .divided, .modulo: return checkOperands(left, right, [.int, .float], [.int, .float])
    }
  }

  private mutating func checkOperands(
    _ left: ExpressionID, _ right: ExpressionID, _ expected: [StaticType], _ result: StaticTypes
  ) -> StaticTypes {
    _ = check(left, expecting: expected)
    _ = check(right, expecting: expected)
    return result
  }

  private mutating func typesOfCall(
    _ name: String, _ arguments: [ExpressionID], _ expression: Expression
  ) -> StaticTypes {
    if let index = scope.function(name) {
      usedFunctions.insert(index)
      for argument in arguments { _ = check(argument) }
      if declarations[index].parameters.count != arguments.count {
        warn(expression.anchor, "Incorrect number of arguments supplied to function: \(name).")
      }
      return nil
    }
    return typesOfBuiltin(name, arguments, expression)
  }

  private mutating func typesOfBuiltin(
    _ name: String, _ arguments: [ExpressionID], _ expression: Expression
  ) -> StaticTypes {
    guard let builtin = Builtin(rawValue: name) else {
      warn(expression.anchor, "Invalid function name: \(name).")
      for argument in arguments { _ = check(argument) }
      return nil
    }
    let isCountRight = builtin.argumentCount.map { $0 == arguments.count } ?? !arguments.isEmpty
    return checkArguments(
      arguments, of: Signature.of(builtin), isCountRight: isCountRight, name: name, expression)
  }

  private mutating func typesOfMethod(
    _ base: ExpressionID, _ name: String, _ arguments: [ExpressionID], _ expression: Expression
  ) -> StaticTypes {
    if case .name(let package) = tree[base].kind, Builtin.packages.contains(package) {
      return typesOfBuiltin("\(package).\(name)", arguments, expression)
    }
    guard let method = Method(rawValue: name) else {
      warn(expression.anchor, "Invalid function name: \(name).")
      _ = check(base)
      for argument in arguments { _ = check(argument) }
      return nil
    }
    let signature = Signature.of(method)
    _ = check(base, expecting: signature.receivers)
    if method == .matches || method == .split, arguments.count == 1 { checkPattern(arguments[0], method) }
    return checkArguments(
      arguments, of: signature, isCountRight: arguments.count == method.argumentCount, name: name, expression)
  }

  private mutating func checkArguments(
    _ arguments: [ExpressionID], of signature: Signature, isCountRight: Bool, name: String,
    _ expression: Expression
  ) -> StaticTypes {
    if !isCountRight {
      warn(expression.anchor, "Incorrect number of arguments supplied to function: \(name).")
    }
    for (index, argument) in arguments.enumerated() {
      let expected = isCountRight && index < signature.arguments.count ? signature.arguments[index] : nil
      _ = check(argument, expecting: expected)
    }
    return isCountRight ? signature.result : nil
  }

  private mutating func checkPattern(_ argument: ExpressionID, _ method: Method) {
    guard case .string(let text) = tree[argument].kind else { return }
    do {
      _ = try RuleRegex(text, for: method)
    } catch {
      issues.append(RulesIssue(.error, at: tree[argument].anchor, error.text))
    }
  }
}

/// Collects the functions of a file in the order of a walk.
private struct FunctionCollector: RuleWalker {
  let tree: SyntaxTree
  var functions: [SyntaxTree.Function] = []

  mutating func visit(_ function: SyntaxTree.Function, index: Int, scope: RuleScope) {
    functions.append(function)
  }

  mutating func visit(_ allow: SyntaxTree.Allow, in path: [SyntaxTree.Match], scope: RuleScope) {}
}
