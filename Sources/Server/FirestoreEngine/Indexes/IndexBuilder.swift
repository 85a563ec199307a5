// Brings a database's indexes to what was chosen, in the background: step by step, each a commit of its own, so that
// writes go on between them and a killed process goes on where it was.
//
// Invariants
//   1. A step and the state that says it was done are one commit, in the sequencer; whatever is written before or
//      after it, the entries are those that `IndexState` promises.
//   2. Every step is bounded in documents, in their bytes and in the bytes that it writes, so that none is refused as
//      too large a commit; and it gets further than where it began.

import FirestoreModel
import Locking
import OrderedStore

/// The keeper of one database's index state.
final class IndexBuilder: Sendable {
  private struct State {
    var set = IndexSet.automatic
    var vectors: [IndexConfiguration.Index] = []
    var task: Task<Void, Never>?
    var isStopped = false
    /// Whether transactions of this process may hold locks from before the state was loaded.
    var hasWaited = false
    /// Whether it was told that the store cannot write, since it last could.
    var hasToldOfStore = false
  }

  /// What follows a step.
  private enum Next: Sendable { case step, wait(UInt64), nothing }

  /// How long it waits for a store that cannot write, in microseconds.
  private static let pause: UInt64 = 1_000_000

  private let name: DatabaseName
  private let rows: any OrderedDatabase
  private let options: FirestoreEngine.Options
  private let state = Guarded(State())

  init(_ name: DatabaseName, _ rows: any OrderedDatabase, _ options: FirestoreEngine.Options) {
    self.name = name
    self.rows = rows
    self.options = options
  }

  deinit { state.withLock { $0.task }?.cancel() }

  /// The indexes as of the last sequenced change.
  var current: IndexSet { state.withLock { $0.set } }

  /// Reads the stored state, before anyone else uses the database, and goes on with what was under way.
  func load() async throws {
    let stored = try await rows.read(at: nil) { view in try IndexBuilder.stored(view) }
    state.withLock { state in
      state.set = IndexSet(stored)
      // No transaction outlives its process.
      state.hasWaited = stored.phase == .retiring
    }
    if stored.phase != .settled { start() }
  }

  /// Chooses which indexes there should be.
  func choose(_ configuration: IndexConfiguration) async throws {
    let vectors = configuration.indexes.filter { index in
      index.fields.contains { if case .vector = $0.mode { true } else { false } }
    }
    state.withLock { state in
      state.vectors = vectors
      state.set = IndexSet(state.set.state, vectors: vectors)
    }
    let change = try await rows.execute(validating: nil) { view -> IndexState? in
      let before = try IndexBuilder.stored(view)
      let isEmpty = try view.firstKey(in: KeyRange(prefix: [KeyLayout.documents])) == nil
      guard let next = before.choosing(configuration, isEmpty: isEmpty, at: view.commitVersion) else {
        return nil
      }
      try self.put(next, in: view)
      return next
    }
    guard let next = change.result else { return }
    state.withLock { $0.hasWaited = false }
    report(
      "the indexes change: \(next.target.composites.count) composite, \(next.target.overrides.count) overrides"
    )
    if next.phase != .settled { start() }
  }

  /// Ends the work in the background; what was done stays done.
  func stop() async {
    let task = state.withLock { state in
      state.isStopped = true
      return state.task
    }
    task?.cancel()
    await task?.value
  }

  private static func stored(_ view: any ReadView) throws -> IndexState {
    try view.get(KeyLayout.indexing).map { try IndexState.decode($0.value) } ?? IndexState()
  }

  /// The last thing that a sequenced body does: what is sequenced later sees the new state.
  private func put(_ next: IndexState, in view: any SequencedTransaction) throws {
    try view.set(KeyLayout.indexing, try next.encoded())
    state.withLock { $0.set = IndexSet(next, vectors: $0.vectors) }
  }

  private func report(_ text: String) { options.report("\(name): \(text)") }

  // MARK: Working

