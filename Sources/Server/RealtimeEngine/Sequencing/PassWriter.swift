// The store's sequenced state as a pass uses it: the rows of the tree under their own keys, wherever they lie, and it
// remembers whether rows were cleared.
//
// Why that matters: after a body has ended the store still reads what its clears replace, and refuses the commit if it
// cannot. The next body is under way before anyone is told, so that it has to find out by itself: a pass that cleared
// rows leaves a mark, and the next one looks whether the mark is there (see `Sequencer`).

import OrderedStore

/// A sequenced state that is watched.
final class PassWriter: SequencedTransaction {
  private let base: any SequencedTransaction
  private let state: GenerationState
  private let journal: SessionJournal
  private var hasCleared = false
  private var priorities = PriorityMarks()
  /// Whether rows were left behind that nobody sees any more.
  private(set) var hasGarbage = false

  init(_ base: any SequencedTransaction, _ state: GenerationState, _ journal: SessionJournal) {
    self.base = base
    self.state = state
    self.journal = journal
  }

  var version: Version { base.version }
  var commitVersion: Version { base.commitVersion }

  private var view: GenerationView { GenerationView(base: base, generations: state.current) }

  func get(_ key: [UInt8]) throws -> VersionedValue? { try base.get(state.current.stored(key)) }

  func scan(
    _ range: KeyRange, reverse: Bool,
    _ visit: (UnsafeRawBufferPointer, UnsafeRawBufferPointer, Version) throws -> Bool
  ) throws {
    try view.scan(range, reverse: reverse, visit)
  }

  func set(_ key: [UInt8], _ value: StoredValue) throws {
    try note(key, value)
    try base.set(state.current.stored(key), value)
  }

  func insert(_ key: [UInt8], _ value: StoredValue) throws {
    try note(key, value)
    try base.insert(state.current.stored(key), value)
  }

  /// Takes note of a row that brings a priority into the tree.
  private func note(_ key: [UInt8], _ value: StoredValue) throws {
    guard key.first == RowKeys.tree, RowKeys.hasPriority(key, value), let parent = RowKeys.parent(key) else {
      return
    }
    try priorities.mark(parent, .children, in: base)
  }

  /// Takes note of an empty tree.
  func beginPriorities() throws { try priorities.begin(in: base) }

  func clear(_ key: [UInt8]) throws {
    hasCleared = true
    try base.clear(state.current.stored(key))
  }

  func clear(_ range: KeyRange) throws {
    hasCleared = true
    guard !state.current.isEmpty, range.start.first == RowKeys.tree else { return try base.clear(range) }
    var rest: KeyRange? = range
    while let current = rest {
      let (run, next) = state.current.run(current)
      try base.clear(run.range)
      rest = next.map { KeyRange(start: $0, end: range.end) }
    }
  }

  func log(_ payload: StoredValue, _ attachment: (any Sendable)?) throws { try base.log(payload, attachment) }

  func reserveCommitVersion() { base.reserveCommitVersion() }

  /// Leaves the mark, if rows were cleared; whether it did.
  func mark() throws -> Bool {
    if hasCleared { try base.set(RowKeys.mark, []) }
    return hasCleared
  }
}

// MARK: Generations

extension PassWriter {
  /// The keys of a location's rows; nil if they are too many to be cleared at once.
  ///
  /// - Parameter empty: hears what lies behind them.
  func rows(at prefix: [UInt8], _ empty: inout EmptyRows?) throws -> [[UInt8]]? {
    var rows: [[UInt8]] = []
    var bytes = 0
    var isWhole = true
    var next: [UInt8]?
    var range = KeyRange(prefix: prefix)
    if let limit = empty?.limit { range.end = limit }
    try scan(range, reverse: false) { key, _, _ in
      guard key.starts(with: prefix) else {
        next = Array(key)
        return false
      }
      bytes += key.count
      isWhole = rows.count < state.limits.clearedRows && bytes <= state.limits.clearedBytes
      if isWhole { rows.append(Array(key)) }
      return isWhole
    }
    if isWhole, let limit = empty?.limit, let behind = KeyRange.successor(ofPrefix: prefix) {
      empty?.learn(
        from: rows.isEmpty ? prefix : behind, to: next ?? limit, endsWithRow: next != nil)
    } else {
      empty?.forget()
    }
    return isWhole ? rows : nil
  }

  /// Removes every row of a location: these at once; of many, where they are not given, only what shows them.
  func clearLocation(_ prefix: [UInt8], _ rows: [[UInt8]]?) throws {
    guard let rows else { return try begin(state.nextNumber(commitVersion), at: prefix) }
    for row in rows { try clear(row) }
  }

  /// Puts a generation that was filled before into the place of a location's rows.
  func place(_ generation: StagedGeneration, at prefix: [UInt8]) throws {
    try clear(RowKeys.garbage(generation.number))
    if generation.hasPriority {
      if let parent = RowKeys.parent(prefix) { try priorities.mark(parent, .children, in: base) }
      try priorities.mark(prefix[...], .everything, in: base)
    }
    try begin(generation.number, at: prefix)
  }

  /// Has a location's rows be those of a generation from now on; leaves those it had to be cleared.
  private func begin(_ number: UInt64, at prefix: [UInt8]) throws {
    let replaced = Array(state.current.within(prefix))
    for old in replaced {
      try discard(KeyRange(prefix: old.stored), old.number)
      if old.prefix != prefix { try clear(RowKeys.generation(of: old.prefix)) }
    }
    // A location that was begun anew before has nothing left under its own keys, or it is garbage already.
    if replaced.first?.prefix != prefix { try discard(KeyRange(prefix: state.current.stored(prefix))) }
    try base.set(RowKeys.generation(of: prefix), RowKeys.bigEndian(number))
    try base.set(RowKeys.generationStamp, RowKeys.bigEndian(number))
    state.change(journal) { $0.begin(SubtreeGeneration(prefix: prefix, number: number)) }
  }

  /// Leaves rows to be cleared, if there are any.
  ///
  /// - Parameter number: that of the generation that they are; nil for others.
  private func discard(_ range: KeyRange, _ number: UInt64? = nil) throws {
    var isEmpty = true
    try base.scan(range, reverse: false) { _, _, _ in
      isEmpty = false
      return false
    }
    guard !isEmpty else { return }
    hasGarbage = true
    let number = try number ?? state.nextNumber(commitVersion)
    try base.set(RowKeys.garbage(number), GenerationRows.encode(range))
  }

  /// Forgets generations that hold no rows, at most so many; to be called while nothing waits to be cleared. Whether
  /// there may be more.
  func forgetEmptyGenerations(atMost most: Int = 256) throws -> Bool {
    var isIdle = true
    try base.scan(RowKeys.garbage, reverse: false) { _, _, _ in
      isIdle = false
      return false
    }
    guard isIdle else { return false }
    var forgotten = 0
    for generation in state.current.all where forgotten < most {
      var isEmpty = true
      try scan(KeyRange(prefix: generation.prefix), reverse: false) { _, _, _ in
        isEmpty = false
        return false
      }
      guard isEmpty else { continue }
      forgotten += 1
      try clear(RowKeys.generation(of: generation.prefix))
      state.change(journal) { $0.remove(generation.prefix) }
    }
    if forgotten > 0 {
      try base.set(RowKeys.generationStamp, RowKeys.bigEndian(try state.nextNumber(commitVersion)))
    }
    return forgotten == most
  }
}
