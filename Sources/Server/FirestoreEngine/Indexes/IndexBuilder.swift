// Brings a database's indexes to what was chosen, in the background: step by step, each a commit of its own, so that
// writes go on between them and a killed process goes on where it was.
//
// Invariant: a step and the state that says it was done are one commit, in the sequencer; whatever is written before or
// after it, the entries are those that `IndexState` promises.

import FirestoreModel
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
  }

  /// What follows a step.
  private enum Next: Sendable { case step, wait(UInt64), nothing }

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
  private func put(_ next: IndexState, in view: any Sequenced) throws {
    try view.set(KeyLayout.indexing, try next.encoded())
    state.withLock { $0.set = IndexSet(next, vectors: $0.vectors) }
  }

  private func report(_ text: String) { options.report("\(name): \(text)") }

  // MARK: Working

  private func start() {
    state.withLock { state in
      guard !state.isStopped else { return }
      let before = state.task
      state.task = Task { [weak self] in
        before?.cancel()
        await before?.value
        await self?.work()
      }
    }
  }

  private func work() async {
    while !Task.isCancelled {
      do {
        switch try await step() {
        case .step: await Task.yield()
        case .wait(let time): try await options.clock.sleep(until: time)
        case .nothing: return
        }
      } catch is CancellationError { return } catch {
        // The store writes no more, or what it holds is damaged: the next start tries again.
        report("the indexes cannot be brought up to date: \(FirestoreError(error).message)")
        return
      }
    }
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
  private func build(_ stored: IndexState, now: UInt64, in view: any Sequenced) throws -> IndexState {
    let set = IndexSet(stored)
    guard let batch = try nextDocuments(set, in: view) else {
      report("the indexes are built: \(stored.progress.documents) documents")
      return stored.built(at: view.commitVersion, now: now)
    }
    var next = batch.state
    let group = batch.state.progress.group
    let base = IndexSet.baseRules(stored, group)
    let wanted = set.wanted(in: group).rules ?? .automatic
    let hasRules = wanted.intersection(base) != wanted
    var unbuilt = IndexSet.unbuilt(stored, group)
    for (path, fields) in batch.documents {
      if hasRules {
        let keys = try IndexEntries.keys(of: fields, at: path, rules: wanted, limits: nil)
        for key in keys where try view.get(key) == nil { try view.insert(key, []) }
      }
      for index in unbuilt {
        do {
          for (key, value) in try index.entries(of: fields, at: path) where try view.get(key) == nil {
            try view.insert(key, value)
          }
        } catch let error as FirestoreError {
          unbuilt.removeAll { $0 == index }
          next = next.failing(index.number, because: "\(path): \(error.message)")
          report("the index of \(index.index.description) cannot be built: \(path): \(error.message)")
        }
      }
    }
    if next.progress.documents / 10_000 > stored.progress.documents / 10_000 {
      report("building indexes: \(next.progress.documents) documents so far, now in '\(group)'")
    }
    return next
  }

  /// Removes entries that are not wanted any more.
  private func clear(_ stored: IndexState, in view: any Sequenced) throws -> IndexState {
    var next = stored
    if let number = stored.dead.last {
      var keys: [Key] = []
      try view.scan(KeyRange(prefix: KeyLayout.composite(number)), reverse: false) { key, _, _ in
        keys.append(Array(key))
        return keys.count < EngineLimits.indexingStep * 8
      }
      for key in keys { try view.clear(key) }
      if keys.isEmpty { next.dead.removeLast() }
      return next
    }
    let set = IndexSet(stored)
    guard let batch = try nextDocuments(set, in: view) else { return stored.settled() }
    let group = batch.state.progress.group
    let possible = set.possible(in: group).rules
    let wanted = set.wanted(in: group).rules
    for (path, fields) in batch.documents {
      let all = try IndexEntries.keys(of: fields, at: path, rules: possible, limits: nil)
      let kept = try IndexEntries.keys(of: fields, at: path, rules: wanted, limits: nil)
      for key in IndexEntries.difference(from: all, to: kept).removed { try view.clear(key) }
    }
    return batch.state
  }

  private struct Batch {
    var documents: [(path: ResourcePath, fields: MapValue)] = []
    /// The state with the progress after them.
    var state: IndexState
  }

  /// The next documents of the groups that the phase goes over; nil at the end.
  private func nextDocuments(_ set: IndexSet, in view: any Sequenced) throws -> Batch? {
    var batch = Batch(state: set.state)
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
      batch.state.progress.group = group
      var bytes = 0
      for (key, path) in paths where bytes < EngineLimits.indexingStepBytes {
        batch.state.progress.last = key
        batch.state.progress.documents += 1
        guard let name = DocumentName(database: name, path: path), let document = try view.document(name)
        else { continue }
        bytes += document.encoded.count
        batch.documents.append((path, try document.fields()))
      }
      return batch
    }
    return nil
  }
}