  private func start() {
    state.withLock { state in
      guard !state.isStopped else { return }
      let before = state.task
      let clock = options.clock
      state.task = Task { [weak self] in
        before?.cancel()
        await before?.value
        // Nobody is kept for the sake of waiting.
        while let time = await self?.work() { try? await clock.sleep(until: time) }
      }
    }
  }

  /// Takes steps; returns the time at which to go on, nil if there is nothing left to do.
  private func work() async -> UInt64? {
    while !Task.isCancelled {
      do {
        let next = try await step()
        state.withLock { $0.hasToldOfStore = false }
        switch next {
        case .step: await Task.yield()
        case .wait(let time): return time
        case .nothing: return nil
        }
      } catch is CancellationError { return nil } catch let error as StoreError
        where error.code == .unavailable
      {
        // Too many calls wait for the database, which passes; one that is closed, or has failed, answers at once.
        let isFirst = state.withLock { state in
          defer { state.hasToldOfStore = true }
          return !state.hasToldOfStore
        }
        if isFirst { report("the indexes have to wait, and are tried again every second: \(error.message)") }
        return options.clock.now() + IndexBuilder.pause
      } catch {
        // What the store holds is damaged: the next start tries again.
        report("the indexes cannot be brought up to date: \(FirestoreError(error).message)")
        return nil
      }
    }
    return nil
  }

  private func step() async throws -> Next {
    let now = options.clock.now()
    let hasWaited = state.withLock { $0.hasWaited }
    return try await rows.execute(validating: nil) { view in
      let stored = try IndexBuilder.stored(view)
      switch stored.phase {
      case .settled: return .nothing
      case .building:
        try self.put(try self.build(stored, now: now, in: view), in: view)
      case .retiring:
        let end = stored.retiringSince + self.options.limits.transactionTotal
        // A clock that began anew is that of another process.
        if !hasWaited, now < end, now >= stored.retiringSince { return .wait(end) }
        try self.put(stored.retired(), in: view)
      case .clearing:
        let next = try self.clear(stored, in: view)
        try self.put(next, in: view)
        if next.phase == .settled { self.report("the indexes are settled") }
      }
      return .step
    }.result
  }

  /// Adds missing entries of some documents.
  private func build(_ stored: IndexState, now: UInt64, in view: any SequencedTransaction) throws
    -> IndexState
  {
    let set = IndexSet(stored)
    guard let batch = try nextDocuments(set, in: view) else {
      report("the indexes are built: \(stored.progress.documents) documents")
      return stored.built(at: view.commitVersion, now: now)
    }
    var next = stored
    let base = IndexSet.baseRules(stored, batch.group)
    let wanted = set.wanted(in: batch.group).rules ?? .automatic
    let hasRules = wanted.intersection(base) != wanted
    var unbuilt = IndexSet.unbuilt(stored, batch.group)
    var step = Step(view)
    for document in batch.documents {
      if let fields = document.fields {
        if hasRules {
          let keys = try IndexEntries.keys(of: fields, at: document.path, rules: wanted, limits: nil)
          for key in keys { try step.insert(key, []) }
        }
        var bytes = 0
        for index in unbuilt {
          do {
            let entries = try index.entries(of: fields, at: document.path) { _, more throws(FirestoreError) in
              guard bytes + more <= EngineLimits.builtDocumentBytes else { throw IndexBuilder.tooManyBytes }
              bytes += more
            }
            for (key, value) in entries { try step.insert(key, value) }
          } catch let error as FirestoreError {
            unbuilt.removeAll { $0 == index }
            next = next.failing(index.number, because: "\(document.path): \(error.message)")
            report(
              "the index of \(index.index.description) cannot be built: \(document.path): \(error.message)")
          }
        }
      }
      // What is still missing of this document is added by the next step, which finds what is there.
      if step.isCut { break }
      next.progress.pass(document.row, in: batch.group)
      if step.isFull { break }
    }
    if next.progress.documents / 10_000 > stored.progress.documents / 10_000 {
      report("building indexes: \(next.progress.documents) documents so far, now in '\(batch.group)'")
    }
    return next
  }

  private static let tooManyBytes = FirestoreError.invalidArgument(
    "The document's entries in the indexes that are being built have more than "
      + "\(EngineLimits.builtDocumentBytes) bytes.")

