// Builds the notifications of a write: the changes in the form in which listeners receive them.
//
// Clients apply the paths of one message one by one, in a fixed order. At the listened location they apply
// paths with a value first. Elsewhere they apply all paths, priorities included, in the string order of their
// keys. If a location is empty after one of these paths, the client drops its priority. Therefore a location
// that has a priority and keeps none of its earlier children is sent as one complete value. All of that value
// comes from the write, apart from priorities, which are read from the rows.
//
// A write of one path is sent unchanged and needs no reads. The same holds for a write of several paths that removes
// nothing and sets no priority.

import OrderedStore
import RealtimeModel

/// Builds the notifications of a write.
struct NotificationBuilder: BatchHandler {
  let batch: BatchExecution

  /// The changes as listeners receive them.
  ///
  /// - Parameters:
  ///   - changes: in ascending order of paths, none inside another, and already in the tree.
  ///   - emptied: the locations that lost their last child.
  func notifications(for changes: [Change], emptied: [Path]) throws -> [Change] {
    guard changes.count > 1, changes.contains(where: { $0.isRemoval || $0.path.isPriority }),
      try mayHavePriorities()
    else { return changes }
    return try widened(changes, emptied)
  }

  /// Replaces the changes inside a location by one change of the complete location, if clients would
  /// otherwise lose its priority.
  private func widened(_ changes: [Change], _ emptied: [Path]) throws -> [Change] {
    var locations: Set<Path> = []
    var hasPriority: [Path: Bool] = [:]
    for change in changes where change.isRemoval {
      locations.formUnion(try prioritizedLocations(above: change.path, &hasPriority))
    }
    for change in changes where change.path.isPriority { locations.insert(change.path.dataPath) }
    locations.formUnion(emptied)
    var replacements: [(inside: Range<Int>, change: Change)] = []
    var chosen: Set<Path> = []
    for location in locations.sorted(by: { $0.count < $1.count }) {
      if isBelow(location, chosen) { continue }
      let inside = range(of: location, in: changes)
      let candidates = changes[inside]
      guard candidates.contains(where: { !$0.value.isEmpty && !$0.path.isPriority && $0.path != location }),
        candidates.reduce(0, { $0 + $1.value.estimatedSize }) < limits.responseBytes / 2,
        try !hasOtherValue(location, excluding: candidates)
      else { continue }
      replacements.append(
        (inside, Change(path: location, value: try value(of: location, from: candidates), before: nil)))
      chosen.insert(location)
    }
    // The array is built in one pass, because each replacement in place would move all following changes.
    var widened: [Change] = []
    var next = 0
    for (inside, change) in replacements.sorted(by: { $0.inside.lowerBound < $1.inside.lowerBound }) {
      widened += changes[next..<inside.lowerBound]
      widened.append(change)
      next = inside.upperBound
    }
    return widened + changes[next...]
  }

  /// The value of a location whose content comes entirely from these changes.
  private func value(of location: Path, from changes: ArraySlice<Change>) throws -> Node {
    if let known = tree.cache?.node(at: location) { return known }
    var value = Node.empty
    // The locations from `location` down to the parent of the last change. Their priorities are read once
    // each.
    var ancestors: [Path] = []
    for change in changes where !change.value.isEmpty && !change.path.isPriority {
      value = value.setting(Path(keys: Array(change.path.keys.dropFirst(location.count))), to: change.value)
      while let last = ancestors.last, !last.contains(change.path) { ancestors.removeLast() }
      for count in location.count..<change.path.count where count >= location.count + ancestors.count {
        ancestors.append(Path(keys: Array(change.path.keys.prefix(count))))
        guard let ancestor = ancestors.last, let priority = try tree.objectPriority(at: ancestor) else {
          continue
        }
        let relative = Path(keys: Array(ancestor.keys.dropFirst(location.count)))
        // The change above gave the ancestor a child, so `value` keeps the priority that is set here.
        value = value.setting(relative, to: value.descendant(relative).with(priority: priority))
      }
    }
    return value
  }

  /// Whether one of the other locations contains this location.
  private func isBelow(_ location: Path, _ others: Set<Path>) -> Bool {
    guard !others.isEmpty else { return false }
    var above = location.parent
    while let location = above {
      if others.contains(location) { return true }
      above = location.parent
    }
    return false
  }

  /// The range of the changes at or below a location.
  private func range(of location: Path, in changes: [Change]) -> Range<Int> {
    var (low, high) = (0, changes.count)
    while low < high {
      let middle = (low + high) / 2
      if changes[middle].path < location { low = middle + 1 } else { high = middle }
    }
    var end = low
    while end < changes.count, location.contains(changes[end].path) { end += 1 }
    return low..<end
  }

  /// Whether a location has a value that none of these changes wrote.
  private func hasOtherValue(_ location: Path, excluding changes: ArraySlice<Change>) throws -> Bool {
    try tree.hasValue(
      KeyRange(prefix: RowKeys.row(of: location)),
      outside: changes.lazy.filter { !$0.path.isPriority }.map(\.path))
  }

  /// The locations above a path that have priorities, from the root down.
  private func prioritizedLocations(above path: Path, _ hasPriority: inout [Path: Bool]) throws -> [Path] {
    var found: [Path] = []
    for count in 0..<path.count {
      let location = Path(keys: Array(path.keys.prefix(count)))
      // A value below this location was removed. So the location is, or was, an object, and its priority has
      // a separate row.
      let has = try hasPriority[location] ?? (tree.objectPriority(at: location) != nil)
      hasPriority[location] = has
      if has { found.append(location) }
    }
    return found
  }

  /// Whether the tree may have a priority.
  private func mayHavePriorities() throws -> Bool {
    guard try tree.view.get(RowKeys.priorityTracking) != nil else { return true }
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
  /// Whether a value, not only a priority, was removed.
  var isRemoval: Bool { value.isEmpty && !path.isPriority }
}
