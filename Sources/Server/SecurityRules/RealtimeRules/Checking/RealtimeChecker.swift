// Checks the names, types and arguments of a rule expression of the Realtime Database, before the rules take effect.
//
// Types are exact where the language knows them. Operands of type `primitive` and `any` are checked again when they are
// evaluated. `!`, `&&`, `||` and `?:` take operands whose type is known to be boolean.

import Access
import RealtimeModel

/// Checks one expression.
struct RealtimeChecker {
  /// The wildcards from the root to the rule, with their `$`.
  let wildcards: [String]
  /// Whether the rule may use `newData`: all rules except `.read` may.
  let isWrite: Bool
  /// Collects the expressions whose values are recorded; nil to record none.
  var marks: RealtimeMarks?

  typealias Checked = (term: RealtimeTerm, type: RealtimeType)

  /// Parses and checks the expression of a rule, which must be of type boolean.
  ///
  /// - Parameter patternInstructions: increased by the compiled size of the regular expressions.
  func check(_ text: String, patternInstructions: inout Int) throws(RealtimeFault) -> RealtimeTerm {
    let syntax = try RealtimeParser.parse(text, patternInstructions: &patternInstructions)
    let (term, type) = try check(syntax)
    guard type == .boolean else {
      throw RealtimeFault(
        offset: syntax.offset, message: "A rule must be of type boolean, not \(type.rawValue).")
    }
    return term
  }

  private func check(_ syntax: RealtimeSyntax) throws(RealtimeFault) -> Checked {
    let (term, type) = try checkUnmarked(syntax)
    guard let marks, type != .query else { return (term, type) }
    if case .constant = term { return (term, type) }
    return (.marked(marks.add(syntax.range), term), type)
  }

  private func checkUnmarked(_ syntax: RealtimeSyntax) throws(RealtimeFault) -> Checked {
    switch syntax.kind {
    case .null: return (.constant(.null), .null)
    case .bool(let value): return (.constant(.bool(value)), .boolean)
    case .number(let value): return (.constant(.number(value)), .number)
    case .string(let value): return (.constant(.string(value)), .string)
    case .pattern: throw fault(syntax, "A regular expression may stand as the argument of matches() only.")
    case .list: throw fault(syntax, "A list may stand as the argument of hasChildren() only.")
    case .name(let name): return try variable(name, syntax)
    case .wildcard(let name):
      guard let index = wildcards.firstIndex(where: { $0.utf8.elementsEqual(name.utf8) }) else {
        throw fault(syntax, "Unknown variable '\(name)'.")
      }
      return (.capture(index), .string)
    case .member(let base, let name): return try member(try check(base), name, syntax)
    case .element(let base, let key): return try element(base, key, syntax)
    case .call(let callee, let arguments): return try call(callee, arguments, syntax)
    case .not(let operand): return (.not(try boolean(operand, "The operand of !")), .boolean)
    case .negative(let operand):
      let (term, type) = try check(operand)
      guard type.mayBeNumber else { throw fault(operand, "The operand of - must be a number.") }
      return (.negative(term), .number)
    case .all(let operands): return (.all(try booleans(operands, "&&")), .boolean)
    case .any(let operands): return (.any(try booleans(operands, "||")), .boolean)
    case .chain(let first, let steps): return try chain(first, steps)
    case .conditional(let condition, let first, let second):
      return try conditional(condition, first, second, syntax)
    }
  }

  private func fault(_ syntax: RealtimeSyntax, _ message: String) -> RealtimeFault {
    RealtimeFault(offset: syntax.offset, message: message)
  }

  // MARK: Names

  private func variable(_ name: String, _ syntax: RealtimeSyntax) throws(RealtimeFault) -> Checked {
    switch name {
    case "auth": return (.auth, .any)
    case "now": return (.now, .number)
    case "root": return (.snapshot(.root), .snapshot)
    case "data": return (.snapshot(.data), .snapshot)
    case "newData" where isWrite: return (.snapshot(.newData), .snapshot)
    case "query" where !isWrite: return (.constant(.null), .query)
    default: throw fault(syntax, "Unknown variable '\(name)'.")
    }
  }

  private func unknownMember(_ name: String, _ syntax: RealtimeSyntax) -> RealtimeFault {
    fault(syntax, "No such method/property '\(name)'.")
  }

