// Writes the rows of a batch. It translates keys of the tree to the physical keys of generations (subtrees whose rows
// are stored under a separate prefix, see `SubtreeGenerations`), and marks batches that cleared rows.
//
// After a batch has executed, the store reads the rows that the batch cleared, and rejects the commit if that
// read fails. The next batch may execute before the rejection is known. A batch that cleared rows therefore also
// writes a mark row, which gets the version of the batch. The next batch checks this version, and rolls the earlier
// batch back if the mark is missing (see `OperationExecutor`).

import OrderedStore

/// The writer of one batch, over the store's sequenced transaction.
final class BatchWriter: SequencedTransaction {
  private let base: any SequencedTransaction
  private let state: GenerationState
  private let journal: SessionJournal
  private var hasCleared = false
  private var priorities = PriorityMarks()
  /// Whether the batch left rows for the cleaner to remove.
  private(set) var hasGarbage = false

  init(_ base: any SequencedTransaction, _ state: GenerationState, _ journal: SessionJournal) {
    self.base = base
    self.state = state
    self.journal = journal
  }

  var version: Version { base.version }
  var commitVersion: Version { base.commitVersion }

  private var view: GenerationView { GenerationView(base: base, generations: state.current) }

  func get(_ key: [UInt8]) throws -> VersionedValue? { try base.get(state.current.physicalKey(key)) }

  func scan(
    _ range: KeyRange, reverse: Bool,
    _ visit: (UnsafeRawBufferPointer, UnsafeRawBufferPointer, Version) throws -> Bool
  ) throws {
    try view.scan(range, reverse: reverse, visit)
  }

  func set(_ key: [UInt8], _ value: StoredValue) throws {
    try recordPriority(key, value)
    try base.set(state.current.physicalKey(key), value)
  }

  func insert(_ key: [UInt8], _ value: StoredValue) throws {
    try recordPriority(key, value)
    try base.insert(state.current.physicalKey(key), value)
  }

  /// Records the use of priorities if a written row contains one (see `PriorityUse`).
  private func recordPriority(_ key: [UInt8], _ value: StoredValue) throws {
    guard key.first == RowKeys.tree, RowKeys.hasPriority(key, value), let parent = RowKeys.parent(key) else {
      return
    }
    try priorities.mark(parent, .children, in: base)
  }

  /// Records that no location has a priority, because the tree is empty.
  func recordNoPriorities() throws { try priorities.recordNone(in: base) }

  func clear(_ key: [UInt8]) throws {
    hasCleared = true
    try base.clear(state.current.physicalKey(key))
  }

  func clear(_ range: KeyRange) throws {
    hasCleared = true
    guard !state.current.isEmpty, range.start.first == RowKeys.tree else { return try base.clear(range) }
    var rest: KeyRange? = range
    while let current = rest {
      let (run, next) = state.current.contiguousRange(current)
      try base.clear(run.range)
      rest = next.map { KeyRange(start: $0, end: range.end) }
    }
  }

  func log(_ payload: StoredValue, _ attachment: (any Sendable)?) throws { try base.log(payload, attachment) }

  func reserveCommitVersion() { base.reserveCommitVersion() }

  /// Writes the mark if rows were cleared; returns whether it did.
  func mark() throws -> Bool {
    if hasCleared { try base.set(RowKeys.mark, []) }
    return hasCleared
  }
}

// MARK: Generations

extension BatchWriter {
  /// The keys of a location's rows; nil if they are too many for one commit to clear.
  ///
  /// - Parameter gap: records the range without rows that the scan finds around or after the location.
  func rows(at prefix: [UInt8], _ gap: inout RowGap?) throws -> [[UInt8]]? {
    var rows: [[UInt8]] = []
    var bytes = 0
    var isComplete = true
    var next: [UInt8]?
    var range = KeyRange(prefix: prefix)
    if let limit = gap?.limit { range.end = limit }
    try scan(range, reverse: false) { key, _, _ in
      guard key.starts(with: prefix) else {
        next = Array(key)
        return false
      }
      bytes += key.count
      isComplete = rows.count < state.limits.clearedRows && bytes <= state.limits.clearedBytes
      if isComplete { rows.append(Array(key)) }
      return isComplete
    }
    if isComplete, let limit = gap?.limit, let after = KeyRange.successor(ofPrefix: prefix) {
      gap?.record(
        from: rows.isEmpty ? prefix : after, to: next ?? limit, endsWithRow: next != nil)
    } else {
      gap?.forget()
    }
    return isComplete ? rows : nil
  }

