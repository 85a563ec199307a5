// The uncommitted rows of one database: the rows of commits that are sequenced but not yet in the published
// snapshot, and the writes of the running body. Bodies read these rows before those of the snapshot.
//
// The rows of published commits stay for some time, because removing many together costs a fraction of removing each.
// They equal the rows of the snapshot.
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

  /// The number and the bytes of published rows up to which they stay.
  private static let maximumPublished = (rows: 4096, bytes: 4 << 20)

  private(set) var entries = OrderedMap<Entry>()
  /// Commits in flight, oldest first, from `head`.
  private var commits: [(version: Version, rows: Int, bytes: Int)] = []
  private var head = 0
  /// The rows of published commits in `entries`; more if later commits have replaced some.
  private var published = (rows: 0, bytes: 0)

  /// The uncommitted row of a key, if any.
  subscript(_ key: Key) -> Entry? { entries.isEmpty ? nil : entries[key] }

  /// Sets the uncommitted row of a key.
  /// - Returns: the earlier uncommitted row of the key, which the new one hides.
  mutating func put(_ entry: Entry, _ key: Key) -> Entry? { entries.updateValue(entry, forKey: key) }

  /// Undoes ``put(_:_:)``: restores the uncommitted row that `put` returned.
  mutating func restore(_ entry: Entry?, _ key: Key) {
    if let entry { entries.updateValue(entry, forKey: key) } else { entries.removeValue(forKey: key) }
  }

  /// Records a commit, so that ``removePublished(upTo:)`` can remove its rows.
  /// - Parameter bytes: the bytes of its keys and values.
  mutating func add(rows: Int, bytes: Int, at version: Version) {
    if let newest = commits.last {
      precondition(version > newest.version, "invariant: commits are sequenced with rising versions")
    }
    commits.append((version, rows, bytes))
  }

  /// Records that the published snapshot contains the commits up to `version`. Removes their rows if none is in flight, or
  /// if they are many.
  mutating func removePublished(upTo version: Version) {
    while head < commits.count, commits[head].version <= version {
      published.rows += commits[head].rows
      published.bytes += commits[head].bytes
      head += 1
    }
    if head == commits.count {
      commits.removeAll(keepingCapacity: true)
      head = 0
      if !entries.isEmpty { entries = OrderedMap() }
      published = (0, 0)
      return
    }
    if head >= 256, head * 2 >= commits.count {
      commits.removeFirst(head)
      head = 0
    }
    let maximum = UncommittedRows.maximumPublished
    if published.rows > max(maximum.rows, entries.count / 2) || published.bytes > maximum.bytes {
      entries = entries.filtered { $0.version > version }
      published = (0, 0)
    }
  }
}
