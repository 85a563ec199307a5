// A location that is read beside the sequencer because it is too large to be read in it, and what changes there
// meanwhile. Once the rows of a durable state are there, the changes behind that state are applied: what comes out is the
// value at the moment at which a sequenced body asks for it.
//
// Invariants
//   1. `note` hears of every change at, above and below the location that is sequenced after the read was added to
//      ``LargeReads``; every change before that is durable when its state is taken.
//   2. A read that could not follow every change, or followed one that was taken back, is spoiled and gives nothing.

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
    /// What has changed and is not part of `node`.
    var changes: [Change] = []
    var bytes = 0
    var node: Node?
    var indexes: [Ordering: OrderedIndex] = [:]
    var isSpoiled = false
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
    state = Guarded(State(node: node))
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
      state.bytes += change.value.estimatedSize + 64
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

  private static func spoil(_ state: inout State) { state = State(isSpoiled: true) }

  /// The value now, and its children in an order that was asked for; nil if the read is spoiled. In a sequenced body, once
  /// the read is over.
  func current(in ordering: Ordering?) -> (node: Node, index: OrderedIndex?)? {
    _ = apply(atMost: .max)
    return state.withLock { state in
      guard let node = state.node else { return nil }
      return (node, ordering.flatMap { state.indexes[$0] })
    }
  }

  // MARK: Beside it

  var isSpoiled: Bool { state.withLock { $0.isSpoiled } }

  /// Takes the value as it was at a version, which everything has that changed before the read was added.
  func land(_ node: Node, at version: Version) {
    state.withLock { state in
      guard !state.isSpoiled else { return }
      state.changes.removeAll { $0.version <= version }
      state.node = node
    }
  }

  /// Applies changes until few are left.
  func catchUp() {
    while apply(atMost: .max) > LargeRead.fewChanges {}
  }

  /// Has the children kept in an order.
  func index(by ordering: Ordering) {
    catchUp()
    guard let node = state.withLock({ $0.indexes[ordering] == nil ? $0.node : nil }) else { return }
    let index = OrderedIndex(of: node, by: ordering)
    state.withLock { state in if !state.isSpoiled { state.indexes[ordering] = index } }
    catchUp()
  }

  /// The value as far as it is known, for what is worth finding out of it beforehand.
  var known: Node? { state.withLock { $0.node } }

  /// Applies the changes that are there; how many they were. One caller at a time: whoever reads, and then the sequencer.
  private func apply(atMost most: Int) -> Int {
    let taken = state.withLock {
      state -> (node: Node, changes: [Change], indexes: [Ordering: OrderedIndex])? in
      guard let node = state.node, !state.changes.isEmpty else { return nil }
      defer { (state.changes, state.bytes) = ([], 0) }
      return (node, state.changes, state.indexes)
    }
    guard let (before, changes, old) = taken else { return 0 }
    var node = before
    var keys: Set<Key> = []
    var isReplaced = false
    for change in changes {
      node = node.setting(change.path, to: change.value)
      if let key = change.path.first { if !key.isPriority { keys.insert(key) } } else { isReplaced = true }
    }
    var indexes = old
    for ordering in old.keys {
      if isReplaced || before.isEmpty || before.isLeaf || node.isEmpty || node.isLeaf {
        indexes[ordering] = OrderedIndex(of: node, by: ordering)
      } else {
        indexes[ordering]?.update(to: node, changed: keys)
      }
    }
    state.withLock { state in
      guard !state.isSpoiled else { return }
      state.node = node
      state.indexes = indexes
    }
    return changes.count
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

  func note(_ path: Path, _ value: Node, at version: Version) {
    for read in all { read.note(path, value, at: version) }
  }

  func forget(_ path: Path) { for read in all { read.forget(path) } }

  func spoilAll() { for read in all { read.spoil() } }

  private var all: [LargeRead] { entries.withLock { $0.isEmpty ? [] : $0.compactMap(\.read) } }
}
