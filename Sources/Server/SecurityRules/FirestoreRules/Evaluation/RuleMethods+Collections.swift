// Implements the methods of lists, sets, maps, differences of maps, paths and constraints.

import FirestoreModel

extension RuleMethods {
  private static func unsupported(_ type: String, _ method: Method, _ argument: RuleValue) -> RuleFault {
    .unsupported("\(type).\(method.rawValue)(\(argument.typeName))")
  }

  /// Calls a method of a list.
  static func call(
    _ method: Method, _ list: RuleList, _ arguments: [RuleValue], _ budget: inout RuleBudget
  ) throws(RuleFault) -> RuleValue {
    switch method {
    case .size: return .int(Int64(list.count))
    case .toSet:
      try budget.spend(hashing: .list(list))
      return .set(try RuleSet(list.items))
    case .join:
      guard case .string(let separator) = arguments[0] else {
        throw unsupported("list", method, arguments[0])
      }
      return .string(try join(list, separator, &budget))
    case .hasAll, .hasAny, .hasOnly, .concat, .removeAll:
      guard case .list(let other) = arguments[0] else { throw unsupported("list", method, arguments[0]) }
      if method == .concat {
        // Items are shared, not copied.
        try budget.spend(work: RuleCost.item * (list.count + other.count))
        return .list(.built(list.items + other.items))
      }
      try budget.spend(hashing: .list(list))
      try budget.spend(hashing: arguments[0])
      if list.hasFastTextSearch, other.hasFastTextSearch {
        switch method {
        case .hasAll: return .bool(other.allTexts(list.contains(text:)))
        case .hasAny: return .bool(!other.allTexts { !list.contains(text: $0) })
        case .hasOnly: return .bool(list.allTexts(other.contains(text:)))
        default: break
        }
      }
      switch method {
      case .removeAll:
        let index = StrictIndex(other.items)
        return .list(.built(list.items.filter { !index.contains($0) }))
      case .hasAny:
        let index = StrictIndex(list.items)
        return .bool(other.items.contains(where: index.contains))
      case .hasAll:
        let index = StrictIndex(list.items)
        return .bool(other.items.allSatisfy(index.contains))
      default:
        let index = StrictIndex(other.items)
        return .bool(list.items.allSatisfy(index.contains))
      }
    default: throw .functionNotFound(method.rawValue)
    }
  }

  private static func join(
    _ list: RuleList, _ separator: RuleText, _ budget: inout RuleBudget
  ) throws(RuleFault) -> RuleText {
    var parts: [RuleText] = []
    for index in 0..<list.count {
      let item = list[index]
      try budget.spend(reading: item)
      try budget.spend(work: RuleCost.match + separator.byteCount)
      if index > 0 { parts.append(separator) }
      parts.append(try item.convertedToText())
    }
    return RuleText(joining: parts)
  }

  /// Calls a method of a set.
  static func call(
    _ method: Method, _ set: RuleSet, _ arguments: [RuleValue], _ budget: inout RuleBudget
  ) throws(RuleFault) -> RuleValue {
    switch method {
    case .size: return .int(Int64(set.members.count))
    case .union, .intersection, .difference:
      guard case .set(let other) = arguments[0] else { throw unsupported("set", method, arguments[0]) }
      try budget.spend(hashing: .set(set))
      try budget.spend(hashing: arguments[0])
      return switch method {
      case .union: .set(RuleSet(members: set.members.union(other.members)))
      case .intersection: .set(RuleSet(members: set.members.intersection(other.members)))
      default: .set(RuleSet(members: set.members.subtracting(other.members)))
      }
    case .hasAll, .hasAny, .hasOnly:
      try budget.spend(hashing: .set(set))
      try budget.spend(hashing: arguments[0])
      let other: Set<ValueKey>
      switch arguments[0] {
      case .set(let set): other = set.members
      case .list(let list): other = try RuleSet(list.items).members
      default: throw unsupported("set", method, arguments[0])
      }
      return switch method {
      case .hasAll: .bool(other.isSubset(of: set.members))
      case .hasAny: .bool(!other.isDisjoint(with: set.members))
      default: .bool(set.members.isSubset(of: other))
      }
    default: throw .functionNotFound(method.rawValue)
    }
  }

