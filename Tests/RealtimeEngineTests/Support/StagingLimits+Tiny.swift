// Defines tiny staging limits, the sizes above which the engine handles subtrees in the background. With tiny limits, small
// test programs use the code for large subtrees. Also counts a store's rows.

import OrderedStore

@testable import RealtimeEngine

extension StagingLimits {
  /// Replacing a location with at least two rows leaves a pending delete: the rows are cleared in the
  /// background.
  static var tinyRemovals: StagingLimits {
    var limits = StagingLimits()
    (limits.clearedRows, limits.cleanedRows) = (1, 1)
    limits.minimumGapChanges = 1
    return limits
  }

  /// Values with at least three rows are read, hashed and sorted in the background, one row at a time. Only
  /// one operation of a batch may read.
  static var tinyReads: StagingLimits {
    var limits = StagingLimits()
    (limits.readRows, limits.chunkRows, limits.preparedBytes) = (2, 1, 16)
    limits.batchQuantum = .zero
    limits.minimumGapChanges = 2
    (limits.decisionSteps, limits.minimumDecisionSteps, limits.decidedPaths) = (0, 0, 0)
    return limits
  }

  /// In addition to the limits of `tinyReads`: every written object is staged as a generation, one row at a time.
  static var tiny: StagingLimits {
    var limits = StagingLimits.tinyReads
    (limits.clearedRows, limits.cleanedRows) = (1, 1)
    (limits.minimumStagedBytes, limits.minimumGenerationBytes, limits.stepRows) = (64, 0, 1)
    return limits
  }

  /// No value is staged, so a write that is too large for one commit is rejected.
  static var none: StagingLimits {
    var limits = StagingLimits()
    (limits.clearedRows, limits.clearedBytes) = (.max, .max)
    (limits.minimumStagedBytes, limits.minimumGenerationBytes) = (.max, .max)
    return limits
  }
}

/// Returns the number of a database's rows of each kind. The kind is the first byte of a row's key.
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
