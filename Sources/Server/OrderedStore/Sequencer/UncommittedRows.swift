// The uncommitted rows of one database: rows that are sequenced but not yet in the snapshot that bodies read from, and
// the writes of the running body.
//
// Invariants
//   1. The durable snapshot overlaid with these entries equals all sequenced commits plus the running body's writes.
//   2. Commits are added with rising versions and removed in the same order.

/// Rows of commits in flight, over the durable rows.
struct UncommittedRows {
  /// An uncommitted row: a value, or nil where the row was removed.
  struct Entry {
    var version: Version
    var value: StoredValue?
  }

  private(set) var entries = OrderedMap<Entry>()
  /// Commits in flight, oldest first, from `head`.
  private var commits: [(version: Version, keys: [Key])] = []
  private var head = 0

  /// The uncommitted row of a key, if any.
  subscript(_ key: Key) -> Entry? { entries.isEmpty ? nil : entries[key] }

  /// Puts a row over the others.
  /// - Returns: the uncommitted row that it covers.
  mutating func put(_ entry: Entry, _ key: Key) -> Entry? { entries.updateValue(entry, forKey: key) }

  /// Restores the row that a removed row covered.
  mutating func restore(_ entry: Entry?, _ key: Key) {
    if let entry { entries.updateValue(entry, forKey: key) } else { entries.removeValue(forKey: key) }
  }

  /// Remembers the keys of a commit until it is published.
  mutating func add(_ keys: [Key], at version: Version) {
    if let newest = commits.last {
      precondition(version > newest.version, "invariant: commits are sequenced with rising versions")
    }
    commits.append((version, keys))
  }

  /// Removes the rows that a durable state up to `version` contains.
  mutating func removePublished(upTo version: Version) {
    while head < commits.count, commits[head].version <= version {
      for key in commits[head].keys { entries.removeValue(forKey: key) { $0.version <= version } }
      commits[head].keys = []
      head += 1
    }
    if head == commits.count {
      commits.removeAll(keepingCapacity: true)
      head = 0
      precondition(entries.isEmpty, "invariant: every uncommitted row belongs to a commit in flight")
    } else if head >= 256, head * 2 >= commits.count {
      commits.removeFirst(head)
      head = 0
    }
  }
}