  /// Calls a method of a map.
  static func call(
    _ method: Method, _ map: RuleMap, _ arguments: [RuleValue], _ budget: inout RuleBudget
  ) throws(RuleFault) -> RuleValue {
    switch method {
    case .size: return .int(Int64(map.count))
    case .keys:
      try budget.spend(work: map.count * RuleCost.item)
      // Stored keys are already sorted, except those with code points beyond U+FFFF. Sorting therefore needs few
      // comparisons.
      if case .stored(let fields) = map {
        var isInOrder = true
        for entry in fields.entries {
          try budget.spend(work: RuleCost.match + entry.key.utf8.count * RuleCost.orderedByte)
          isInOrder = isInOrder && entry.key.utf8.allSatisfy { $0 < 0xF0 }
        }
        if isInOrder { return .list(.keys(fields)) }
      } else {
        for key in map.keys { try budget.spend(work: RuleCost.match + key.byteCount * RuleCost.orderedByte) }
      }
      return .list(.built(map.keys.sorted(by: <).map(RuleValue.string)))
    case .values:
      try budget.spend(work: map.count * 2 * RuleCost.item)
      return .list(.built(map.entries.map(\.value)))
    case .get:
      switch arguments[0] {
      case .string(let key):
        try budget.spend(finding: key, in: map)
        return map[key] ?? arguments[1]
      case .list(let steps):
        try budget.spend(reading: arguments[0])
        return try get(steps, of: map, default: arguments[1], &budget)
      default: throw unsupported("map", method, arguments[0])
      }
    case .diff:
      guard case .map(let other) = arguments[0] else { throw unsupported("map", method, arguments[0]) }
      try budget.spend(hashing: .map(map))
      try budget.spend(hashing: arguments[0])
      return .mapDiff(try RuleMapDiff(map, other))
    default: throw .functionNotFound(method.rawValue)
    }
  }

  private static func get(
    _ steps: RuleList, of map: RuleMap, default missing: RuleValue, _ budget: inout RuleBudget
  ) throws(RuleFault) -> RuleValue {
    var keys: [RuleText] = []
    for step in steps.items {
      guard case .string(let key) = step else { throw .unsupported("map.get([\(step.typeName)], any)") }
      keys.append(key)
    }
    var value = RuleValue.map(map)
    for key in keys {
      guard case .map(let inner) = value else { return missing }
      try budget.spend(finding: key, in: inner)
      guard let next = inner[key] else { return missing }
      value = next
    }
    return value
  }

  /// Calls a method of a difference of maps.
  static func call(
    _ method: Method, _ diff: RuleMapDiff, _ budget: inout RuleBudget
  ) throws(RuleFault) -> RuleValue {
    try budget.spend(hashing: .mapDiff(diff))
    let keys =
      switch method {
      case .addedKeys: diff.added
      case .removedKeys: diff.removed
      case .changedKeys: diff.changed
      case .unchangedKeys: diff.unchanged
      case .affectedKeys: diff.added + diff.removed + diff.changed
      default: throw .functionNotFound(method.rawValue)
      }
    return .set(RuleSet(keys))
  }

  /// Calls a method of a path.
  static func call(
    _ method: Method, _ path: RulePath, _ arguments: [RuleValue], _ budget: inout RuleBudget
  ) throws(RuleFault) -> RuleValue {
    guard method == .bind else { throw .functionNotFound(method.rawValue) }
    guard case .map(let values) = arguments[0] else { throw unsupported("path", method, arguments[0]) }
    try budget.spend(work: RuleCost.item * (path.segments.count + 1) * (values.count + 1))
    var segments: [RulePath.Segment] = []
    var bound = Set<String>()
    for segment in path.segments {
      guard case .placeholder(let name, let isRest) = segment, let value = values[name] else {
        segments.append(segment)
        continue
      }
      guard bound.insert(name).inserted else { throw .invalidPath }
      try budget.spend(reading: value)
      switch value {
      case .path(let inner): segments += inner.segments
      default:
        guard !isRest else { throw .invalidPath }
        let text = try value.convertedToText()
        guard text.count > 0 else { throw .invalidPath }
        segments.append(.text(text))
      }
    }
    guard values.keys.allSatisfy({ $0.isValid && bound.contains($0.string) }) else { throw .invalidPath }
    return .path(RulePath(segments: segments))
  }

  /// Calls a method of a constraint.
  static func call(
    _ method: Method, _ constraint: RuleConstraint, _ arguments: [RuleValue], _ budget: inout RuleBudget
  ) throws(RuleFault) -> RuleValue {
    guard method == .hasAny else { throw .functionNotFound(method.rawValue) }
    guard case .list(let list) = arguments[0] else { throw unsupported("constraint", method, arguments[0]) }
    try budget.spend(reading: arguments[0], times: max(1, constraint.comparators.count))
    guard list.items.contains(where: constraint.contains) else { throw .undecided }
    return .bool(true)
  }
}

/// Items of a list for membership tests by strict equality.
private struct StrictIndex {
  private let items: Set<StrictKey>

  init(_ items: [RuleValue]) {
    // Omits items that differ from themselves, such as NaN: they equal nothing, and many of them would share one hash.
    self.items = Set(items.lazy.map(StrictKey.init).filter { $0 == $0 })
  }

  /// Whether an item equals a value.
  func contains(_ value: RuleValue) -> Bool { items.contains(StrictKey(value)) }
}