  private func member(
    _ base: Checked, _ name: String, _ syntax: RealtimeSyntax
  ) throws(RealtimeFault) -> Checked {
    switch base.type {
    case .any: return (.property(base.term, name), .any)
    case .string, .primitive:
      guard name == "length" else { throw unknownMember(name, syntax) }
      return (.property(base.term, name), .number)
    case .query:
      guard let field = RealtimeQueryField(rawValue: name) else { throw unknownMember(name, syntax) }
      return (.query(field), field.type)
    case .boolean, .number, .null, .pattern, .snapshot, .list: throw unknownMember(name, syntax)
    }
  }

  private func element(
    _ base: RealtimeSyntax, _ key: RealtimeSyntax, _ syntax: RealtimeSyntax
  ) throws(RealtimeFault) -> Checked {
    let checked = try check(base)
    if case .string(let name) = key.kind { return try member(checked, name, syntax) }
    let (term, type) = try check(key)
    guard checked.type == .any, type.isComparable else { throw fault(syntax, "Invalid property access.") }
    return (.element(checked.term, term), .any)
  }

  // MARK: Calls

  private func call(
    _ callee: RealtimeSyntax, _ arguments: [RealtimeSyntax], _ syntax: RealtimeSyntax
  ) throws(RealtimeFault) -> Checked {
    let base: RealtimeSyntax
    let name: String
    switch callee.kind {
    case .member(let object, let member): (base, name) = (object, member)
    case .element(let object, let key):
      guard case .string(let member) = key.kind else { throw fault(callee, "Invalid property access.") }
      (base, name) = (object, member)
    default: throw fault(callee, "Only methods can be called.")
    }
    let receiver = try check(base)
    switch receiver.type {
    case .snapshot:
      guard let method = RealtimeSnapshotMethod(rawValue: name) else { throw unknownMember(name, callee) }
      if method == .hasChildren { return try hasChildren(receiver.term, arguments, syntax) }
      let terms = try texts(arguments, count: method.argumentCount, name, syntax)
      let call = RealtimeTerm.snapshotCall(method, receiver.term, terms)
      return (Self.knownSnapshot(of: call) ?? call, method.result)
    case .string, .primitive, .any:
      guard let method = RealtimeTextMethod(rawValue: name) else { throw unknownMember(name, callee) }
      if method == .matches { return try matches(receiver.term, arguments, syntax) }
      let terms = try texts(arguments, count: method.argumentCount, name, syntax)
      return (.textCall(method, receiver.term, terms), method.result)
    case .boolean, .number, .null, .pattern, .query, .list: throw unknownMember(name, callee)
    }
  }

  /// The snapshot of a call such as `root.child('…')`, which is known before the evaluation; nil for other calls.
  private static func knownSnapshot(of call: RealtimeTerm) -> RealtimeTerm? {
    guard case .snapshotCall(.child, let receiver, let arguments) = call,
      case .constant(.string(let text))? = arguments.first
    else { return nil }
    // The cost of the call, of its argument and of the argument's bytes.
    let steps = 2 + text.utf8.count / RealtimeBudget.bytesPerStep
    switch receiver {
    case .snapshot(.root):
      return .knownSnapshot(RealtimeSnapshot(path: .root, state: .before).child(text), steps: steps + 1)
    case .knownSnapshot(let base, let before, _):
      return .knownSnapshot(base.child(text), steps: steps + before)
    case .marked(let mark, .snapshot(.root)):
      let root = RealtimeSnapshot(path: .root, state: .before)
      return .knownSnapshot(root.child(text), steps: steps + 1, recorded: [(mark, root)])
    case .marked(let mark, .knownSnapshot(let base, let before, let recorded)):
      return .knownSnapshot(base.child(text), steps: steps + before, recorded: recorded + [(mark, base)])
    default: return nil
    }
  }

  private func texts(
    _ arguments: [RealtimeSyntax], count: Int, _ name: String, _ syntax: RealtimeSyntax
  ) throws(RealtimeFault) -> [RealtimeTerm] {
    guard arguments.count == count else {
      throw fault(syntax, "\(name)() takes \(count) arguments, not \(arguments.count).")
    }
    var terms: [RealtimeTerm] = []
    for argument in arguments { terms.append(try text(argument, name)) }
    return terms
  }

  private func text(_ argument: RealtimeSyntax, _ name: String) throws(RealtimeFault) -> RealtimeTerm {
    let (term, type) = try check(argument)
    guard type.mayBeString else { throw fault(argument, "\(name)() takes strings, not \(type.rawValue).") }
    return term
  }

