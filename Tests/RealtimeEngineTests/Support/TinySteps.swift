// Steps so small that small programs take the way of large subtrees, and what rows a store holds of it.

import OrderedStore

@testable import RealtimeEngine

extension StagingLimits {
  /// Whatever has two rows is left behind when it is replaced.
  static var tinyRemovals: StagingLimits {
    var limits = StagingLimits()
    (limits.clearedRows, limits.cleanedRows) = (1, 1)
    limits.stretchedChanges = 1
    return limits
  }

  /// Whatever has three rows is read aside, a row at a time, and so is whatever is hashed or ordered prepared; one
  /// operation of a batch reads.
  static var tinyReads: StagingLimits {
    var limits = StagingLimits()
    (limits.readRows, limits.pieceRows, limits.preparedBytes) = (2, 1, 16)
    limits.turnTime = .zero
    limits.stretchedChanges = 2
    return limits
  }

  /// Every object is filled in beforehand too, a row at a time, and read aside.
  static var tiny: StagingLimits {
    var limits = StagingLimits.tinyReads
    (limits.clearedRows, limits.cleanedRows) = (1, 1)
    (limits.heavyBytes, limits.generationBytes, limits.stepRows) = (64, 0, 1)
    return limits
  }

  /// Nothing is staged: what does not fit into one commit is refused.
  static var none: StagingLimits {
    var limits = StagingLimits()
    (limits.clearedRows, limits.clearedBytes) = (.max, .max)
    (limits.heavyBytes, limits.generationBytes) = (.max, .max)
    return limits
  }
}

/// How many rows a database has of each kind, by the first byte of their keys.
func rowCounts(_ store: any OrderedStore, _ namespace: String) async throws -> [Character: Int] {
  let database = try await store.database(named: "realtime/\(namespace)", history: .activeReadersOnly)
  return try await database.read(at: nil) { view in
    var counts: [Character: Int] = [:]
    try view.scan(KeyRange(start: [], end: nil), reverse: false) { key, _, _ in
      if let first = key.first { counts[Character(Unicode.Scalar(first)), default: 0] += 1 }
      return true
    }
    return counts
  }
}

/// Waits until something holds, for at most a minute: machines may be busy.
func eventually(_ condition: () async throws -> Bool) async throws -> Bool {
  let start = ContinuousClock.now
  while ContinuousClock.now - start < .seconds(60) {
    if try await condition() { return true }
    try await Task.sleep(for: .milliseconds(5))
  }
  return false
}
