// A store on a storage engine: the catalogue of databases, the threads, the start and the end. MemoryStore and
// EmbeddedStore are this with their engine.
//
// Invariant: a version handed out before the start lies at or below the ceiling found on disk, and every version
// handed out after it above, whatever the clock says.

import Locking

/// The machinery of every store that has a ``StorageEngine``.
package final class EngineStore: OrderedStore {
  private struct Registry {
    var open: [String: DatabaseCore] = [:]
    /// The newest version that a removed database handed out.
    var newestRemoved = Version.zero
    var closed = false
    var finished = false
    /// Who waits for the end.
    var closers: [CheckedContinuation<Void, Never>] = []
  }

  private let engine: any StorageEngine
  private let options: StoreOptions
  private let bootVersion: Version
  private let published: Guarded<Published>
  private let pipeline: CommitPipeline
  private let writer: DedicatedThread
  private let sequencers: ThreadPool
  private let catalogue = ThreadPool(threads: 1)
  private let readers: ThreadPool
  private let registry = Guarded(Registry())
  private let trimmer: Trimmer

  /// Opens a store on an engine. Blocks.
  package init(_ engine: any StorageEngine, _ options: StoreOptions, sequencers: Int = 2, readers: Int = 4)
    throws
  {
    self.engine = engine
    self.options = options
    let snapshot = engine.snapshot()
    let found = try CatalogueRows.readFormat(snapshot)
    if let found, found != CatalogueRows.format {
      throw StoreError(
        .corrupted, "the data is of format \(found); this version reads format \(CatalogueRows.format)")
    }
    bootVersion = try CatalogueRows.readCeiling(snapshot)
    if found == nil {
      let batch = engine.makeBatch()
      CatalogueRows.putFormat(in: batch)
      try engine.commit(batch)
    }
    let now = options.clock.now()
    if now + CommitPipeline.ceilingLead * 2 < bootVersion.microseconds {
      options.report(
        "the clock was set back: it reads \(now) µs where version \(bootVersion) may have been handed out; "
          + "it is not followed")
    }
    published = Guarded(Published(snapshot: engine.snapshot()))
    pipeline = CommitPipeline(engine, published, ceiling: bootVersion, options)
    writer = DedicatedThread { [pipeline] in pipeline.run() }
    self.sequencers = ThreadPool(threads: sequencers)
    self.readers = ThreadPool(threads: readers)
    trimmer = Trimmer(engine, pipeline, options)
  }

  deinit {
    trimmer.stop()
    pipeline.stop()
  }

  package func database(named name: String, history: HistoryWindow) async throws -> any OrderedDatabase {
    if let core = registry.withLock({ $0.open[name] }) { return EngineDatabase(self, core) }
    return EngineDatabase(self, try await onCatalogue { try self.open(name, history) })
  }

  package func databaseExists(named name: String) async throws -> Bool {
    if registry.withLock({ $0.open[name] != nil }) { return true }
    return try await onCatalogue {
      guard let snapshot = self.published.withLock({ $0.snapshot }) else { throw EngineStore.closed }
      return try CatalogueRows.readEntry(named: name, snapshot) != nil
    }
  }

  package func databaseNames() async throws -> [String] {
    try await onCatalogue {
      guard let snapshot = self.published.withLock({ $0.snapshot }) else { throw EngineStore.closed }
      return try CatalogueRows.readNames(snapshot)
    }
  }

  package func removeDatabase(named name: String) async throws {
    try await onCatalogue { try self.remove(name) }
  }

  package func close() async throws {
    await withCheckedContinuation { continuation in
      let (begins, isOver) = registry.withLock { registry in
        defer { registry.closed = true }
        if !registry.finished { registry.closers.append(continuation) }
        return (!registry.closed, registry.finished)
      }
      if isOver { continuation.resume() }
      guard begins else { return }
      _ = DedicatedThread {
        self.finish()
        let closers = self.registry.withLock { registry in
          registry.finished = true
          defer { registry.closers = [] }
          return registry.closers
        }
        for closer in closers { closer.resume() }
      }
    }
  }

  /// The clock's time.
  var now: UInt64 { options.clock.now() }

  /// Removes what lies below the history windows now, in all databases; for tests and tools. Blocks.
  package func trimNow() async throws {
    try await onCatalogue { try self.trimmer.trimAll() }
  }

  /// Runs a read: on this thread as long as memory serves it and it stays short, else on a reader's.
  func reading<Result: Sendable>(_ read: @escaping @Sendable (ReadTier) throws -> Result) async throws
    -> Result
  {
    do {
      return try read(.memory)
    } catch is NotAtOnce {
      return try await EngineStore.run(on: readers) { try read(.disk) }
    }
  }

  /// Runs a part of a long walk, on a reader's thread.
  func walking<Result: Sendable>(_ read: @escaping @Sendable (ReadTier) throws -> Result) async throws
    -> Result
  {
    try await EngineStore.run(on: readers) { try read(.passing) }
  }

  private static let closed = StoreError.unavailable("the store is closed")

  private func onCatalogue<Result: Sendable>(_ work: @escaping @Sendable () throws -> Result) async throws
    -> Result
  {
    guard !registry.withLock({ $0.closed }) else { throw EngineStore.closed }
    return try await EngineStore.run(on: catalogue, work)
  }

  private static func run<Result: Sendable>(
    on pool: ThreadPool, _ work: @escaping @Sendable () throws -> Result
  ) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
      let accepted = pool.submit { continuation.resume(with: Swift.Result { try work() }) }
      if !accepted { continuation.resume(throwing: EngineStore.closed) }
    }
  }

  /// Opens or creates a database; on the catalogue's thread.
  private func open(_ name: String, _ history: HistoryWindow) throws -> DatabaseCore {
    if let core = registry.withLock({ $0.open[name] }) { return core }
    guard !name.isEmpty, name.utf8.count <= StoreLimits.maximumNameBytes else {
      throw StoreError.limitExceeded("a database's name has 1 to \(StoreLimits.maximumNameBytes) bytes")
    }
    guard let snapshot = published.withLock({ $0.snapshot }) else { throw EngineStore.closed }
    let keepsHistory = history != .activeReadersOnly
    let entry: CatalogueRows.Entry
    let standing: Standing
    if let found = try CatalogueRows.readEntry(named: name, snapshot) {
      entry = found
      var floor = try CatalogueRows.readFloor(of: found.number, snapshot)
      if keepsHistory, !found.keepsHistory { floor = max(bootVersion, found.created) }
      standing = Standing(published, latest: max(bootVersion, found.created), floor: floor)
      if keepsHistory != found.keepsHistory {
        var changed = found
        changed.keepsHistory = keepsHistory
        try write(standing, found.created) { [changed, floor] batch in
          CatalogueRows.put(changed, named: name, in: batch)
          CatalogueRows.putFloor(floor, of: changed.number, in: batch)
        }
      }
    } else {
      let number = try CatalogueRows.readNextNumber(snapshot)
      // One of this name may have been removed: whoever still holds a version of it must see that it lies before.
      let before = max(bootVersion, registry.withLock { $0.newestRemoved })
      let created = Version(microseconds: max(options.clock.now(), before.microseconds + 1))
      let new = CatalogueRows.Entry(number: number, created: created, keepsHistory: keepsHistory)
      entry = new
      standing = Standing(published, latest: created, floor: .zero)
      try write(standing, created) { batch in
        CatalogueRows.put(new, named: name, in: batch)
        CatalogueRows.putNextNumber(number + 1, in: batch)
      }
    }
    let layout = KeyLayout(number: entry.number)
    let sequencer = Sequencer(layout, standing, keepsHistory: keepsHistory, pipeline, sequencers, options)
    let core = DatabaseCore(name: name, entry, history, standing, sequencer)
    registry.withLock { $0.open[name] = core }
    trimmer.add(core)
    return core
  }

  /// Removes a database; on the catalogue's thread.
  private func remove(_ name: String) throws {
    guard let snapshot = published.withLock({ $0.snapshot }) else { throw EngineStore.closed }
    guard let entry = try CatalogueRows.readEntry(named: name, snapshot) else { return }
    let core = try open(name, entry.keepsHistory ? .seconds(0) : .activeReadersOnly)
    trimmer.remove(core)
    let outcome = Guarded<StoreError??>(nil)
    let (start, end) = core.layout.wholeRange
    try core.sequencer.enqueue { sequencer in
      sequencer.remove { batch in
        CatalogueRows.remove(named: name, entry.number, in: batch)
        start.withUnsafeBytes { start in end.withUnsafeBytes { batch.deleteRange(from: start, to: $0) } }
      } _: { failure in
        outcome.withLock { $0 = .some(failure) }
        outcome.broadcast()
      }
    }
    core.sequencer.close()
    let failure = outcome.wait(until: { $0 })
    registry.withLock { registry in
      registry.open[name] = nil
      registry.newestRemoved = max(registry.newestRemoved, core.standing.latestVersion)
    }
    if let failure { throw failure }
    engine.reclaim(from: start, to: end)
  }

  /// Writes catalogue rows through the pipeline and waits for them.
  private func write(
    _ standing: Standing, _ version: Version, _ rows: @escaping (any EngineBatch) -> Void
  ) throws {
    let outcome = Guarded<StoreError??>(nil)
    let commit = SequencedCommit(standing: standing, version: version, isCommit: false, record: nil) {
      failure in
      outcome.withLock { $0 = .some(failure) }
      outcome.broadcast()
    }
    pipeline.submit(commit, rows)
    pipeline.release()
    if let failure = outcome.wait(until: { $0 }) { throw failure }
  }

  /// Ends everything in order: trimming, sequencers, the writer, readers, the engine. Blocks.
  private func finish() {
    trimmer.stop()
    catalogue.close()
    let cores = registry.withLock { registry in
      defer { registry.open = [:] }
      return Array(registry.open.values)
    }
    for core in cores { core.sequencer.close() }
    sequencers.close()
    pipeline.stop()
    writer.join()
    readers.close()
    trimmer.join()
    lowerCeiling(cores)
    published.withLock { $0.snapshot = nil }
    engine.close()
  }

  /// After a clean end the next start need not skip the versions that were kept in reserve.
  private func lowerCeiling(_ cores: [DatabaseCore]) {
    guard pipeline.failure == nil else { return }
    let removed = max(bootVersion, registry.withLock { $0.newestRemoved })
    let newest = cores.map(\.standing.latestVersion).reduce(removed, max)
    guard newest < pipeline.durableCeiling else { return }
    let batch = engine.makeBatch()
    CatalogueRows.putCeiling(newest, in: batch)
    do {
      try engine.commit(batch)
    } catch {
      options.report("the last write of the closing store failed; nothing acknowledged is touched: \(error)")
    }
  }
}
