// The uncommitted rows of one database: the rows of commits that are sequenced but not yet in the published
// snapshot, and the writes of the running body. Bodies read these rows before those of the snapshot.
//
// Invariants
//   1. The durable snapshot overlaid with these entries equals all sequenced commits plus the running body's writes.
//   2. Commits are added with rising versions and removed in the same order.

/// The rows that hide durable rows until their commits are published.
struct UncommittedRows {
  /// An uncommitted row: a value, or nil if the row was removed.
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

  /// Sets the uncommitted row of a key.
  /// - Returns: the earlier uncommitted row of the key, which the new one hides.
  mutating func put(_ entry: Entry, _ key: Key) -> Entry? { entries.updateValue(entry, forKey: key) }

  /// Undoes ``put(_:_:)``: restores the uncommitted row that `put` returned.
  mutating func restore(_ entry: Entry?, _ key: Key) {
    if let entry { entries.updateValue(entry, forKey: key) } else { entries.removeValue(forKey: key) }
  }

  /// Records the keys of a commit, so that ``removePublished(upTo:)`` can remove its rows.
  mutating func add(_ keys: [Key], at version: Version) {
    if let newest = commits.last {
      precondition(version > newest.version, "invariant: commits are sequenced with rising versions")
    }
    commits.append((version, keys))
  }

  /// Removes the rows of commits up to `version`, because the published snapshot contains them now.
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
