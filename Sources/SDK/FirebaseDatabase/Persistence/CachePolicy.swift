// The cache policy: when the cache is pruned, and how much one pruning removes. The numbers are those of
// Google's SDK.

/// The limits of a cache on disk.
struct CachePolicy {
  /// The number of updates from the server between two checks.
  static let updatesBetweenChecks = 1_000
  /// The maximum number of queries that nothing observes.
  static let maximumInactiveQueries = 1_000
  /// The share of the inactive queries that one pruning removes.
  static let prunedShare = 0.2

  /// The size in bytes up to which the file may grow.
  let maximumBytes: Int

  /// Whether the cache must be pruned.
  func mustPrune(bytes: Int, inactiveQueries: Int) -> Bool {
    bytes > maximumBytes || inactiveQueries > CachePolicy.maximumInactiveQueries
  }

  /// The number of inactive queries that one pruning removes.
  func pruneCount(inactiveQueries: Int) -> Int {
    let kept = Int(Double(inactiveQueries) * (1 - CachePolicy.prunedShare))
    return inactiveQueries - min(kept, CachePolicy.maximumInactiveQueries)
  }
}
