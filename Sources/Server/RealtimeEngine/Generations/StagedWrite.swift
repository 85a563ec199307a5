// Stages the large values of a write before its commit: stores their rows invisibly, in several small commits.
// Otherwise they would exceed one commit or block other clients.

import OrderedStore
import RealtimeModel

/// A write whose large values are staged.
struct StagedWrite: Sendable {
  /// For each change with a staged value, by index: its generation, and the paths of server values. Only the
  /// commit that performs the write can resolve these.
  private(set) var changes: [Int: (generation: StagedGeneration, deferred: [Path])] = [:]

  /// Stages the large values of a write.
  static func stage(
    _ request: WriteRequest, in store: any OrderedDatabase, _ cleaner: Cleaner
  ) async throws -> StagedWrite {
    var staged = StagedWrite()
    for (position, change) in request.changes.enumerated() where !change.path.isPriority {
      guard RowWeight.change(change.path, change.value) > cleaner.limits.minimumGenerationBytes,
        !change.value.isLeaf, !change.value.isEmpty
      else { continue }
      let generation = try await StagedGeneration.begin(in: store, cleaner)
      let deferred = try await fill(generation, change.value)
      staged.changes[position] = (generation, deferred)
    }
    return staged
  }

  /// Adds the rows of a value. Returns the paths of server values, which only the commit that performs the
  /// write can resolve.
  private static func fill(_ generation: StagedGeneration, _ node: Node) async throws -> [Path] {
    let leaves = LeafIterator(node, generation.limits)
    while let rows = leaves.next() { try await generation.add(rows) }
    try await generation.waitUntilDurable()
    return leaves.deferred
  }
}

/// Iterates over the leaves of a value in chunks.
private final class LeafIterator {
  private struct Frame {
    let node: Node
    let keys: [ChildKey]
    /// The next child; nil before the first.
    var next: ChildKey?
    var isBegun = false
  }

  private var stack: [Frame]
  private(set) var deferred: [Path] = []

  private let limits: StagingLimits

  init(_ node: Node, _ limits: StagingLimits) {
    stack = [Frame(node: node, keys: [])]
    self.limits = limits
  }

  /// The next rows; nil at the end.
  func next() -> [StagedRow]? {
    var rows: [StagedRow] = []
    var bytes = 0
    while rows.count < limits.stepRows, bytes < limits.stepBytes, var frame = stack.popLast() {
      guard case .children = frame.node.content else {
        bytes += add(frame.node, frame.keys, to: &rows)
        continue
      }
      if !frame.isBegun, let priority = frame.node.priority {
        bytes += add(.leaf(priority.leafValue), frame.keys + [.priority], to: &rows)
      }
      var child: (ChildKey, Node)?
      let from = frame.next
      frame.next = nil
      frame.node.forEachChild(from: from) { key, node in
        if child == nil {
          child = (key, node)
          return true
        }
        frame.next = key
        return false
      }
      frame.isBegun = true
      guard let (key, node) = child else { continue }
      if frame.next != nil { stack.append(frame) }
      stack.append(Frame(node: node, keys: frame.keys + [key]))
    }
    return rows.isEmpty && stack.isEmpty ? nil : rows
  }

  private func add(_ leaf: Node, _ keys: [ChildKey], to rows: inout [StagedRow]) -> Int {
    guard !leaf.isEmpty else { return 0 }
    if leaf.containsDeferred {
      deferred.append(Path(keys: keys))
      return 16
    }
    var path: [UInt8] = []
    RowKeys.append(keys[...], to: &path)
    let row = StagedRow(path: path, value: NodeEncoder.encode(leaf))
    rows.append(row)
    return row.size
  }
}
