// What one transaction has read, for validation at its commit.
//
// Invariant: each row and range is kept once, however often it was read, and `bytes` is what they take.

import OrderedStore

/// The read set of an open transaction.
struct TransactionReads: Sendable {
  /// The version that all of it was true at.
  private(set) var version = Version.zero
  private(set) var bytes = 0
  private var keys: Set<Key> = []
  private var ranges: Set<KeyRange> = []

  /// The number of rows and ranges.
  var count: Int { keys.count + ranges.count }

  /// Adds what one request read.
  mutating func add(_ reads: ReadSet) {
    // Under locks nothing read before can have changed since: one version, the latest, holds for all.
    version = max(version, reads.version)
    for key in reads.keys where keys.insert(key).inserted { bytes += key.count + Self.overhead }
    for range in reads.ranges where ranges.insert(range).inserted { bytes += Self.size(of: range) }
  }

  /// Only takes note of a version that was read at.
  mutating func note(_ read: Version) { version = max(version, read) }

  /// All of it, as the store validates it.
  var readSet: ReadSet { ReadSet(version: version, keys: Array(keys), ranges: Array(ranges)) }

  /// What reads would add at most.
  static func size(of keys: [Key], _ ranges: [KeyRange]) -> Int {
    keys.reduce(0) { $0 + $1.count + overhead } + ranges.reduce(0) { $0 + size(of: $1) }
  }

  private static func size(of range: KeyRange) -> Int {
    range.start.count + (range.end?.count ?? 0) + 2 * overhead
  }

  /// What an array and its place in a set take besides its bytes.
  private static let overhead = 64
}
