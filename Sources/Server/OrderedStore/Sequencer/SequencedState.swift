// The sequenced state is the transaction of one body, the caller's closure that the sequencer runs. The
// body's writes go directly into the sequencer's uncommitted rows, so that the body can read them. If the
// body throws, `changes` serves as a journal to remove them.
//
// Invariants
//   1. `changes` contains each key once.
//   2. The value in an undo row was written by an earlier commit than the commit that adds the undo row.
//   3. The state is used only while its body runs, on the sequencer's thread.

/// The state of a body while it runs.
final class SequencedState: SequencedTransaction {
  /// A row that the body changed.
  struct Change {
    var key: Key
    /// The uncommitted row of an earlier commit that the change hides; nil if there is none.
    var covered: UncommittedRows.Entry?
    /// The new value; nil for a removal.
    var value: StoredValue?
    /// The row that the change replaces. Set by ``finish(keepsHistory:)``.
    var before: VersionedValue?
    /// Whether the body declared that the key has no row.
    var isInsertion: Bool
  }

  let commitVersion: Version
  private let sequencer: CommitSequencer
  private let reader: RowReader
  private(set) var changes: [Change] = []
  private(set) var record: LogRecord?
  /// Whether the body reserves its version even if it changes nothing.
  private(set) var reservesCommitVersion = false
  /// The bytes of the written keys and values, and of the log record.
  private(set) var byteCount = 0
  /// Whether the body wrote a key twice. The values in `changes` may then be outdated, because only the first
  /// write of a key is recorded there.
  private var hasRewritten = false
  private var isFinished = false
  /// The first few durable rows that the body read. A body often replaces the rows that it has read, so that
  /// they need not be read again for history.
  private var cachedRows: [(key: Key, row: VersionedValue?)] = []
  private static let maximumCachedRows = 8

  init(_ sequencer: CommitSequencer, _ reader: RowReader, _ version: Version) {
    self.sequencer = sequencer
    self.reader = reader
    commitVersion = version
  }

  var version: Version { commitVersion }

  func get(_ key: Key) throws -> VersionedValue? {
    precondition(!isFinished, "invariant: a sequenced transaction is used only while its body runs")
    if let entry = sequencer.uncommitted[key] {
      return entry.value.map { VersionedValue(value: $0, writtenAt: entry.version) }
    }
    return try durableRow(key)
  }

  /// The durable row of a key. It is cached, because it becomes an undo row if the body replaces it.
  private func durableRow(_ key: Key) throws -> VersionedValue? {
    if let cached = cachedRows.first(where: { $0.key == key }) { return cached.row }
    let row = try reader.get(key)
    if cachedRows.count < SequencedState.maximumCachedRows { cachedRows.append((key, row)) }
    return row
  }

  /// The durable row of a key, possibly with an empty value. For callers that only need to know whether the
  /// row exists.
  private func durableRowWithoutValue(_ key: Key) throws -> VersionedValue? {
    if let cached = cachedRows.first(where: { $0.key == key }) { return cached.row }
    return try reader.writtenAt(key).map { VersionedValue(value: [], writtenAt: $0) }
  }

  func scan(
    _ range: KeyRange, reverse: Bool,
    _ visit: (UnsafeRawBufferPointer, UnsafeRawBufferPointer, Version) throws -> Bool
  ) throws {
    precondition(!isFinished, "invariant: a sequenced transaction is used only while its body runs")
    var merge = UncommittedMerge(
      reader, try reader.cursor(range), sequencer.uncommitted.orderedRows(), range, reverse: reverse)
    try merge.run(visit)
  }

  func set(_ key: Key, _ value: StoredValue) throws {
    try checkLimits(key, value)
    put(key, value)
  }

  func insert(_ key: Key, _ value: StoredValue) throws {
    assert(isAbsent(key), "invariant: an inserted key has no row")
    try checkLimits(key, value)
    put(key, value, isInsertion: true)
  }

  /// Whether no row can be found under a key.
  private func isAbsent(_ key: Key) -> Bool {
    let row = try? get(key)
    return row == nil
  }

  func clear(_ key: Key) throws {
    try checkLimits(key, nil)
    put(key, nil)
  }

  func clear(_ range: KeyRange) throws {
    var keys: [Key] = []
    var bytes = byteCount
    try scan(range, reverse: false) { key, _, _ in
      bytes += key.count
      guard bytes <= StoreLimits.maximumCommitBytes else { throw SequencedState.commitTooLarge }
      keys.append(Key(key))
      return true
    }
    for key in keys { try clear(key) }
  }

  func log(_ payload: StoredValue, _ attachment: (any Sendable)?) throws {
    precondition(!isFinished, "invariant: a sequenced transaction is used only while its body runs")
    guard record == nil else { throw StoreError.limitExceeded("a commit logs one record") }
    try count(payload.count)
    record = LogRecord(version: commitVersion, payload: payload, attachment: attachment)
  }

  func reserveCommitVersion() { reservesCommitVersion = true }

