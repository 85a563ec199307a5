// A set of the rules language, and the difference of two maps, which has sets of keys.

import FirestoreModel

/// A set in rules. Numbers are members by value: 1 and 1.0 are one member.
package struct RuleSet: Sendable {
  /// The members.
  let members: Set<ValueKey>

  /// Makes a set.
  /// - Throws: a fault for an item whose value the request does not determine, because it cannot be compared with other
  ///   items.
  init(_ items: [RuleValue]) throws(RuleFault) {
    for item in items { try item.requireKnown() }
    members = Set(items.lazy.map(ValueKey.init(member:)))
  }

  /// A set of names.
  init(_ names: [RuleText]) { members = Set(names.lazy.map { ValueKey(member: .string($0)) }) }

  init(members: Set<ValueKey>) { self.members = members }

  /// Whether a value is a member.
  func contains(_ value: RuleValue) -> Bool { members.contains(ValueKey(value)) }
}

/// The difference of two maps, by keys.
package struct RuleMapDiff: Sendable {
  /// The keys that only the first map has.
  let added: [RuleText]
  /// The keys that only the second map has.
  let removed: [RuleText]
  /// The keys that both maps have with different values.
  let changed: [RuleText]
  /// The keys that both maps have with equal values.
  let unchanged: [RuleText]

  /// Compares two maps.
  /// - Throws: a fault if both maps have a key whose values the request does not determine.
  init(_ first: RuleMap, _ second: RuleMap) throws(RuleFault) {
    if case .stored(let first) = first, case .stored(let second) = second {
      self.init(first, second)
    } else {
      try self.init(unsorted: first, second)
    }
  }

  private init(unsorted first: RuleMap, _ second: RuleMap) throws(RuleFault) {
    var (added, changed, unchanged): ([RuleText], [RuleText], [RuleText]) = ([], [], [])
    var removed: [RuleText] = []
    let old = Dictionary(second.entries.map { ($0.key, $0.value) }) { first, _ in first }
    var seen = Set<RuleText>()
    for entry in first.entries {
      guard let other = old[entry.key] else {
        added.append(entry.key)
        continue
      }
      seen.insert(entry.key)
      try entry.value.requireKnown()
      try other.requireKnown()
      if ValueKey(entry.value) == ValueKey(other) {
        unchanged.append(entry.key)
      } else {
        changed.append(entry.key)
      }
    }
    for key in old.keys where !seen.contains(key) { removed.append(key) }
    self.added = added
    self.removed = removed
    self.changed = changed
    self.unchanged = unchanged
  }

  /// Compares two stored maps, whose entries have the same order.
  private init(_ first: MapValue, _ second: MapValue) {
    var (added, removed): ([RuleText], [RuleText]) = ([], [])
    var (changed, unchanged): ([RuleText], [RuleText]) = ([], [])
    var old = second.entries[...]
    for entry in first.entries {
      while let other = old.first, other.key.precedesInUTF8(entry.key) {
        removed.append(RuleText(other.key))
        old.removeFirst()
      }
      guard let other = old.first, other.key.hasSameUTF8(as: entry.key) else {
        added.append(RuleText(entry.key))
        continue
      }
      old.removeFirst()
      if ValueKey(RuleValue(entry.value)) == ValueKey(RuleValue(other.value)) {
        unchanged.append(RuleText(entry.key))
      } else {
        changed.append(RuleText(entry.key))
      }
    }
    removed += old.map { RuleText($0.key) }
    self.added = added
    self.removed = removed
    self.changed = changed
    self.unchanged = unchanged
  }
}

extension RuleValue {
  /// Throws a fault if the request does not determine a part of the value: a field that a query's filters only
  /// restrict, or a wildcard.
  func requireKnown() throws(RuleFault) {
    switch self {
    case .constraint: throw .undecided
    case .unknownPath: throw .unboundWildcard("of the path")
    case .list(.built(let items)): for item in items { try item.requireKnown() }
    case .map(.built(let entries)): for entry in entries { try entry.value.requireKnown() }
    // Stored values and sets have known parts only.
    default: break
    }
  }
}
