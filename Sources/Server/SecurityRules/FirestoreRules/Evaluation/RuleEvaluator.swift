// Evaluates the conditions of a program.
//
// A fault is the reason that an expression has no value. It is thrown, and every operator decides whether it passes
// the fault on: `&&` and `||` absorb faults on either side. Operands are evaluated from the left; a rule cannot
// observe the order.

/// Evaluates conditions for one document, or for one alternative (disjunct) of a query's filter.
struct RuleEvaluator {
  /// A fault and the node that has it.
  struct Failure: Error {
    var fault: RuleFault
    var node: Int32
  }

  /// A parameter or let. A fault of its value has an effect only where an expression uses the name.
  enum Local {
    case value(RuleValue)
    case failure(Failure)
  }

  let rules: FirestoreRuleset
  let request: RuleRequest
  let lookups: RuleLookups
  /// The remaining work.
  var budget: RuleBudget
  /// The values of the wildcards of the statement's pattern.
  var wildcards: [RuleValue] = []
  /// The locals of all active calls. The locals of the current call begin at `frame`.
  var locals: [Local] = []
  var frame = 0
  /// The evaluations that the current one is nested in.
  private var depth = 0
  /// Whether a rule has read the time of the request.
  var readsTime = false
  /// Records values for an explanation.
  var trace: RuleTrace?

  /// Makes an evaluator.
  ///
  /// - Parameter work: the units of work that the decision may still spend.
  init(
    _ rules: FirestoreRuleset, request: RuleRequest, lookups: RuleLookups, work: Int = RuleBudget.maximumWork
  ) {
    self.rules = rules
    budget = RuleBudget(work: work)
    self.request = request
    self.lookups = lookups
  }

  /// Evaluates a node.
  mutating func evaluate(_ id: Int32) throws(Failure) -> RuleValue {
    depth += 1
    defer { depth -= 1 }
    guard depth <= RuleBudget.maximumDepth else { throw Failure(fault: .expressionLimit, node: id) }
    guard trace != nil else { return try value(of: id) }
    do {
      let value = try value(of: id)
      trace?.record(.value(value), of: id)
      return value
    } catch {
      trace?.record(.failure(error), of: id)
      throw error
    }
  }

  /// Evaluates an operand that must be a boolean.
  mutating func bool(_ id: Int32) throws(Failure) -> Bool {
    let value = try evaluate(id)
    guard case .bool(let result) = value else {
      throw Failure(fault: .notBoolean(value.typeName), node: id)
    }
    return result
  }

  /// Runs an operation and adds the node to its fault.
  func attributing<T>(to id: Int32, _ body: () throws(RuleFault) -> T) throws(Failure) -> T {
    do { return try body() } catch { throw Failure(fault: error, node: id) }
  }

  private mutating func spend(_ count: Int, _ id: Int32) throws(Failure) {
    do { try budget.spend(expressions: count) } catch { throw Failure(fault: error, node: id) }
  }

  private mutating func value(of id: Int32) throws(Failure) -> RuleValue {
    try spend(1, id)
    switch rules.program.nodes[Int(id)] {
    case .constant(let index): return rules.program.constants[Int(index)]
    case .undeclared: throw Failure(fault: .nullValue, node: id)
    case .local(let slot):
      switch locals[frame + Int(slot)] {
      case .value(let value): return value
      case .failure(let failure): throw failure
      }
    case .wildcard(let slot): return try wildcard(Int(slot), id)
    case .request:
      readsTime = true
      return .map(request.map)
    case .requestMember(let member):
      try spend(1, id)
      if member == .time { readsTime = true }
      guard let value = request.member(member) else {
        throw Failure(fault: .undefinedProperty(member.rawValue), node: id)
      }
      return value
    case .resource:
      guard case .value(let value) = request.resource else { throw Failure(fault: .invalidLookup, node: id) }
      return value
    case .list(let items): return .list(.built(try values(of: items)))
    case .constantList(let index, let items):
      // The items count as if they were evaluated one by one.
      try spend(Int(items.count), id)
      return rules.program.constants[Int(index)]
    case .map(let entries): return try map(entries, id)
    case .path(let index): return try path(rules.program.paths[Int(index)], id)
    case .member(let base, let name):
      let value = try evaluate(base)
      return try attributing(to: id) { () throws(RuleFault) in
        try value.member(rules.program.names[Int(name)])
      }
    case .index(let base, let index):
      let (value, index) = (try evaluate(base), try evaluate(index))
      try spend(indexing: value, by: index, id)
      return try attributing(to: id) { () throws(RuleFault) in try value.item(at: index) }
    case .slice(let base, let from, let to): return try slice(base, from, to, id)
    case .call(let function, let arguments): return try call(Int(function), arguments, id)
    case .builtin(let builtin, let arguments): return try call(builtin, arguments, id)
    case .method(let base, let method, let arguments):
      return try call(method, on: base, arguments, regex: nil, id)
    case .pattern(let base, let method, let regex, let arguments):
      return try call(method, on: base, arguments, regex: rules.program.regexes[Int(regex)], id)
    case .fault(let index, let operands):
      for operand in operands.range {
        let value = try evaluate(rules.program.children[operand])
        if case .null = value { throw Failure(fault: .nullValue, node: id) }
      }
      throw Failure(fault: rules.program.faults[Int(index)], node: id)
    case .not(let operand):
      let value = try evaluate(operand)
      guard case .bool(let result) = value else {
        throw Failure(fault: .unsupported("!\(value.typeName)"), node: id)
      }
      return .bool(!result)
    case .negate(let operand):
      let value = try evaluate(operand)
      return try attributing(to: id) { () throws(RuleFault) in try value.negated() }
    case .and(let left, let right): return .bool(try and(left, right, id))
    case .or(let left, let right): return .bool(try or(left, right, id))
    case .binary(let op, let left, let right): return try binary(op, left, right, id)
    case .type(let base, let type):
      try spend(1, id)
      return .bool(try evaluate(base).has(type))
    case .conditional(let condition, let then, let otherwise):
      let chosen = try bool(condition) ? then : otherwise
      try spend(1, id)
      return try evaluate(chosen)
    }
  }