  private func put(_ key: Key, _ value: StoredValue?, isInsertion: Bool = false) {
    precondition(!isFinished, "invariant: a sequenced transaction is used only while its body runs")
    let covered = sequencer.uncommitted.put(
      UncommittedRows.Entry(version: commitVersion, value: value), key, isInsertion: isInsertion)
    if let covered {
      precondition(covered.version <= commitVersion, "invariant: a commit covers only older rows")
      if covered.version == commitVersion {
        hasRewritten = true
        return
      }
    }
    changes.append(
      Change(key: key, covered: covered, value: value, before: nil, isInsertion: isInsertion))
  }

  private func checkLimits(_ key: Key, _ value: StoredValue?) throws {
    guard key.count <= StoreLimits.maximumKeyBytes else {
      throw StoreError.limitExceeded(
        "a key has \(key.count) bytes; \(StoreLimits.maximumKeyBytes) are allowed")
    }
    let bytes = value?.count ?? 0
    guard bytes <= StoreLimits.maximumValueBytes else {
      throw StoreError.limitExceeded(
        "a value has \(bytes) bytes; \(StoreLimits.maximumValueBytes) are allowed")
    }
    try count(key.count + bytes)
  }

  private func count(_ bytes: Int) throws {
    guard byteCount + bytes <= StoreLimits.maximumCommitBytes else { throw SequencedState.commitTooLarge }
    byteCount += bytes
  }

  private static let commitTooLarge = StoreError.limitExceeded(
    "a commit's keys, values and log record have more than the \(StoreLimits.maximumCommitBytes) bytes allowed"
  )

  private static let replacesTooMuch = StoreError.limitExceeded(
    "a commit replaces or removes rows of more than the \(StoreLimits.maximumReplacedBytes) bytes that may be kept as history at once"
  )

  /// Whether the body has written a row or logged. Removals do not count.
  var hasContent: Bool {
    record != nil || changes.contains { sequencer.uncommitted[$0.key]?.value != nil }
  }

  /// Whether the body changed or logged anything. Known after ``finish(keepsHistory:)``.
  var wrote: Bool { !changes.isEmpty || record != nil }

  /// Reads the rows that the body replaced, and drops removals of keys without a row.
  func finish(keepsHistory: Bool) throws {
    isFinished = true
    var kept = 0
    var replaced = 0
    for index in changes.indices {
      if hasRewritten { changes[index].value = sequencer.uncommitted[changes[index].key]?.value }
      let isRemoval = changes[index].value == nil
      if let covered = changes[index].covered {
        changes[index].before = covered.value.map { VersionedValue(value: $0, writtenAt: covered.version) }
      } else if !changes[index].isInsertion, keepsHistory {
        changes[index].before = try durableRow(changes[index].key)
      } else if !changes[index].isInsertion, isRemoval {
        changes[index].before = try durableRowWithoutValue(changes[index].key)
      }
      if keepsHistory {
        replaced += changes[index].before?.value.count ?? 0
        guard replaced <= StoreLimits.maximumReplacedBytes else { throw SequencedState.replacesTooMuch }
      }
      if isRemoval, changes[index].before == nil {
        let key = changes[index].key
        sequencer.uncommitted.restore(changes[index].covered, key)
        // This removal of a key without a row was just undone. If reading a later row fails, `rollBack` restores this key
        // again, so `covered` must be its current entry.
        changes[index].covered = sequencer.uncommitted[key]
      } else {
        if kept != index { changes.swapAt(kept, index) }
        kept += 1
      }
    }
    changes.removeLast(changes.count - kept)
    assert(Set(changes.map(\.key)).count == changes.count, "invariant: a commit changes each key once")
  }

  /// Removes every write of the body from the uncommitted rows.
  func rollBack() {
    isFinished = true
    for change in changes { sequencer.uncommitted.restore(change.covered, change.key) }
    changes = []
    record = nil
  }

  /// Adds the rows of the commit to a batch: its changes, the replaced rows as undo rows, and its log record.
  func addRows(to batch: any EngineBatch, keepsHistory: Bool) {
    let layout = sequencer.layout
    commitVersion.withBytes { head in
      // Changes are accessed by index, because a copy of each change would retain its key and values.
      for index in changes.indices {
        changes[index].key.withUnsafeBytes { key in
          layout.withRow(key) { physical in
            if changes[index].value?.withUnsafeBytes({ batch.put(physical, head, $0) }) == nil {
              batch.delete(physical)
            }
          }
          if keepsHistory, let before = changes[index].before {
            precondition(
              before.writtenAt < commitVersion, "invariant: an undo row was written before it was replaced")
            layout.withUndo(key, until: commitVersion) { physical in
              before.writtenAt.withBytes { writtenAt in
                before.value.withUnsafeBytes { batch.put(physical, writtenAt, $0) }
              }
            }
          }
        }
      }
    }
    if let record {
      layout.withLog(record.version) { physical in
        record.payload.withUnsafeBytes {
          batch.put(physical, UnsafeRawBufferPointer(start: nil, count: 0), $0)
        }
      }
    }
  }
}
