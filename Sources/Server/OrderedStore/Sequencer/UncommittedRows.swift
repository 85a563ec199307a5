// The uncommitted rows of one database: the rows of commits that are sequenced but not yet in the published
// snapshot, and the writes of the running body. Bodies read these rows before the rows of the snapshot.
//
// The rows are divided into segments. Each segment holds the rows of successive commits. A segment is dropped when all its
// commits are published, so the rows of some published commits stay for some time. They equal the rows of the snapshot.
//
// Segments find rows by key. The rows are ordered when a body scans them. They stay ordered until segments are dropped
// and no body has scanned the rows since the previous drop. A bulk load therefore never orders them.
//
// Invariants
//   1. The durable snapshot overlaid with these entries equals all sequenced commits plus the running body's writes.
//   2. Commits are added with rising versions and removed in the same order. Only the newest segment changes.
//   3. If `ordered` exists, it contains the newest entry of each key of the segments. Entries of published commits may
//      be missing.
//
// Decision: docs/decisions/0043-bulk-loads-and-the-store.md

/// The rows that hide durable rows until their commits are published.
struct UncommittedRows {
  /// An uncommitted row: a value, or nil if the row was removed.
  struct Entry {
    var version: Version
    var value: StoredValue?
  }

  /// The rows of successive commits.
  private struct Segment {
    /// The entries; nil for a key whose entry was rolled back.
    var table = RowTable<Entry?>()
    /// The version of its newest commit.
    var newest = Version.zero
    /// The bytes of its commits' keys and values.
    var bytes = 0
  }

  /// The minimum rows or bytes of a segment before a new one begins. If the earlier segments hold more than twice as many,
  /// the limit is half of theirs, so that there are few segments.
  private static let segmentLimit = (rows: 1024, bytes: 1 << 20)

  /// The segments, oldest first. Only the last one may contain rows of the running body.
  private var segments: [Segment] = []
  /// The rows of all segments in the order of their keys; nil if no body has scanned them for some time.
  private var ordered: OrderedMap<Entry>?
  /// Whether a body has scanned the rows since the last segment was dropped.
  private var isScanned = false
  /// The version of the newest commit.
  private var newest = Version.zero

  /// The uncommitted row of a key, if any.
  subscript(_ key: Key) -> Entry? {
    segments.isEmpty ? nil : entry(of: key, hash: RowTable<Entry?>.hash(of: key))
  }

  private func entry(of key: Key, hash: UInt64) -> Entry? {
    for index in segments.indices.reversed() {
      if case .some(.some(let entry)) = segments[index].table.value(of: key, hash: hash) { return entry }
    }
    return nil
  }

  /// Returns the rows in the order of their keys, for a scan.
  mutating func orderedRows() -> OrderedMap<Entry> {
    isScanned = true
    if let ordered { return ordered }
    var map = OrderedMap<Entry>()
    for segment in segments {
      for (key, entry) in segment.table.rows { if let entry { map.updateValue(entry, forKey: key) } }
    }
    ordered = map
    return map
  }

  /// Sets the uncommitted row of a key.
  /// - Parameter isInsertion: whether the key has no row.
  /// - Returns: the earlier uncommitted row of the key, which the new one hides. For an insertion, only a row of the
  ///   running body is certain to be returned. An earlier commit can only have removed the key, and such a removal is
  ///   not searched.
  mutating func put(_ entry: Entry, _ key: Key, isInsertion: Bool) -> Entry? {
    let hash = RowTable<Entry?>.hash(of: key)
    if segments.isEmpty { segments.append(Segment()) }
    let last = segments.count - 1
    let hidden =
      isInsertion
      ? segments[last].table.value(of: key, hash: hash) ?? nil : self.entry(of: key, hash: hash)
    segments[last].table.set(entry, key, hash: hash)
    ordered?.updateValue(entry, forKey: key)
    return hidden
  }

  /// Undoes ``put(_:_:isInsertion:)``: restores the uncommitted row that `put` returned.
  mutating func restore(_ entry: Entry?, _ key: Key) {
    precondition(!segments.isEmpty, "invariant: a row is restored after it was put")
    let hash = RowTable<Entry?>.hash(of: key)
    segments[segments.count - 1].table.set(entry, key, hash: hash)
    guard ordered != nil else { return }
    if let visible = self.entry(of: key, hash: hash) {
      ordered?.updateValue(visible, forKey: key)
    } else {
      ordered?.removeValue(forKey: key)
    }
  }

  /// Records that all rows put since the last call belong to one commit. ``removePublished(upTo:)`` can then remove them.
  /// - Parameter bytes: the bytes of its keys and values.
  mutating func recordCommit(bytes: Int, at version: Version) {
    precondition(version > newest, "invariant: commits are sequenced with rising versions")
    newest = version
    guard let last = segments.indices.last else { return }
    segments[last].newest = version
    segments[last].bytes += bytes
    let limit = UncommittedRows.segmentLimit
    let earlier = segments.dropLast().reduce((rows: 0, bytes: 0)) { sum, segment in
      (sum.rows + segment.table.rows.count, sum.bytes + segment.bytes)
    }
    guard
      segments[last].table.rows.count >= max(limit.rows, earlier.rows / 2)
        || segments[last].bytes >= max(limit.bytes, earlier.bytes / 2)
    else { return }
    segments.append(Segment())
  }

  /// Records that the published snapshot contains the commits up to `version`. Removes all rows if no commit is in
  /// flight, otherwise the segments whose commits are all published.
  mutating func removePublished(upTo version: Version) {
    guard !segments.isEmpty else { return }
    if newest <= version {
      segments.removeAll(keepingCapacity: true)
      ordered = nil
      isScanned = false
      return
    }
    let published = segments.dropLast().prefix { $0.newest <= version }.count
    guard published > 0 else { return }
    segments.removeFirst(published)
    if isScanned { ordered = ordered?.filtered { $0.version > version } } else { ordered = nil }
    isScanned = false
  }
}
