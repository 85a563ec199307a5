// Several pushes as one message, that leads whoever applies it to the same end.
//
// Clients apply the places of a message one after the other: at the listened location those that have a value first, then
// by the text of their keys, priorities among them. Removing below a leaf does nothing; a location with nothing in it has
// no priority, and one that is given a child keeps what it had. So the order in which things happened is lost, and with it
//
//   a. that a location was without any child in between, which ends its leaf value and its priority: it is then itself
//      removed here, with its last child, and what it is given afterwards becomes part of that place's new value;
//   b. that a location with a priority never was: it could be for a client, where some children are removed and others
//      set. A removal below a priority, and a value there, are not told at once, unless at the same place;
//   c. that a priority was set after the location's first child: it is not told at once with what came before it below its
//      location. What comes behind it finds the location there already.
//
// Proof that this is enough: a change of a place is its last value, which a message may bring about at once, unless an
// effect beside the place goes amiss. Such effects come from places that are removed (a, b) and on priorities (c) alone.
// If no location that ends with a priority is empty on the way, whatever the order, none of them is lost. A location's
// places here are: values alone, then it only grows; removals alone, then it only shrinks to what is not empty, or is
// itself one of the places by (a); both, then it has no priority when they are removed by (b). One that it is given later
// stands in another message by (c); one that it lost before is removed by a place here, or was lost by (a).
//
// What replaces a place counts instead of what it replaces, also where several messages become one: of two that could not be
// told at once the later may replace what stood in the way, and then becomes part of the earlier (see PendingOutputs).
//
// Where there are no priorities, what waits stays bounded by what is there: all is one message. Below a priority children
// that come and go by turns are a few, whatever the turns, as long as all that stays set, or all that stays removed, came
// last. Where one is set again and again while ever others are removed between, each removal is a message; these are bounded
// only by what a peer that does not read may have waiting at all.

import RealtimeEngine
import RealtimeModel

/// Changes that are told at once, none inside another.
struct MergedChanges {
  /// More become a second message: finding the place of a change takes the longer the more there are.
  static let most = 256

  private(set) var changes: [(path: Path, value: Node)] = []
  /// Locations with priorities below which something is removed here.
  private var guarded: [Path] = []
  /// About how many bytes of JSON they are.
  private(set) var size = 0

  /// Whether a push can be told at once with these changes.
  func admits(_ push: RealtimePush) -> Bool { admits(MergedChanges.changes(of: push), push.prioritized) }

  /// Whether the message behind this one can be told at once with it.
  func admits(_ later: MergedChanges) -> Bool { admits(later.changes, later.guarded) }

  private func admits(_ later: [(path: Path, value: Node)], _ prioritized: [Path]) -> Bool {
    var rest: [(path: Path, value: Node)] = []
    if !prioritized.isEmpty || !guarded.isEmpty {
      let places = later.map(\.path).sorted()
      rest = changes.filter { places.position(around: $0.path) == nil }
    }
    return later.allSatisfy { admits($0.path, $0.value, prioritized, beside: rest) }
  }

  /// - Parameter rest: these changes without those that are replaced, where there are priorities.
  private func admits(
    _ path: Path, _ value: Node, _ prioritized: [Path], beside rest: [(path: Path, value: Node)]
  ) -> Bool {
    if path.isPriority {
      if value.isEmpty { return true }
      // A location that comes into being here has to do so first; what is here as a whole has it as a part.
      let place = path.dataPath
      // Set here before, the location stood then, or this would not be here.
      if changes.contains(where: { $0.path == path && !$0.value.isEmpty }) { return true }
      return !changes.contains { $0.path != path && place.contains($0.path) } || holds(place)
    }
    if holds(path) {
      guard value.isEmpty, changes.contains(where: { $0.path == path }) else { return true }
    }
    if value.isEmpty {
      return !prioritized.contains { place in
        place.contains(path) && rest.contains { isOther($0, below: place, path) && !$0.value.isEmpty }
      }
    }
    return !guarded.contains { place in
      place.contains(path) && rest.contains { isOther($0, below: place, path) && $0.value.isEmpty }
    }
  }

  /// Whether a place is one of these changes, or lies inside one, with a value.
  private func holds(_ path: Path) -> Bool {
    changes.contains { !$0.value.isEmpty && $0.path.contains(path) }
  }

  /// Whether a change lies below a location, is not of a priority, and stays apart from one of `path`.
  private func isOther(_ change: (path: Path, value: Node), below place: Path, _ path: Path) -> Bool {
    place.contains(change.path) && !change.path.isPriority && !path.contains(change.path)
      && !change.path.contains(path)
  }

  /// Adds what a push says.
  mutating func add(_ push: RealtimePush) {
    add(MergedChanges.changes(of: push), below: push.prioritized)
  }

  /// Adds the message behind this one.
  mutating func add(_ later: MergedChanges) { add(later.changes, below: later.guarded) }

  private mutating func add(_ later: [(path: Path, value: Node)], below prioritized: [Path]) {
    for change in later { add(change.path, change.value) }
    if prioritized.isEmpty, guarded.isEmpty { return }
    for place in prioritized where !guarded.contains(place) { guarded.append(place) }
    guarded.removeAll { place in
      !changes.contains { $0.value.isEmpty && !$0.path.isPriority && place.contains($0.path) }
    }
  }

  /// What a push says, with each location that it leaves without a child removed as a whole.
  private static func changes(of push: RealtimePush) -> [(path: Path, value: Node)] {
    var changes: [(path: Path, value: Node)]
    switch push.body {
    case .set(let node): changes = [(push.path, node)]
    case .merge(let children): changes = children.map { (push.path.appending($0.path), $0.value) }
    case .rangeMerge, .cancel: changes = []
    }
    if push.emptied.isEmpty { return changes }
    var emptied: Set<Int> = []
    changes.removeAll { change in
      guard let position = push.emptied.position(around: change.path), push.emptied[position] != change.path
      else { return false }
      emptied.insert(position)
      return true
    }
    return changes + emptied.sorted().map { (push.emptied[$0], .empty) }
  }

  private mutating func add(_ path: Path, _ value: Node) {
    if let index = changes.firstIndex(where: { $0.path.contains(path) && $0.path != path }) {
      let relative = Path(keys: Array(path.keys.dropFirst(changes[index].path.count)))
      size -= changes[index].value.estimatedSize
      changes[index].value = changes[index].value.setting(relative, to: value)
      size += changes[index].value.estimatedSize
      return
    }
    changes.removeAll { change in
      guard path.contains(change.path) else { return false }
      size -= MergedChanges.size(change)
      return true
    }
    changes.append((path, value))
    size += MergedChanges.size((path, value))
  }

  private static func size(_ change: (path: Path, value: Node)) -> Int {
    change.path.keys.reduce(8) { $0 + $1.text.utf8.count + 1 } + change.value.estimatedSize
  }

  /// The changes as one push, at the deepest location that holds them all.
  func push(_ tag: Int64?) -> RealtimePush {
    guard let first = changes.first, changes.count > 1 else {
      return RealtimePush(changes.first?.path ?? .root, .set(changes.first?.value ?? .empty), tag: tag)
    }
    var common = first.path.dataPath
    for change in changes {
      while !common.contains(change.path), let parent = common.parent { common = parent }
    }
    let relative = changes.map { change in
      (path: Path(keys: Array(change.path.keys.dropFirst(common.count))), value: change.value)
    }
    return RealtimePush(common, .merge(relative), tag: tag)
  }
}
