// Defines staging limits so small that small programs use the code for large subtrees, and counts a store's
// rows.

import OrderedStore

@testable import RealtimeEngine

extension StagingLimits {
  /// A location with two rows gets a pending delete when it is replaced.
  static var tinyRemovals: StagingLimits {
    var limits = StagingLimits()
    (limits.clearedRows, limits.cleanedRows) = (1, 1)
    limits.minimumGapChanges = 1
    return limits
  }

  /// A value with three rows is read in the background, one row at a time. Hashing and sorting are prepared
  /// there too. One operation of a batch reads.
  static var tinyReads: StagingLimits {
    var limits = StagingLimits()
    (limits.readRows, limits.chunkRows, limits.preparedBytes) = (2, 1, 16)
    limits.batchQuantum = .zero
    limits.minimumGapChanges = 2
    return limits
  }

  /// Every object is also staged, one row at a time, and read in the background.
  static var tiny: StagingLimits {
    var limits = StagingLimits.tinyReads
    (limits.clearedRows, limits.cleanedRows) = (1, 1)
    (limits.minimumStagedBytes, limits.minimumGenerationBytes, limits.stepRows) = (64, 0, 1)
    return limits
  }

  /// Nothing is staged: a write larger than a commit is rejected.
  static var none: StagingLimits {
    var limits = StagingLimits()
    (limits.clearedRows, limits.clearedBytes) = (.max, .max)
    (limits.minimumStagedBytes, limits.minimumGenerationBytes) = (.max, .max)
    return limits
  }
}

/// The number of a database's rows by kind, the first byte of their keys.
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

/// Waits until a condition holds, for at most a minute on a busy machine.
func eventually(_ condition: () async throws -> Bool) async throws -> Bool {
  let start = ContinuousClock.now
  while ContinuousClock.now - start < .seconds(60) {
    if try await condition() { return true }
    try await Task.sleep(for: .milliseconds(5))
  }
  return false
}
