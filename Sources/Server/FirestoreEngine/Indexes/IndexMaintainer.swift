// Maintains a database's index state: builds the entries of newly configured indexes and removes those of
// dropped indexes, in the background.
//
// The work is done in steps, each a separate commit. Therefore writes continue between steps, and a restarted
// process continues at the last completed step.
//
// Example: an index on (genre, pages) is added. Phase `building` adds the entries of 128 documents per step.
// `waitingForTransactions` waits until transactions that may hold locks on old ranges have ended. `clearing`
// removes entries that the new configuration lacks. Then the state is `stable`.
//
// Invariants
// 1. A step and the state that records it are one commit in the sequencer, which runs one commit at a time. Therefore
//    every commit before or after the step maintains exactly the entries that the `IndexState` of that moment requires.
// 2. Every step is bounded in documents, in their bytes and in written bytes, so that it stays below the
//    commit limit. Every step makes progress.

import Locking
import FirestoreModel
import OrderedStore

/// Maintains the index state and entries of one database.
final class IndexMaintainer: Sendable {
  private struct State {
    var indexSet = IndexSet.automatic
    var vectors: [DatabaseIndexConfiguration.Index] = []
    var task: Task<Void, Never>?
    var isStopped = false
    /// True if an earlier process made the index change. Transactions end with their process, so none is
    /// older than the change, and the wait for transactions is skipped.
    var hasNoOlderTransactions = false
    /// Whether the operator was notified that the store is unavailable, since the last successful step.
    var hasReportedUnavailable = false
  }

  /// The action after a step.
  private enum NextAction: Sendable { case step, wait(UInt64), nothing }

  /// The interval between attempts while the store cannot write, in microseconds.
  private static let retryInterval: UInt64 = 1_000_000

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

  /// The index set after the last change in the sequencer.
  var current: IndexSet { state.withLock { $0.indexSet } }

  /// Reads the stored state before the database is used, and resumes unfinished work.
  func load() async throws {
    let stored = try await rows.read(at: nil) { view in try IndexMaintainer.stored(view) }
    state.withLock { state in
      state.indexSet = IndexSet(stored)
      // This process has just started, so it has no transactions yet.
      state.hasNoOlderTransactions = stored.phase == .waitingForTransactions
    }
    if stored.phase != .stable { start() }
  }

  /// Sets the configured indexes.
  func setConfiguration(_ configuration: DatabaseIndexConfiguration) async throws {
    let vectors = configuration.indexes.filter { index in
      index.fields.contains { if case .vector = $0.mode { true } else { false } }
    }
    state.withLock { state in
      state.vectors = vectors
      state.indexSet = IndexSet(state.indexSet.state, vectors: vectors)
    }
    let change = try await rows.execute(validating: nil) { view -> IndexState? in
      guard try TokenSigner.isStored(view) else {
        // The database has no commit yet. Its first commit stores this state, in which all phases are complete.
        let created = self.rows.createdVersion
        if let next = self.current.state.reconfigured(configuration, isEmpty: true, at: created) {
          self.state.withLock { $0.indexSet = IndexSet(next, vectors: $0.vectors) }
        }
        return nil
      }
      let before = try IndexMaintainer.stored(view)
      let isEmpty = try view.firstKey(in: KeyRange(prefix: [FirestoreKeyLayout.documents])) == nil
      guard let next = before.reconfigured(configuration, isEmpty: isEmpty, at: view.commitVersion) else {
        return nil
      }
      try self.storeAndPublish(next, in: view)
      return next
    }
    guard let next = change.result else { return }
    state.withLock { $0.hasNoOlderTransactions = false }
    report(
      "the indexes change: \(next.target.composites.count) composite, \(next.target.overrides.count) overrides"
    )
    if next.phase != .stable { start() }
  }

  /// Stops background work; completed steps remain.
  func stop() async {
    let task = state.withLock { state in
      state.isStopped = true
      return state.task
    }
    task?.cancel()
    await task?.value
  }

  private static func stored(_ view: any ReadView) throws -> IndexState {
    try view.get(FirestoreKeyLayout.indexing).map { try IndexState.decode($0.value) } ?? IndexState()
  }

