// Collects the reads of one transaction, which the store validates at its commit.
//
// Invariant: each row key and range is stored once, and `bytes` is their approximate size in memory.

import OrderedStore

/// The read set of an open transaction.
struct TransactionReads: Sendable {
  /// The version at which all reads are valid.
  private(set) var version = Version.zero
  private(set) var bytes = 0
  private var keys: Set<Key> = []
  private var ranges: Set<KeyRange> = []

  /// The number of rows and ranges.
  var count: Int { keys.count + ranges.count }

  /// Adds the reads of one request.
  mutating func add(_ reads: ReadSet) {
    // Locks keep earlier reads unchanged, so all reads are valid at the latest version.
    version = max(version, reads.version)
    for key in reads.keys where keys.insert(key).inserted { bytes += key.count + Self.overhead }
    for range in reads.ranges where ranges.insert(range).inserted { bytes += Self.size(of: range) }
  }

  /// Records only the version of a read.
  mutating func recordVersion(_ read: Version) { version = max(version, read) }

  /// All reads, as the store validates them.
  var readSet: ReadSet { ReadSet(version: version, keys: Array(keys), ranges: Array(ranges)) }

  /// The maximum bytes that reads would add.
  static func size(of keys: [Key], _ ranges: [KeyRange]) -> Int {
    keys.reduce(0) { $0 + $1.count + overhead } + ranges.reduce(0) { $0 + size(of: $1) }
  }

  private static func size(of range: KeyRange) -> Int {
    range.start.count + (range.end?.count ?? 0) + 2 * overhead
  }

  /// The overhead of an array and its set entry, in bytes.
  private static let overhead = 64
}
