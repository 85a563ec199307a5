// Evaluates calls: functions of the file, functions of the language, and methods.

import FirestoreModel

extension RuleEvaluator {
  /// Calls a function of the file. Arguments and lets are evaluated once, in order, whether they are used or not.
  mutating func call(
    _ index: Int, _ arguments: RuleProgram.Children, _ id: Int32
  ) throws(Failure) -> RuleValue {
    let function = rules.program.functions[index]
    let start = locals.count
    for argument in arguments.range { appendLocal(rules.program.children[argument]) }
    guard Int(arguments.count) == function.parameterCount else {
      locals.removeSubrange(start...)
      throw Failure(fault: .argumentCount(function.name), node: id)
    }
    let outer = frame
    frame = start
    defer {
      frame = outer
      locals.removeSubrange(start...)
    }
    for value in function.lets {
      // The let itself counts as one expression in addition to its value.
      do { try budget.spend(expressions: 1) } catch { throw Failure(fault: error, node: id) }
      appendLocal(value)
    }
    return try evaluate(function.result)
  }

  private mutating func appendLocal(_ node: Int32) {
    do {
      let value = try evaluate(node)
      locals.append(.value(value))
    } catch {
      locals.append(.failure(error))
    }
  }

  /// Calls a function of the language.
  mutating func call(
    _ builtin: Builtin, _ arguments: RuleProgram.Children, _ id: Int32
  ) throws(Failure) -> RuleValue {
    if arguments.count == 1 {
      let argument = try evaluate(rules.program.children[arguments.range.lowerBound])
      do {
        return builtin.isLookup
          ? try lookUp(builtin, argument) : try RuleFunctions.call(builtin, argument, &budget)
      } catch {
        throw Failure(fault: error, node: id)
      }
    }
    let values = try values(of: arguments)
    do { return try RuleFunctions.call(builtin, values) } catch { throw Failure(fault: error, node: id) }
  }

  /// Reads a document for get(), exists(), getAfter() or existsAfter().
  private mutating func lookUp(_ builtin: Builtin, _ argument: RuleValue) throws(RuleFault) -> RuleValue {
    guard case .path(let path) = argument else {
      throw .unsupported("\(builtin.rawValue)(\(argument.typeName))")
    }
    try budget.spend(reading: argument)
    guard let document = path.document(in: request.database) else { throw .invalidLookup }
    let afterWrites = builtin == .getAfter || builtin == .existsAfter
    let fields: MapValue?
    if let requested = request.requestedDocument, requested.path == document {
      fields = afterWrites ? requested.after : requested.before
    } else {
      do { fields = try lookups.fields(of: document, afterWrites: afterWrites) } catch {
        // A request whose documents cannot be read fails. The exhausted budget makes every further expression fail, so
        // `&&` and `||` cannot absorb this error.
        if lookups.failure != nil { budget.exhaust() }
        throw error
      }
    }
    if builtin == .exists || builtin == .existsAfter { return .bool(fields != nil) }
    guard let fields else { return .null }
    return .map(.document(RuleDocument(database: request.database, path: document, fields: fields)))
  }

  /// Calls a method.
  ///
  /// - Parameter regex: The compiled pattern if the first argument is a literal one.
  mutating func call(
    _ method: Method, on base: Int32, _ arguments: RuleProgram.Children, regex: RuleRegex?, _ id: Int32
  ) throws(Failure) -> RuleValue {
    let receiver = try evaluate(base)
    let values = arguments.count == 0 ? [] : try values(of: arguments)
    do throws(RuleFault) {
      switch receiver {
      case .string(let text): return try RuleMethods.call(method, text, values, regex, &budget)
      case .bytes(let bytes): return try RuleMethods.call(method, bytes, &budget)
      case .list(let list): return try RuleMethods.call(method, list, values, &budget)
      case .set(let set): return try RuleMethods.call(method, set, values, &budget)
      case .map(let map): return try RuleMethods.call(method, map, values, &budget)
      case .mapDiff(let diff): return try RuleMethods.call(method, diff, &budget)
      case .path(let path): return try RuleMethods.call(method, path, values, &budget)
      case .timestamp(let time): return try RuleMethods.call(method, time)
      case .duration(let duration): return try RuleMethods.call(method, duration)
      case .latlng(let point): return try RuleMethods.call(method, point, values)
      case .constraint(let constraint): return try RuleMethods.call(method, constraint, values, &budget)
      case .null: throw .nullValue
      case .bool, .int, .float, .vector, .unknownPath: throw .functionNotFound(method.rawValue)
      }
    } catch {
      throw Failure(fault: error, node: id)
    }
  }
}
