// Which keys were changed lately, to tell in memory whether something that was read has changed since. A key that
// appears in a range that was scanned is a change like any other, so that phantoms are seen.
//
// Invariant: every change with a version above `horizon` is known here.
// Keys are put in order only when somebody validates, so that stores without transactions pay nothing for them.

/// The keys changed since a horizon.
struct RecentWrites {
  /// The most keys and bytes kept.
  static let keyLimit = 200_000
  static let byteLimit = 16 << 20
  /// How long changes are kept, in microseconds.
  static let age: UInt64 = 60_000_000

  private var commits: [(version: Version, keys: [Key])] = []
  private var head = 0
  private var ordered = 0
  private var newest = OrderedMap<Version>()
  private var keyCount = 0
  private var byteCount = 0

  /// Changes up to here may be unknown.
  private(set) var horizon: Version

  init(horizon: Version) { self.horizon = horizon }

  /// Takes note of a commit's changes.
  mutating func note(_ version: Version, _ keys: [Key]) {
    commits.append((version, keys))
    keyCount += keys.count
    for key in keys { byteCount += key.count }
    while head < commits.count,
      keyCount > RecentWrites.keyLimit || byteCount > RecentWrites.byteLimit
        || commits[head].version.microseconds + RecentWrites.age < version.microseconds
    {
      forgetOldest()
    }
  }

  /// Whether anything of a read set has changed since; nil if it was read too long ago to know.
  mutating func changed(since reads: ReadSet) -> Bool? {
    guard reads.version >= horizon else { return nil }
    putInOrder()
    for key in reads.keys {
      if let version = newest[key], version > reads.version { return true }
    }
    for range in reads.ranges where changed(range, since: reads.version) { return true }
    return false
  }

  private func changed(_ range: KeyRange, since version: Version) -> Bool {
    var cursor = OrderedMapCursor(newest)
    range.start.withUnsafeBytes { cursor.seek($0) }
    while cursor.isValid {
      if let end = range.end, compareKeys(cursor.key, end) >= 0 { return false }
      if cursor.value > version { return true }
      cursor.next()
    }
    return false
  }

  private mutating func putInOrder() {
    ordered = max(ordered, head)
    while ordered < commits.count {
      for key in commits[ordered].keys { newest.updateValue(commits[ordered].version, forKey: key) }
      ordered += 1
    }
  }

  private mutating func forgetOldest() {
    let (version, keys) = commits[head]
    horizon = version
    keyCount -= keys.count
    for key in keys {
      byteCount -= key.count
      if head < ordered, let last = newest[key], last <= version { newest.removeValue(forKey: key) }
    }
    commits[head].keys = []
    head += 1
    if head >= 1024, head * 2 >= commits.count {
      commits.removeFirst(head)
      ordered = max(ordered - head, 0)
      head = 0
    }
  }
}