  /// Removes entries that are not wanted any more.
  private func clear(_ stored: IndexState, in view: any SequencedTransaction) throws -> IndexState {
    var next = stored
    if let number = stored.dead.last {
      var keys: [Key] = []
      var bytes = 0
      try view.scan(KeyRange(prefix: KeyLayout.composite(number)), reverse: false) { key, _, _ in
        keys.append(Array(key))
        bytes += key.count
        return keys.count < EngineLimits.indexingStep * 8 && bytes < EngineLimits.indexingStepEntryBytes
      }
      for key in keys { try view.clear(key) }
      if keys.isEmpty { next.dead.removeLast() }
      return next
    }
    let set = IndexSet(stored)
    guard let batch = try nextDocuments(set, in: view) else { return stored.settled() }
    let possible = set.possible(in: batch.group).rules
    let wanted = set.wanted(in: batch.group).rules
    var step = Step(view)
    for document in batch.documents {
      if let fields = document.fields {
        let all = try IndexEntries.keys(of: fields, at: document.path, rules: possible, limits: nil)
        let kept = try IndexEntries.keys(of: fields, at: document.path, rules: wanted, limits: nil)
        for key in IndexEntries.difference(from: all, to: kept).removed { try step.clear(key) }
      }
      if step.isCut { break }
      next.progress.pass(document.row, in: batch.group)
      if step.isFull { break }
    }
    return next
  }

  /// What one step writes, bounded in bytes: a commit that is too large would be refused again and again. Entries that
  /// are as they should be cost nothing, so that a step which is done again goes further.
  private struct Step {
    private let view: any SequencedTransaction
    private var bytes = 0
    /// Whether something was left out.
    private(set) var isCut = false
    /// Whether nothing more should be begun.
    var isFull: Bool { bytes >= EngineLimits.indexingStepEntryBytes }

    init(_ view: any SequencedTransaction) { self.view = view }

    mutating func insert(_ key: Key, _ value: StoredValue) throws {
      guard !isCut, try view.get(key) == nil, hasRoom(key.count + value.count) else { return }
      try view.insert(key, value)
    }

    mutating func clear(_ key: Key) throws {
      guard !isCut, try view.get(key) != nil, hasRoom(key.count) else { return }
      try view.clear(key)
    }

    private mutating func hasRoom(_ count: Int) -> Bool {
      if isFull {
        isCut = true
        return false
      }
      bytes += count
      return true
    }
  }

  /// Documents of one group that a step may go over.
  private struct Batch {
    let group: String
    /// By their group rows; without fields where a row has no document.
    var documents: [(row: Key, path: ResourcePath, fields: MapValue?)] = []
  }

  /// The next documents of the groups that the phase goes over; nil at the end.
  private func nextDocuments(_ set: IndexSet, in view: any SequencedTransaction) throws -> Batch? {
    let done = Array(set.state.progress.group.utf8)
    for group in set.pending where !Array(group.utf8).lexicographicallyPrecedes(done) {
      let prefix = KeyLayout.group(group, below: ResourcePath([]))
      let last = group.hasSameUTF8(as: set.state.progress.group) ? set.state.progress.last : []
      let whole = KeyRange(prefix: prefix)
      let range = last.isEmpty ? whole : whole.remainder(after: last, reverse: false)
      var paths: [(Key, ResourcePath)] = []
      try view.scan(range, reverse: false) { key, _, _ in
        let key = Array(key)
        guard let path = KeyLayout.documentPath(ofGroupRow: key) else { return true }
        paths.append((key, path))
        return paths.count < EngineLimits.indexingStep
      }
      if paths.isEmpty { continue }
      var batch = Batch(group: group)
      var bytes = 0
      for (key, path) in paths where bytes < EngineLimits.indexingStepBytes {
        let document = try DocumentName(database: name, path: path).flatMap { try view.document($0) }
        bytes += document?.encoded.count ?? 0
        batch.documents.append((key, path, try document?.fields()))
      }
      return batch
    }
    return nil
  }
}