  /// Removes every row of a location.
  ///
  /// - Parameter rows: its rows; nil if they are too many. The location then gets an empty generation, and
  ///   the cleaner removes the rows.
  func clearLocation(_ prefix: [UInt8], _ rows: [[UInt8]]?) throws {
    guard let rows else { return try startGeneration(state.nextNumber(commitVersion), at: prefix) }
    for row in rows { try clear(row) }
  }

  /// Replaces a location's rows by the rows of a staged generation.
  func install(_ generation: StagedGeneration, at prefix: [UInt8]) throws {
    try clear(RowKeys.pendingDelete(generation.number))
    if generation.hasPriority {
      if let parent = RowKeys.parent(prefix) { try priorities.mark(parent, .children, in: base) }
      try priorities.mark(prefix[...], .everything, in: base)
    }
    try startGeneration(generation.number, at: prefix)
  }

  /// Maps a location to a generation, and adds pending deletes for its earlier rows.
  private func startGeneration(_ number: UInt64, at prefix: [UInt8]) throws {
    let replaced = Array(state.current.within(prefix))
    for old in replaced {
      try addPendingDelete(KeyRange(prefix: old.physicalPrefix), old.number)
      if old.prefix != prefix { try clear(RowKeys.generation(of: old.prefix)) }
    }
    // If the location had a generation, the rows under its tree keys already have a pending delete.
    if replaced.first?.prefix != prefix {
      try addPendingDelete(KeyRange(prefix: state.current.physicalKey(prefix)))
    }
    try base.set(RowKeys.generation(of: prefix), RowKeys.bigEndian(number))
    try base.set(RowKeys.generationStamp, RowKeys.bigEndian(number))
    state.change(journal) { $0.install(SubtreeGeneration(prefix: prefix, number: number)) }
  }

  /// Adds a pending delete for the rows of a range, if there are any. The cleaner clears them later.
  ///
  /// - Parameter number: the number of the generation of these rows; nil for rows outside generations.
  private func addPendingDelete(_ range: KeyRange, _ number: UInt64? = nil) throws {
    var isEmpty = true
    try base.scan(range, reverse: false) { _, _, _ in
      isEmpty = false
      return false
    }
    guard !isEmpty else { return }
    hasGarbage = true
    let number = try number ?? state.nextNumber(commitVersion)
    try base.set(RowKeys.pendingDelete(number), GenerationRows.encode(range))
  }

  /// Removes the entries of generations without rows. Does nothing while pending deletes exist.
  ///
  /// - Returns: whether more such entries may exist.
  func removeEmptyGenerations(atMost maximum: Int = 256) throws -> Bool {
    var isIdle = true
    try base.scan(RowKeys.pendingDeletes, reverse: false) { _, _, _ in
      isIdle = false
      return false
    }
    guard isIdle else { return false }
    var removedCount = 0
    for generation in state.current.all where removedCount < maximum {
      var isEmpty = true
      try scan(KeyRange(prefix: generation.prefix), reverse: false) { _, _, _ in
        isEmpty = false
        return false
      }
      guard isEmpty else { continue }
      removedCount += 1
      try clear(RowKeys.generation(of: generation.prefix))
      state.change(journal) { $0.remove(generation.prefix) }
    }
    if removedCount > 0 {
      try base.set(RowKeys.generationStamp, RowKeys.bigEndian(try state.nextNumber(commitVersion)))
    }
    return removedCount == maximum
  }
}