  /// Stores the current state, in the first commit of the database.
  func store(in view: any SequencedTransaction) throws {
    try view.set(FirestoreKeyLayout.indexing, try current.state.encoded())
  }

  /// Stores a state. Must be the last operation of a commit in the sequencer, since it publishes the new state to
  /// later commits.
  private func storeAndPublish(_ next: IndexState, in view: any SequencedTransaction) throws {
    try view.set(FirestoreKeyLayout.indexing, try next.encoded())
    state.withLock { $0.indexSet = IndexSet(next, vectors: $0.vectors) }
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
        // `self` is weak: a sleeping maintainer must not keep its database alive.
        while let time = await self?.runSteps() { try? await clock.sleep(until: time) }
      }
    }
  }

  /// Runs steps. Returns the time of the next attempt, or nil if no work remains.
  private func runSteps() async -> UInt64? {
    while !Task.isCancelled {
      do {
        let next = try await step()
        state.withLock { $0.hasReportedUnavailable = false }
        switch next {
        case .step: await Task.yield()
        case .wait(let time): return time
        case .nothing: return nil
        }
      } catch is CancellationError { return nil } catch let error as StoreError
        where error.code == .unavailable
      {
        // Usually the database's queue is full for a short time. A closed or failed database throws the same
        // error immediately, so each retry waits for a second.
        let isFirst = state.withLock { state in
          defer { state.hasReportedUnavailable = true }
          return !state.hasReportedUnavailable
        }
        if isFirst { report("the index change is delayed and retried every second: \(error.message)") }
        return options.clock.now() + IndexMaintainer.retryInterval
      } catch {
        // Stored data is corrupt. The work stops until the server is started again.
        report("the indexes cannot be brought up to date: \(FirestoreError(error).message)")
        return nil
      }
    }
    return nil
  }

  private func step() async throws -> NextAction {
    let now = options.clock.now()
    let hasNoOlderTransactions = state.withLock { $0.hasNoOlderTransactions }
    return try await rows.execute(validating: nil) { view in
      let stored = try IndexMaintainer.stored(view)
      switch stored.phase {
      case .stable: return .nothing
      case .building:
        try self.storeAndPublish(try self.build(stored, now: now, in: view), in: view)
      case .waitingForTransactions:
        let end = stored.waitingSince + self.options.limits.transactionTimeout
        // If `now` is before `waitingSince`, the machine's clock was reset. Then this is another process, and
        // no older transaction exists.
        if !hasNoOlderTransactions, now < end, now >= stored.waitingSince { return .wait(end) }
        try self.storeAndPublish(stored.clearing(), in: view)
      case .clearing:
        let next = try self.clear(stored, in: view)
        try self.storeAndPublish(next, in: view)
        if next.phase == .stable { self.report("the index change is complete") }
      }
      return .step
    }.result
  }

  /// Adds the missing entries of one batch of documents.
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
    let targetRules = set.target(in: batch.group).rules ?? .automatic
    let addsAutomaticEntries = targetRules.intersection(base) != targetRules
    var unbuilt = IndexSet.unbuilt(stored, batch.group)
    var step = Step(view)
    for document in batch.documents {
      if let fields = document.fields {
        if addsAutomaticEntries {
          let keys = try IndexEntries.keys(of: fields, at: document.path, rules: targetRules, limits: nil)
          for key in keys { try step.insert(key, []) }
        }
        var bytes = 0
        for index in unbuilt {
          do {
            let entries = try index.entries(of: fields, at: document.path) { _, more throws(FirestoreError) in
              guard bytes + more <= EngineLimits.maximumBuiltDocumentBytes else {
                throw IndexMaintainer.tooManyBytes
              }
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
      // The document is not marked as done. The next step adds its remaining entries and skips the existing
      // ones.
      if step.isTruncated { break }
      next.progress.markDone(document.row, in: batch.group)
      if step.isFull { break }
    }
    if next.progress.documents / 10_000 > stored.progress.documents / 10_000 {
      report("building indexes: \(next.progress.documents) documents so far, now in '\(batch.group)'")
    }
    return next
  }

  private static let tooManyBytes = FirestoreError.invalidArgument(
    "The document's entries in the indexes that are being built have more than "
      + "\(EngineLimits.maximumBuiltDocumentBytes) bytes.")

  /// Removes the unneeded entries of one batch of documents, or of one dropped index.
  private func clear(_ stored: IndexState, in view: any SequencedTransaction) throws -> IndexState {
    var next = stored
    if let number = stored.droppedNumbers.last {
      var keys: [Key] = []
      var bytes = 0
      try view.scan(KeyRange(prefix: FirestoreKeyLayout.composite(number)), reverse: false) { key, _, _ in
        keys.append(Array(key))
        bytes += key.count
        return keys.count < EngineLimits.indexingStepDocuments * 8
          && bytes < EngineLimits.indexingStepEntryBytes
      }
      for key in keys { try view.clear(key) }
      if keys.isEmpty { next.droppedNumbers.removeLast() }
      return next
    }
    let set = IndexSet(stored)
    guard let batch = try nextDocuments(set, in: view) else { return stored.stable() }
    let possible = set.possible(in: batch.group).rules
    let targetRules = set.target(in: batch.group).rules
    var step = Step(view)
    for document in batch.documents {
      if let fields = document.fields {
        let all = try IndexEntries.keys(of: fields, at: document.path, rules: possible, limits: nil)
        let required = try IndexEntries.keys(of: fields, at: document.path, rules: targetRules, limits: nil)
        for key in IndexEntries.difference(from: all, to: required).removed { try step.clear(key) }
      }
      if step.isTruncated { break }
      next.progress.markDone(document.row, in: batch.group)
      if step.isFull { break }
    }
    return next
  }

  /// The writes of one step, bounded in bytes: a commit above the store's limit would fail at every attempt. Entries that
  /// are already correct do not count towards the bound, so the step after a truncated one reaches the remaining entries.
  private struct Step {
    private let view: any SequencedTransaction
    private var bytes = 0
    /// Whether an entry was left out because the step was full.
    private(set) var isTruncated = false
    /// Whether no further document should be started.
    var isFull: Bool { bytes >= EngineLimits.indexingStepEntryBytes }

    init(_ view: any SequencedTransaction) { self.view = view }

    mutating func insert(_ key: Key, _ value: StoredValue) throws {
      guard !isTruncated, try view.get(key) == nil, reserve(key.count + value.count) else { return }
      try view.insert(key, value)
    }

    mutating func clear(_ key: Key) throws {
      guard !isTruncated, try view.get(key) != nil, reserve(key.count) else { return }
      try view.clear(key)
    }

    private mutating func reserve(_ count: Int) -> Bool {
      if isFull {
        isTruncated = true
        return false
      }
      bytes += count
      return true
    }
  }

  /// The documents of one collection group that a step processes.
  private struct Batch {
    let group: String
    /// The documents, each with its group row, which the step scans in order to find them. `fields` is nil if the
    /// document does not exist.
    var documents: [(row: Key, path: ResourcePath, fields: MapValue?)] = []
  }

  /// The next documents of the groups that the phase processes; nil after the last.
  private func nextDocuments(_ set: IndexSet, in view: any SequencedTransaction) throws -> Batch? {
    let currentGroup = Array(set.state.progress.group.utf8)
    for group in set.pending where !Array(group.utf8).lexicographicallyPrecedes(currentGroup) {
      let prefix = FirestoreKeyLayout.group(group, below: ResourcePath([]))
      let last = group.hasSameUTF8(as: set.state.progress.group) ? set.state.progress.last : []
      let complete = KeyRange(prefix: prefix)
      let range = last.isEmpty ? complete : complete.remainder(after: last, reverse: false)
      var paths: [(Key, ResourcePath)] = []
      try view.scan(range, reverse: false) { key, _, _ in
        let key = Array(key)
        guard let path = FirestoreKeyLayout.documentPath(ofGroupRow: key) else { return true }
        paths.append((key, path))
        return paths.count < EngineLimits.indexingStepDocuments
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
