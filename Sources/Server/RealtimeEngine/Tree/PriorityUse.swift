// Whether any location of a database has, or ever had, a priority. Most databases have none at all: then the order by
// priority, which is that of every query that names no other, is the order by key, and a window is read from rows as they
// lie.
//
//   'p'   stands while no location has had a priority since the tree was last seen empty
//
// Invariant: the row is cleared by the commit that brings the first priority into the tree. Where it does not stand
// nothing is known.

import OrderedStore
import RealtimeModel

extension RowKeys {
  static let noPriorities: [UInt8] = [UInt8(ascii: "p")]

  /// Whether a row of the tree, or of a generation, brings a priority: one of its own, or a leaf's.
  static func hasPriority(_ path: some BidirectionalCollection<UInt8>, _ value: [UInt8]) -> Bool {
    path.last == priority || value.first.map { $0 & NodeEncoder.priorityFlag != 0 } ?? false
  }
}

extension SequencedBody {
  /// Whether no child has a priority, as far as is known without looking at them.
  func hasNoPriorities() throws -> Bool { try tree.view.get(RowKeys.noPriorities) != nil }

  /// Takes note of an empty tree, once, before something is written to it.
  func lookForPriorities() throws {
    guard let writer, sequencer.mustLookForPriorities else { return }
    sequencer.mustLookForPriorities = false
    var isEmpty = try !hasNoPriorities()
    guard isEmpty else { return }
    try writer.scan(RowKeys.range(of: .root), reverse: false) { _, _, _ in
      isEmpty = false
      return false
    }
    if isEmpty { try writer.set(RowKeys.noPriorities, []) }
  }
}
