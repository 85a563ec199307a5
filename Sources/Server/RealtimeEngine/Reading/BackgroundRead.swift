// Holds the value of a location that a background job reads, and applies the changes that are sequenced during the
// read.
//
// The rows come from a durable state. Later changes are recorded and applied to the value. So a batch sees
// the current value of the location in the sequenced order.
//
// Invariants
//   1. `record` receives every change at, above and below the location that is sequenced after the read was
//      added to ``ChangeObservers``. Every earlier change is durable when the rows are read.
//   2. A read is spoiled once it may have missed a change, or applied a change that was rolled back. A
//      spoiled read has no value.
//   3. Only one job at a time reserves a read and prepares answers from it. Batches use the value without
//      changing it.
//
// Decision: docs/decisions/0012-large-reads.md

import Locking
import OrderedStore
import RealtimeModel

/// One background read.
final class BackgroundRead: ChangeObserver {
  private struct Change {
    let version: Version
    /// The changed path, relative to the location.
    let path: Path
    let value: Node
  }

  private struct State {
    /// The changes that `location` does not contain, in sequenced order.
    var changes: [Change] = []
    var bytes = 0
    var location: OrderedLocation?
    var isSpoiled = false
    var isReserved = false
  }

  /// Maximum bytes of the recorded changes. Beyond it the read is spoiled, and the location is read again.
  private static let maximumBytes = 64 << 20
  /// If the background job has applied at most this many changes at once, it leaves newer changes to the
  /// batch.
  private static let maximumChangesInBatch = 64

  let path: Path
  private let state: Guarded<State>

  /// - Parameter node: the value; nil if it is not in memory yet.
  init(_ path: Path, _ node: Node? = nil) {
    self.path = path
    state = Guarded(State(location: node.map { OrderedLocation($0) }))
  }

  // MARK: In batches

  /// Records a change. The batch that makes the change calls this.
  func record(_ changed: Path, _ value: Node, at version: Version) {
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
      precondition(
        state.changes.last.map { $0.version <= version } ?? true,
        "invariant: changes are recorded in sequenced order")
      state.bytes += BackgroundRead.size(change)
      state.changes.append(change)
      if state.bytes > BackgroundRead.maximumBytes { BackgroundRead.spoil(&state) }
    }
  }

  /// Spoils the read if a location at, above or below it has changed to an unknown value.
  func invalidate(_ changed: Path) {
    if changed.contains(path) || path.contains(changed) { spoil() }
  }

  /// Discards the value: changes may have been missed, or rolled back.
  func spoil() { state.withLock { BackgroundRead.spoil(&$0) } }

  private static func spoil(_ state: inout State) {
    state = State(isSpoiled: true, isReserved: state.isReserved)
  }

  /// Whether another operation may use it: the value is known, and no job has reserved it.
  var isIdle: Bool { state.withLock { !$0.isReserved && $0.location != nil } }

  /// The current value, with the order and window prepared for a query; nil if the read is spoiled or has no
  /// value yet.
  func current(for query: QuerySpec?) -> OrderedLocation? {
    let (location, changes) = state.withLock { ($0.location, $0.changes) }
    guard let location else { return nil }
    let part = query.map { location.restricted(to: $0) } ?? OrderedLocation(location.node)
    return BackgroundRead.apply(changes, to: part, maySort: false)
  }

  // MARK: In the background

  /// Reserves the read for one job; returns false if another job has it.
  func reserve() -> Bool {
    state.withLock { state in
      defer { state.isReserved = true }
      return !state.isReserved
    }
  }

  /// Ends the reservation.
  func endReservation() {
    state.withLock { state in
      precondition(state.isReserved, "invariant: only the reserving job ends a reservation")
      state.isReserved = false
    }
  }

  var isSpoiled: Bool { state.withLock { $0.isSpoiled } }

  /// Sets the value as of a version. The version contains every change from before the read was added.
  func setBase(_ node: Node, at version: Version) {
    state.withLock { state in
      guard !state.isSpoiled else { return }
      state.changes.removeAll { $0.version <= version }
      state.location = OrderedLocation(node)
    }
  }

  /// Applies recorded changes until only a few remain.
  func catchUp() {
    while true {
      let (location, changes) = state.withLock { ($0.location, $0.changes) }
      guard let location, !changes.isEmpty else { return }
      let now = BackgroundRead.apply(changes, to: location, maySort: true)
      state.withLock { state in
        guard !state.isSpoiled else { return }
        state.location = now
        state.changes.removeFirst(changes.count)
        for change in changes { state.bytes -= BackgroundRead.size(change) }
      }
      if changes.count <= BackgroundRead.maximumChangesInBatch { return }
    }
  }

  /// Sorts the children in the order of a query. With `withWindow`, finds the query's window instead.
  func prepare(_ query: QuerySpec, withWindow: Bool) {
    catchUp()
    guard var location else { return }
    if withWindow { _ = location.ensureView(of: query) } else { location.ensureIndex(by: query.ordering) }
    state.withLock { [location] state in if !state.isSpoiled { state.location = location } }
    catchUp()
  }

  /// The value without the recorded changes; nil before the value is read, and once the read is spoiled.
  var location: OrderedLocation? { state.withLock { $0.location } }

  private static func size(_ change: Change) -> Int { change.value.estimatedSize + 64 }

  /// Applies changes to a location, in order.
  ///
  /// - Parameter maySort: whether the children may be sorted again if the complete value is replaced.
  ///   Otherwise the result has no sorted order then.
  private static func apply(
    _ changes: [Change], to location: OrderedLocation, maySort: Bool
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
    if isReplaced, !maySort { return OrderedLocation(node) }
    var location = location
    if isReplaced {
      location.replace(by: node) { _, _ in }
    } else {
      location.apply(to: node, keys: keys, changes: []) { _, _ in }
    }
    return location
  }
}

/// Background work that receives the changes that are sequenced while it runs.
protocol ChangeObserver: AnyObject, Sendable {
  /// Records a change. The batch that makes the change calls this.
  func record(_ changed: Path, _ value: Node, at version: Version)
  /// Records that a location has changed to an unknown value.
  func invalidate(_ changed: Path)
  /// Records that changes may have been missed, or rolled back.
  func spoil()
}

/// The background work of one database that receives changes.
final class ChangeObservers: Sendable {
  private struct Entry {
    weak var observer: (any ChangeObserver)?
  }

  private let entries = Guarded<[Entry]>([])

  /// Adds an observer. It receives every change from now on, as long as an operation or a job retains it.
  func add(_ observer: any ChangeObserver) {
    entries.withLock { entries in
      entries.removeAll { $0.observer == nil }
      entries.append(Entry(observer: observer))
    }
  }

  /// A read of a location that has a value and that no job has reserved.
  func idleRead(at path: Path) -> BackgroundRead? {
    all.lazy.compactMap { $0 as? BackgroundRead }.first { $0.path == path && $0.isIdle }
  }

  func record(_ path: Path, _ value: Node, at version: Version) {
    for observer in all { observer.record(path, value, at: version) }
  }

  func invalidate(_ path: Path) { for observer in all { observer.invalidate(path) } }

  func spoilAll() { for observer in all { observer.spoil() } }

  private var all: [any ChangeObserver] {
    entries.withLock { $0.isEmpty ? [] : $0.compactMap(\.observer) }
  }
}
