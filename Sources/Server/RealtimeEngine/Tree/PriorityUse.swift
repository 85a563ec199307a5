// Tracks the locations whose children have, or had, priorities, so that a query knows whether a child of its location
// may have a priority.
//
// Most databases have no priorities. Where no child has one, the default order of queries, by priority, equals the
// order by key. A query's window (the children that it selects) is then read from the tree's rows in key order.
//
//   'p'          exists if the rows 'q' are complete: a write to the empty tree creates it
//   'q' + path 0x00: a child of this location has, or had, a priority; 0x01: any location below it has, or had
//
// Invariant: while 'p' exists, each commit that adds a priority to the tree also writes the row 'q' of its
// location. Without 'p' the use of priorities is unknown.

import OrderedStore
import RealtimeModel

extension RowKeys {
  static let priorityTracking: [UInt8] = [UInt8(ascii: "p")]
  private static let prioritized = UInt8(ascii: "q")

  /// The key of a location's row 'q', given the location's row key.
  static func prioritized(_ location: some Sequence<UInt8>) -> [UInt8] {
    [prioritized] + location.dropFirst()
  }

  /// Whether a row of the tree or of a generation contains a priority, as a priority row or in a leaf.
  static func hasPriority(_ path: some BidirectionalCollection<UInt8>, _ value: [UInt8]) -> Bool {
    path.last == priority || value.first.map { $0 & NodeEncoder.priorityFlag != 0 } ?? false
  }

  /// The row key of the parent of a row's location; nil for the root.
  static func parent(_ key: [UInt8]) -> ArraySlice<UInt8>? {
    let location = key.last == priority ? key.dropLast() : key[...]
    guard location.count > 1 else { return nil }
    let end = location.dropLast().lastIndex(of: terminator) ?? location.startIndex
    return location[...end]
  }
}

/// Writes the rows 'p' and 'q', and remembers those that the current batch has written.
struct PriorityMarks {
  enum Extent: UInt8 {
    case children = 0x00
    case everything = 0x01
  }

  /// Whether the row 'p' exists, so that the rows 'q' are complete; nil until the batch has read it.
  private var isTracking: Bool?
  private var marked: [ArraySlice<UInt8>: Extent] = [:]

  /// Writes the row 'p'. The tree must be empty.
  mutating func recordNone(in base: any SequencedTransaction) throws {
    try base.set(RowKeys.priorityTracking, [])
    isTracking = true
  }

  /// Records priorities at a location.
  mutating func mark(_ location: ArraySlice<UInt8>, _ extent: Extent, in base: any SequencedTransaction)
    throws
  {
    if let known = marked[location], known.rawValue >= extent.rawValue { return }
    let isTracking = try isTracking ?? (base.get(RowKeys.priorityTracking) != nil)
    self.isTracking = isTracking
    guard isTracking else { return }
    marked[location] = extent
    let row = RowKeys.prioritized(location)
    if let known = try base.get(row)?.value.first, known >= extent.rawValue { return }
    try base.set(row, [extent.rawValue])
  }
}

extension Tree {
  /// Whether the rows prove that no child of a location has a priority. Does not read the children.
  func hasNoPriorities(at path: Path) throws -> Bool {
    guard try view.get(RowKeys.priorityTracking) != nil else { return false }
    let location = RowKeys.row(of: path)
    if try view.get(RowKeys.prioritized(location)) != nil { return false }
    var above = RowKeys.parent(location)
    while let next = above {
      if try view.get(RowKeys.prioritized(next))?.value.first == PriorityMarks.Extent.everything.rawValue {
        return false
      }
      above = RowKeys.parent(Array(next))
    }
    return true
  }
}
