// What one sequenced body sees and changes. Its writes go straight into the overlay, so that it reads them back; a
// journal takes them out again if the body throws.

/// The state handed to a body. Lives for one call, on the sequencer's thread.
final class SequencedState: SequencedTransaction {
  /// A row the body changed: what the overlay held before, and at the end the row it replaces.
  struct Change {
    var key: Key
    var covered: Overlay.Entry?
    var value: StoredValue?
    var before: VersionedValue?
    /// Whether the body said that the key held no row.
    var isInsertion: Bool
  }

  let commitVersion: Version
  private let sequencer: Sequencer
  private let reader: RowReader
  private(set) var changes: [Change] = []
  private(set) var record: LogRecord?
  /// Whether the body wants its version even if it changes nothing.
  private(set) var keepsVersion = false
  private var byteCount = 0
  /// Whether the body wrote a key twice, so that the values noted with the changes may not be the last.
  private var hasRewritten = false
  private var known: [(key: Key, row: VersionedValue?)] = []

  init(_ sequencer: Sequencer, _ reader: RowReader, _ version: Version) {
    self.sequencer = sequencer
    self.reader = reader
    commitVersion = version
  }

  var version: Version { commitVersion }

  func get(_ key: Key) throws -> VersionedValue? {
    if let entry = sequencer.overlay[key] {
      return entry.value.map { VersionedValue(value: $0, writtenAt: entry.version) }
    }
    return try durable(key)
  }

  /// The durable row of a key, remembered for the undo row it may need.
  private func durable(_ key: Key) throws -> VersionedValue? {
    if let known = known.first(where: { $0.key == key }) { return known.row }
    let row = try reader.get(key)
    if known.count < 8 { known.append((key, row)) }
    return row
  }

  /// The durable row of a key where only counts whether there is one.
  private func durableWithoutValue(_ key: Key) throws -> VersionedValue? {
    if let known = known.first(where: { $0.key == key }) { return known.row }
    return try reader.writtenAt(key).map { VersionedValue(value: [], writtenAt: $0) }
  }

  func scan(
    _ range: KeyRange, reverse: Bool,
    _ visit: (UnsafeRawBufferPointer, UnsafeRawBufferPointer, Version) throws -> Bool
  ) throws {
    var merge = OverlayMerge(try reader.cursor(range), sequencer.overlay, range, reverse: reverse)
    try merge.run(visit)
  }

  func set(_ key: Key, _ value: StoredValue) throws {
    try admit(key, value)
    put(key, value)
  }

  func insert(_ key: Key, _ value: StoredValue) throws {
    assert(isAbsent(key), "a row that was there was written as a new one")
    try admit(key, value)
    put(key, value, isInsertion: true)
  }

  /// Whether no row can be found under a key.
  private func isAbsent(_ key: Key) -> Bool {
    let row = try? get(key)
    return row == nil
  }

  func clear(_ key: Key) throws {
    try admit(key, nil)
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
    guard record == nil else { throw StoreError.limitExceeded("a commit logs one record") }
    try count(payload.count)
    record = LogRecord(version: commitVersion, payload: payload, attachment: attachment)
  }

  func reserveCommitVersion() { keepsVersion = true }

  private func put(_ key: Key, _ value: StoredValue?, isInsertion: Bool = false) {
    let covered = sequencer.overlay.put(Overlay.Entry(version: commitVersion, value: value), key)
    guard covered?.version != commitVersion else {
      hasRewritten = true
      return
    }
    changes.append(
      Change(key: key, covered: covered, value: value, before: nil, isInsertion: isInsertion))
  }

  private func admit(_ key: Key, _ value: StoredValue?) throws {
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

  /// Whether the body changed or logged anything. Known after ``finish(keepsHistory:)``.
  var wrote: Bool { !changes.isEmpty || record != nil }

  /// Finds the rows that the body replaced, and drops writes that change nothing (clearing what is not there).
  func finish(keepsHistory: Bool) throws {
    var kept = 0
    var replaced = 0
    for index in changes.indices {
      if hasRewritten { changes[index].value = sequencer.overlay[changes[index].key]?.value }
      let isClearing = changes[index].value == nil
      if let covered = changes[index].covered {
        changes[index].before = covered.value.map { VersionedValue(value: $0, writtenAt: covered.version) }
      } else if !changes[index].isInsertion, keepsHistory {
        changes[index].before = try durable(changes[index].key)
      } else if !changes[index].isInsertion, isClearing {
        changes[index].before = try durableWithoutValue(changes[index].key)
      }
      if keepsHistory {
        replaced += changes[index].before?.value.count ?? 0
        guard replaced <= StoreLimits.maximumReplacedBytes else { throw SequencedState.replacesTooMuch }
      }
      if isClearing, changes[index].before == nil {
        let key = changes[index].key
        sequencer.overlay.restore(changes[index].covered, key)
        // Nothing to take back any more should a later row fail to be read.
        changes[index].covered = sequencer.overlay[key]
      } else {
        if kept != index { changes.swapAt(kept, index) }
        kept += 1
      }
    }
    changes.removeLast(changes.count - kept)
  }

  /// Takes back every write of the body.
  func rollBack() {
    for change in changes { sequencer.overlay.restore(change.covered, change.key) }
    changes = []
    record = nil
  }
}
