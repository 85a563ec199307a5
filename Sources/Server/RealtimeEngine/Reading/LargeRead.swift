// A location that is read beside the sequencer because it is too large to be read in it, and what changes there
// meanwhile. Once the rows of a durable state are there, the changes behind that state are applied: what comes out is the
// value at the moment at which a sequenced body asks for it.
//
// Invariants
//   1. `note` hears of every change at, above and below the location that is sequenced after the read was added to
//      ``LargeReads``; every change before that is durable when its state is taken.
//   2. A read that could not follow every change, or followed one that was taken back, is spoiled and gives nothing.
//   3. One caller at a time prepares a read; sequenced bodies look at it meanwhile and leave it as it is.

import Locking
import OrderedStore
import RealtimeModel

/// One large read.
final class LargeRead: Sendable {
  private struct Change {
    let version: Version
    /// Relative to the location.
    let path: Path
    let value: Node
  }

  private struct State {
    /// What has changed and is not part of `location`.
    var changes: [Change] = []
    var bytes = 0
    var location: OrderedLocation?
    var isSpoiled = false
    /// Whether somebody prepares it.
    var isTaken = false
  }

  /// Changes of more bytes than that are not kept: it is read again.
  private static let mostBytes = 64 << 20
  /// So few changes are applied in the sequencer.
  private static let fewChanges = 64

  let path: Path
  private let state: Guarded<State>

  /// - Parameter node: the value, where it is in memory already.
  init(_ path: Path, _ node: Node? = nil) {
    self.path = path
    state = Guarded(State(location: node.map { OrderedLocation($0) }))
  }

  // MARK: In the sequencer

  /// Hears that a location has changed; in the body that changes it.
  func note(_ changed: Path, _ value: Node, at version: Version) {
    let change: Change
    if let relative = changed.relative(to: path) {
      change = Change(version: version, path: relative, value: value)
    } else if let rest = path.relative(to: changed) {
      change = Change(version: version, path: .root, value: value.descendant(rest))
    } else {
      return
    }
    state.withLock { state in
      guard !state.isSpoiled else { return }
      state.bytes += LargeRead.size(change)
      state.changes.append(change)
      if state.bytes > LargeRead.mostBytes { LargeRead.spoil(&state) }
    }
  }

  /// Hears that a location has changed to nobody knows what.
  func forget(_ changed: Path) {
    if changed.contains(path) || path.contains(changed) { spoil() }
  }

  /// Gives the read up: changes may have been missed, or taken back.
  func spoil() { state.withLock { LargeRead.spoil(&$0) } }

  private static func spoil(_ state: inout State) { state = State(isSpoiled: true, isTaken: state.isTaken) }

  /// Whether it may serve others too: it was read, and nobody prepares it now.
  var isIdle: Bool { state.withLock { !$0.isTaken && $0.location != nil } }

  /// The value now, with what was prepared of it for a query; nil if the read is spoiled. In a sequenced body.
  func current(for query: QuerySpec?) -> OrderedLocation? {
    let (location, changes) = state.withLock { ($0.location, $0.changes) }
    guard let location else { return nil }
    let part = query.map { location.part(for: $0) } ?? OrderedLocation(location.node)
    return LargeRead.apply(changes, to: part, mayOrder: false)
  }

  // MARK: Beside it

  /// Becomes the one that prepares it; false if there is another.
  func take() -> Bool {
    state.withLock { state in
      defer { state.isTaken = true }
      return !state.isTaken
    }
  }

  /// Leaves it to whoever prepares it next.
  func leave() { state.withLock { $0.isTaken = false } }

  var isSpoiled: Bool { state.withLock { $0.isSpoiled } }

  /// Takes the value as it was at a version, which everything has that changed before the read was added.
  func land(_ node: Node, at version: Version) {
    state.withLock { state in
      guard !state.isSpoiled else { return }
      state.changes.removeAll { $0.version <= version }
      state.location = OrderedLocation(node)
    }
  }

  /// Applies changes until few are left.
  func catchUp() {
    while true {
      let (location, changes) = state.withLock { ($0.location, $0.changes) }
      guard let location, !changes.isEmpty else { return }
      let now = LargeRead.apply(changes, to: location, mayOrder: true)
      state.withLock { state in
        guard !state.isSpoiled else { return }
        state.location = now
        state.changes.removeFirst(changes.count)
        for change in changes { state.bytes -= LargeRead.size(change) }
      }
      if changes.count <= LargeRead.fewChanges { return }
    }
  }

  /// Has the children kept in the order of a query, and its window if that takes long to find or to hash.
  func prepare(_ query: QuerySpec, withWindow: Bool) {
    catchUp()
    guard var location = known else { return }
    if withWindow { _ = location.keep(query) } else { location.keep(query.ordering) }
    state.withLock { [location] state in if !state.isSpoiled { state.location = location } }
    catchUp()
  }

  /// The value as far as it is known, for what is worth finding out of it beforehand.
  var known: OrderedLocation? { state.withLock { $0.location } }

  private static func size(_ change: Change) -> Int { change.value.estimatedSize + 64 }

  /// A location after changes, in their order.
  ///
  /// - Parameter mayOrder: whether the children may be ordered anew where that is needed; else it is done without.
  private static func apply(
    _ changes: [Change], to location: OrderedLocation, mayOrder: Bool
  ) -> OrderedLocation {
    guard !changes.isEmpty else { return location }
    var node = location.node
    var keys: Set<ChildKey> = []
    var isReplaced = false
    for change in changes {
      node = node.setting(change.path, to: change.value)
      if let key = change.path.first { if !key.isPriority { keys.insert(key) } } else { isReplaced = true }
    }
    isReplaced = isReplaced || location.node.childCount == 0 || node.childCount == 0
    if isReplaced, !mayOrder { return OrderedLocation(node) }
    var location = location
    if isReplaced {
      location.replace(by: node) { _, _ in }
    } else {
      location.follow(to: node, keys: keys, changes: []) { _, _ in }
    }
    return location
  }
}

/// The large reads that are to hear of changes; told in the sequencer, and added to by anybody.
final class LargeReads: Sendable {
  private struct Entry {
    weak var read: LargeRead?
  }

  private let entries = Guarded<[Entry]>([])

  /// Has a read hear of everything that is sequenced from now on, for as long as somebody holds it.
  func add(_ read: LargeRead) {
    entries.withLock { entries in
      entries.removeAll { $0.read == nil }
      entries.append(Entry(read: read))
    }
  }

  /// A read of a location that somebody still holds, and nobody prepares.
  func idle(at path: Path) -> LargeRead? { all.first { $0.path == path && $0.isIdle } }

  func note(_ path: Path, _ value: Node, at version: Version) {
    for read in all { read.note(path, value, at: version) }
  }

  func forget(_ path: Path) { for read in all { read.forget(path) } }

  func spoilAll() { for read in all { read.spoil() } }

  private var all: [LargeRead] { entries.withLock { $0.isEmpty ? [] : $0.compactMap(\.read) } }
}
