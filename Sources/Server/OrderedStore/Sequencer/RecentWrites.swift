// Recent writes: the keys of a database that changed recently, with their versions. The sequencer validates
// read sets with them, without reading rows. A key that appears in a scanned range counts as a change, so
// the sequencer detects phantoms (rows that appear in a range after it was read).
//
// Invariants
//   1. Every change with a version above `horizon` is recorded here.
//   2. Commits are added with rising versions; `horizon` never falls.
//
// Keys are indexed only when a read set is validated, so that databases without such transactions need no index. Until
// then a commit's keys are copied into one block of memory (`KeyList`). Retaining thousands of small blocks would cost
// more than this copy.

/// The keys changed since a horizon.
struct RecentWrites {
  /// The maximum number of retained keys.
  static let maximumKeys = 200_000
  /// The maximum size of the retained keys, in bytes.
  static let maximumBytes = 16 << 20
  /// The time that changes are retained, in microseconds.
  static let maximumAge: UInt64 = 60_000_000

  /// Retained commits, oldest first, from `head`.
  private var commits: [(version: Version, keys: KeyList)] = []
  private var head = 0
  /// The number of commits whose keys are in `newest`.
  private var indexedCount = 0
  /// The newest version of each indexed key.
  private var newest = OrderedMap<Version>()
  private var keyCount = 0
  private var byteCount = 0

  /// The version up to which changes may be missing here.
  private(set) var horizon: Version

  init(horizon: Version) { self.horizon = horizon }

  /// Records the keys of a commit.
  mutating func add(_ keys: KeyList, at version: Version) {
    precondition(
      version > commits.last?.version ?? horizon, "invariant: commits are recorded with rising versions")
    commits.append((version, keys))
    keyCount += keys.count
    byteCount += keys.byteCount
    while head < commits.count,
      keyCount > RecentWrites.maximumKeys || byteCount > RecentWrites.maximumBytes
        || commits[head].version.microseconds + RecentWrites.maximumAge < version.microseconds
    {
      removeOldest()
    }
  }

  /// The maximum number of changed keys for which ``hasChangedAmongFew(since:)`` decides.
  private static let maximumComparedKeys = 1_000

  /// Whether any row of a read set has changed since it was read; nil if more than ``maximumComparedKeys`` keys have
  /// changed since. The cost depends on the numbers of reads and of changed keys, not on the size of the ranges.
  func hasChangedAmongFew(since reads: ReadSet) -> Bool? {
    guard reads.version >= horizon else { return nil }
    var changed = OrderedMap<Version>()
    var count = 0
    for commit in commits[head...].reversed() {
      if commit.version <= reads.version { break }
      count += commit.keys.count
      guard count <= RecentWrites.maximumComparedKeys else { return nil }
      for key in commit.keys { changed.updateValue(commit.version, forKey: key) }
    }
    if count == 0 { return false }
    if reads.keys.contains(where: { changed[$0] != nil }) { return true }
    return reads.ranges.contains { range in
      var cursor = OrderedMapCursor(changed)
      range.start.withUnsafeBytes { cursor.seek($0) }
      return cursor.isValid && range.contains(cursor.key)
    }
  }

  /// Whether any row of a read set has changed since it was read; nil if the reads are older than the
  /// horizon.
  mutating func hasChanged(since reads: ReadSet) -> Bool? {
    guard reads.version >= horizon else { return nil }
    indexCommits()
    for key in reads.keys {
      if let version = newest[key], version > reads.version { return true }
    }
    for range in reads.ranges where hasChanged(range, since: reads.version) { return true }
    return false
  }

  private func hasChanged(_ range: KeyRange, since version: Version) -> Bool {
    var cursor = OrderedMapCursor(newest)
    range.start.withUnsafeBytes { cursor.seek($0) }
    while cursor.isValid {
      if let end = range.end, compareKeys(cursor.key, end) >= 0 { return false }
      if cursor.value > version { return true }
      cursor.next()
    }
    return false
  }

  private mutating func indexCommits() {
    indexedCount = max(indexedCount, head)
    while indexedCount < commits.count {
      for key in commits[indexedCount].keys {
        newest.updateValue(commits[indexedCount].version, forKey: key)
      }
      indexedCount += 1
    }
  }

  private mutating func removeOldest() {
    let (version, keys) = commits[head]
    horizon = version
    keyCount -= keys.count
    byteCount -= keys.byteCount
    if head < indexedCount {
      for key in keys { newest.removeValue(forKey: key) { $0 <= version } }
    }
    commits[head].keys = KeyList()
    head += 1
    if head >= 1024, head * 2 >= commits.count {
      commits.removeFirst(head)
      indexedCount = max(indexedCount - head, 0)
      head = 0
    }
    precondition(keyCount >= 0 && byteCount >= 0, "invariant: a removed commit was counted")
  }
}