  // As in Google's emulator, an evaluated right operand and a chosen branch each count as one additional expression.

  private mutating func and(_ left: Int32, _ right: Int32, _ id: Int32) throws(Failure) -> Bool {
    var failure: Failure?
    do { if try !bool(left) { return false } } catch { failure = error }
    do { try spend(1, id) } catch { throw failure ?? error }
    // False on the right decides, even if the left has no value.
    do { if try !bool(right) { return false } } catch { throw failure ?? error }
    if let failure { throw failure }
    return true
  }

  private mutating func or(_ left: Int32, _ right: Int32, _ id: Int32) throws(Failure) -> Bool {
    var failure: Failure?
    do { if try bool(left) { return true } } catch { failure = error }
    do { try spend(1, id) } catch { throw failure ?? error }
    do { if try bool(right) { return true } } catch { throw failure ?? error }
    if let failure { throw failure }
    return false
  }

  /// Evaluates children from the left.
  mutating func values(of children: RuleProgram.Children) throws(Failure) -> [RuleValue] {
    var values: [RuleValue] = []
    values.reserveCapacity(Int(children.count))
    for index in children.range { values.append(try evaluate(rules.program.children[index])) }
    return values
  }

  private func wildcard(_ slot: Int, _ id: Int32) throws(Failure) -> RuleValue {
    let value = wildcards[slot]
    if case .constraint(let constraint) = value, constraint.isUnbound {
      throw Failure(fault: .unboundWildcard("of the document"), node: id)
    }
    return value
  }

  private mutating func map(_ entries: RuleProgram.Children, _ id: Int32) throws(Failure) -> RuleValue {
    var result: [RuleMap.Entry] = []
    result.reserveCapacity(Int(entries.count) / 2)
    var index = entries.range.lowerBound
    while index < entries.range.upperBound {
      let key = try evaluate(rules.program.children[index])
      let value = try evaluate(rules.program.children[index + 1])
      guard case .string(let text) = key else {
        throw Failure(fault: .unsupported("map key of type \(key.typeName)"), node: id)
      }
      do { try budget.spend(finding: text, in: .built(result)) } catch {
        throw Failure(fault: error, node: id)
      }
      // A repeated key keeps its first position and takes the last value.
      if let existing = result.firstIndex(where: { $0.key == text }) {
        result[existing].value = value
      } else {
        result.append(RuleMap.Entry(text, value))
      }
      index += 2
    }
    return .map(.built(result))
  }

  private mutating func path(_ parts: [RuleProgram.PathPart], _ id: Int32) throws(Failure) -> RuleValue {
    var segments: [RulePath.Segment] = []
    segments.reserveCapacity(parts.count)
    for part in parts {
      try spend(1, id)
      switch part {
      case .segment(let segment): segments.append(segment)
      case .interpolation(let node):
        let value = try evaluate(node)
        do { try budget.spend(reading: value) } catch { throw Failure(fault: error, node: id) }
        if case .path(let inner) = value {
          segments += inner.segments
        } else {
          segments.append(
            .text(try attributing(to: id) { () throws(RuleFault) in try value.convertedToText() }))
        }
      }
    }
    return .path(RulePath(segments: segments))
  }

  private mutating func slice(
    _ base: Int32, _ from: Int32, _ to: Int32, _ id: Int32
  ) throws(Failure) -> RuleValue {
    let value = try evaluate(base)
    var ends: [RuleValue] = []
    for end in [from, to] {
      if end < 0 { try spend(1, id) }
      ends.append(end < 0 ? .null : try evaluate(end))
    }
    try spend(indexing: value, by: .null, id)
    return try attributing(to: id) { () throws(RuleFault) in try value.slice(from: ends[0], to: ends[1]) }
  }

  /// Spends the work of `value[index]`; the index is null for a slice. Indexing text costs a walk over its code units
  /// from the start.
  private mutating func spend(indexing value: RuleValue, by index: RuleValue, _ id: Int32) throws(Failure) {
    do throws(RuleFault) {
      switch (value, index) {
      case (.string, _): try budget.spend(reading: value)
      case (.map(let map), .string(let key)): try budget.spend(finding: key, in: map)
      case (.list(let list), .null): try budget.spend(work: RuleCost.item * list.count)
      case (.path(let path), _): try budget.spend(work: RuleCost.item * path.segments.count)
      default: break
      }
    } catch {
      throw Failure(fault: error, node: id)
    }
  }
}
