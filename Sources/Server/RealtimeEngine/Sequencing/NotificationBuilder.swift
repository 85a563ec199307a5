// What listeners are told of a write, beyond the places and values it names.
//
// Clients apply the places of one message one after the other, in orders of their own: at the listened location those
// that have a value first, elsewhere by the text of their keys, priorities among them. Where a location has nothing in
// between, its priority is gone. So a location with a priority that keeps nothing over the write is told whole. Its value
// is then all from the write, and no larger: it is put together from what the write brings, and only the priorities of the
// locations above that are looked up.
//
// A write that removes nothing and sets no priority beside other places needs none of this, and nothing is looked up.

import OrderedStore
import RealtimeModel

extension BatchExecution {
  /// The changes as listeners are told them.
  ///
  /// - Parameters:
  ///   - changes: in ascending order of paths, none inside another; already carried out.
  ///   - emptied: the locations that lost their last child meanwhile.
  func told(_ changes: [Change], emptied: [Path]) throws -> [Change] {
    guard changes.count > 1, changes.contains(where: { $0.isRemoval || $0.path.isPriority }),
      try mayHavePriorities()
    else { return changes }
    return try widened(changes, emptied)
  }

  /// Replaces the changes below each location with a priority that keeps nothing by one of the location as it is now.
  private func widened(_ changes: [Change], _ emptied: [Path]) throws -> [Change] {
    var places: Set<Path> = []
    var known: [Path: Bool] = [:]
    for change in changes where change.isRemoval {
      places.formUnion(try prioritized(above: change.path, &known))
    }
    for change in changes where change.path.isPriority { places.insert(change.path.dataPath) }
    places.formUnion(emptied)
    var wholes: [(inside: Range<Int>, change: Change)] = []
    var chosen: Set<Path> = []
    for place in places.sorted(by: { $0.count < $1.count }) {
      if isInside(place, chosen) { continue }
      let inside = range(of: place, in: changes)
      let told = changes[inside]
      guard told.contains(where: { !$0.value.isEmpty && !$0.path.isPriority && $0.path != place }),
        told.reduce(0, { $0 + $1.value.estimatedSize }) < executor.limits.responseBytes / 2,
        try !keepsAnything(place, besides: told)
      else { continue }
      wholes.append((inside, Change(path: place, value: try value(of: place, from: told), before: nil)))
      chosen.insert(place)
    }
    // Put together once: one by one each would move all that stands behind it.
    var widened: [Change] = []
    var next = 0
    for (inside, change) in wholes.sorted(by: { $0.inside.lowerBound < $1.inside.lowerBound }) {
      widened += changes[next..<inside.lowerBound]
      widened.append(change)
      next = inside.upperBound
    }
    return widened + changes[next...]
  }

  /// The value of a location in which nothing lies but what these changes have put there.
  private func value(of place: Path, from changes: ArraySlice<Change>) throws -> Node {
    if let known = tree.cache?.node(at: place) { return known }
    var value = Node.empty
    // The locations from the place down to what was put in last, which may have priorities.
    var way: [Path] = []
    for change in changes where !change.value.isEmpty && !change.path.isPriority {
      value = value.setting(Path(keys: Array(change.path.keys.dropFirst(place.count))), to: change.value)
      while let last = way.last, !last.contains(change.path) { way.removeLast() }
      for count in place.count..<change.path.count where count >= place.count + way.count {
        way.append(Path(keys: Array(change.path.keys.prefix(count))))
        guard let location = way.last, let priority = try tree.objectPriority(at: location) else { continue }
        let relative = Path(keys: Array(location.keys.dropFirst(place.count)))
        // Something lies there by now, or the priority would not be kept.
        value = value.setting(relative, to: value.descendant(relative).with(priority: priority))
      }
    }
    return value
  }

  /// Whether a location lies below one of some.
  private func isInside(_ place: Path, _ others: Set<Path>) -> Bool {
    guard !others.isEmpty else { return false }
    var above = place.parent
    while let location = above {
      if others.contains(location) { return true }
      above = location.parent
    }
    return false
  }

  /// The changes at or below a location; they stand together.
  private func range(of place: Path, in changes: [Change]) -> Range<Int> {
    var (low, high) = (0, changes.count)
    while low < high {
      let middle = (low + high) / 2
      if changes[middle].path < place { low = middle + 1 } else { high = middle }
    }
    var end = low
    while end < changes.count, place.contains(changes[end].path) { end += 1 }
    return low..<end
  }

  /// Whether something lies in a location that none of these changes has put there.
  private func keepsAnything(_ place: Path, besides changes: ArraySlice<Change>) throws -> Bool {
    let rows = changes.filter { !$0.path.isPriority }.map { RowKeys.row(of: $0.path) }
    var start = RowKeys.row(of: place)
    let end = KeyRange.successor(ofPrefix: start)
    for row in rows.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
      if start.lexicographicallyPrecedes(row), try hasValue(KeyRange(start: start, end: row)) { return true }
      guard let next = KeyRange.successor(ofPrefix: row) else { return false }
      start = next
    }
    if let end, !start.lexicographicallyPrecedes(end) { return false }
    return try hasValue(KeyRange(start: start, end: end))
  }

  /// Whether a row lies in a range that is not that of a priority.
  private func hasValue(_ range: KeyRange) throws -> Bool {
    var found = false
    try tree.view.scan(range, reverse: false) { key, _, _ in
      found = key.last != RowKeys.priority
      return !found
    }
    return found
  }

  /// The locations above a place that have priorities, from the root down.
  private func prioritized(above path: Path, _ known: inout [Path: Bool]) throws -> [Path] {
    var found: [Path] = []
    for count in 0..<path.count {
      let place = Path(keys: Array(path.keys.prefix(count)))
      // Something was removed below it: it is, or was, an object.
      let has = try known[place] ?? (tree.objectPriority(at: place) != nil)
      known[place] = has
      if has { found.append(place) }
    }
    return found
  }

  /// Whether there may be a priority anywhere.
  private func mayHavePriorities() throws -> Bool {
    guard try tree.view.get(RowKeys.noPriorities) != nil else { return true }
    if try tree.view.get(RowKeys.row(of: Path.root.child(.priority))) != nil { return true }
    var found = false
    try tree.view.scan(KeyRange(prefix: RowKeys.prioritized([0])), reverse: false) { _, _, _ in
      found = true
      return false
    }
    return found
  }
}

extension Change {
  /// Whether a value went, and not a priority alone.
  var isRemoval: Bool { value.isEmpty && !path.isPriority }
}
