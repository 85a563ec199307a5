// Where children have, or ever had, priorities. Most databases have none at all, and others in few places: elsewhere the
// order by priority, which is that of every query that names no other, is the order by key, and a window is read from rows
// as they lie.
//
//   'p'          stands while the rows below say all there is to say, from the time the tree was seen empty
//   'q' + path   a child of this location has, or had, a priority: 0x00; or something anywhere below it: 0x01
//
// Invariant: a row 'q' is written by the commit that brings the priority into the tree. Where 'p' does not stand nothing is
// known.

import OrderedStore
import RealtimeModel

extension RowKeys {
  static let noPriorities: [UInt8] = [UInt8(ascii: "p")]
  private static let prioritized = UInt8(ascii: "q")

  /// The row that speaks of a location, whose row key is given.
  static func prioritized(_ location: some Sequence<UInt8>) -> [UInt8] {
    [prioritized] + location.dropFirst()
  }

  /// Whether a row of the tree, or of a generation, brings a priority: one of its own, or a leaf's.
  static func hasPriority(_ path: some BidirectionalCollection<UInt8>, _ value: [UInt8]) -> Bool {
    path.last == priority || value.first.map { $0 & NodeEncoder.priorityFlag != 0 } ?? false
  }

  /// The row key of the location above that of a row of the tree; nil for the root.
  static func parent(_ key: [UInt8]) -> ArraySlice<UInt8>? {
    let location = key.last == priority ? key.dropLast() : key[...]
    guard location.count > 1 else { return nil }
    let end = location.dropLast().lastIndex(of: terminator) ?? location.startIndex
    return location[...end]
  }
}

/// What one pass writes of the use of priorities.
struct PriorityMarks {
  enum Extent: UInt8 {
    case children = 0x00
    case everything = 0x01
  }

  /// Whether rows say all there is to say; nil until somebody asked.
  private var isKnown: Bool?
  private var marked: [ArraySlice<UInt8>: Extent] = [:]

  /// Takes note of an empty tree.
  mutating func begin(in base: any SequencedTransaction) throws {
    try base.set(RowKeys.noPriorities, [])
    isKnown = true
  }

  /// Takes note of priorities at a location.
  mutating func mark(_ location: ArraySlice<UInt8>, _ extent: Extent, in base: any SequencedTransaction)
    throws
  {
    if let known = marked[location], known.rawValue >= extent.rawValue { return }
    let isKnown = try isKnown ?? (base.get(RowKeys.noPriorities) != nil)
    self.isKnown = isKnown
    guard isKnown else { return }
    marked[location] = extent
    let row = RowKeys.prioritized(location)
    if let known = try base.get(row)?.value.first, known >= extent.rawValue { return }
    try base.set(row, [extent.rawValue])
  }
}

extension SequencedBody {
  /// Whether no child of a location has a priority, as far as is known without looking at them.
  func hasNoPriorities(at path: Path) throws -> Bool {
    guard try tree.view.get(RowKeys.noPriorities) != nil else { return false }
    let location = RowKeys.row(of: path)
    if try tree.view.get(RowKeys.prioritized(location)) != nil { return false }
    var above = RowKeys.parent(location)
    while let next = above {
      if try tree.view.get(RowKeys.prioritized(next))?.value.first == PriorityMarks.Extent.everything.rawValue
      {
        return false
      }
      above = RowKeys.parent(Array(next))
    }
    return true
  }

  /// Takes note of an empty tree, once, before something is written to it.
  func lookForPriorities() throws {
    guard let writer, sequencer.mustLookForPriorities else { return }
    sequencer.mustLookForPriorities = false
    guard try tree.view.get(RowKeys.noPriorities) == nil else { return }
    var isEmpty = true
    try writer.scan(RowKeys.range(of: .root), reverse: false) { _, _, _ in
      isEmpty = false
      return false
    }
    if isEmpty { try writer.beginPriorities() }
  }
}
