// What a write would touch, found out beside the sequencer before it is submitted.

import OrderedStore
public import RealtimeModel

extension RealtimeDatabase {
  /// How many values an update would touch, counted up to a bound: those that it brings, and those that stand now where it
  /// puts them.
  ///
  /// - Throws: ``RealtimeModel/RealtimeError`` as the update itself would.
  public func estimate(
    _ path: Path, _ changes: [(Path, Node)], atMost most: Int, as caller: Caller
  ) async throws(RealtimeError) -> Int {
    guard case .count(let count) = try await read(.estimate(.update(path, changes), atMost: most), as: caller)
    else { return 0 }
    return count
  }
}

extension BatchExecution {
  /// Counts what a write would touch, for someone who may write it: others learn nothing.
  func estimate(_ write: RealtimeWrite, atMost most: Int, for caller: Caller) throws -> Int {
    var request = try WriteRequest(
      write, limits: executor.limits, bytes: executor.limits.restWriteBytes, mayNameItself: true)
    try request.resolve(in: tree, now: now)
    try mayWrite(request.changes, caller)
    var count = 0
    for change in request.changes where count < most {
      count += change.value.leafCount
      try tree.view.scan(RowKeys.range(of: change.path.dataPath), reverse: false) { _, _, _ in
        count += 1
        return count < most
      }
    }
    return min(count, most)
  }
}

extension Node {
  /// How many leaves the value has.
  fileprivate var leafCount: Int {
    guard case .children = content else { return isEmpty ? 0 : 1 }
    var count = 0
    forEachChild { _, child in
      count += child.leafCount
      return true
    }
    return count
  }
}