  private func hasChildren(
    _ receiver: RealtimeTerm, _ arguments: [RealtimeSyntax], _ syntax: RealtimeSyntax
  ) throws(RealtimeFault) -> Checked {
    var terms: [RealtimeTerm] = []
    if let argument = arguments.first {
      guard arguments.count == 1, case .list(let elements) = argument.kind, !elements.isEmpty else {
        throw fault(syntax, "hasChildren() takes one list of at least one string, or nothing.")
      }
      for element in elements { terms.append(try text(element, "hasChildren")) }
    }
    return (.snapshotCall(.hasChildren, receiver, terms), .boolean)
  }

  private func matches(
    _ receiver: RealtimeTerm, _ arguments: [RealtimeSyntax], _ syntax: RealtimeSyntax
  ) throws(RealtimeFault) -> Checked {
    guard arguments.count == 1, case .pattern(let pattern)? = arguments.first?.kind else {
      throw fault(syntax, "matches() takes one regular expression between slashes.")
    }
    return (.matches(receiver, pattern), .boolean)
  }

  // MARK: Operators

  private func boolean(_ operand: RealtimeSyntax, _ context: String) throws(RealtimeFault) -> RealtimeTerm {
    let (term, type) = try check(operand)
    guard type == .boolean else { throw fault(operand, "\(context) must be boolean.") }
    return term
  }

  private func booleans(
    _ operands: [RealtimeSyntax], _ name: String
  ) throws(RealtimeFault) -> [RealtimeTerm] {
    var terms: [RealtimeTerm] = []
    for (index, operand) in operands.enumerated() {
      terms.append(try boolean(operand, index == 0 ? "Left operand of \(name)" : "Right operand of \(name)"))
    }
    return terms
  }

  private func conditional(
    _ condition: RealtimeSyntax, _ first: RealtimeSyntax, _ second: RealtimeSyntax, _ syntax: RealtimeSyntax
  ) throws(RealtimeFault) -> Checked {
    let test = try boolean(condition, "The condition of ?")
    let (one, other) = (try check(first), try check(second))
    let type: RealtimeType
    if one.type == other.type, one.type != .query {
      type = one.type
    } else if one.type.isComparable, other.type.isComparable {
      type = one.type == .any || other.type == .any ? .any : .primitive
    } else {
      throw fault(
        syntax, "The results of ? have different types: \(one.type.rawValue) and \(other.type.rawValue).")
    }
    return (.conditional(test, one.term, other.term), type)
  }

  private func chain(
    _ first: RealtimeSyntax, _ steps: [(operation: RealtimeOperator, operand: RealtimeSyntax)]
  ) throws(RealtimeFault) -> Checked {
    let start = try check(first)
    var type = start.type
    var left = first
    var terms: [RealtimeTerm.Step] = []
    for (operation, operand) in steps {
      let right = try check(operand)
      type = try result(of: operation, (left, type), (operand, right.type))
      terms.append(RealtimeTerm.Step(operation: operation, operand: right.term))
      left = operand
    }
    return (.chain(start.term, terms), type)
  }

  private func result(
    of operation: RealtimeOperator, _ left: (syntax: RealtimeSyntax, type: RealtimeType),
    _ right: (syntax: RealtimeSyntax, type: RealtimeType)
  ) throws(RealtimeFault) -> RealtimeType {
    func require(_ types: String, _ isAllowed: (RealtimeType) -> Bool) throws(RealtimeFault) {
      for (side, operand) in [("left", left), ("right", right)] where !isAllowed(operand.type) {
        throw fault(
          operand.syntax,
          "Invalid \(operation.rawValue) expression: \(side) operand is \(operand.type.rawValue), not \(types)."
        )
      }
    }
    switch operation {
    case .equal, .unequal:
      try require("a value") { $0.isComparable }
      return .boolean
    case .less, .lessOrEqual, .greater, .greaterOrEqual:
      try require("a number or string") { $0.mayBeNumber || $0.mayBeString }
      guard left.type == right.type || left.type.isOpen || right.type.isOpen else {
        throw fault(
          right.syntax,
          "Invalid \(operation.rawValue) expression: left and right operands have different types.")
      }
      return .boolean
    case .add:
      try require("a number or string") { $0.mayBeNumber || $0.mayBeString }
      if left.type == .string || right.type == .string { return .string }
      return left.type == .number && right.type == .number ? .number : .primitive
    case .subtract, .multiply, .divide, .remainder:
      try require("a number") { $0.mayBeNumber }
      return .number
    }
  }
}
