// An engine store implements the store contract on a storage engine. It holds the catalogue of databases and
// the threads. MemoryStore and EmbeddedStore wrap it with their engines.
//
// The ceiling is a version on disk. The store raises it before it publishes versions above it.
//
// Invariant: every version that earlier processes published is at most the ceiling found on disk. Every
// version that this process assigns is above it, even if the clock was set back.

import Locking

/// The implementation of a store on a ``StorageEngine``.
package final class EngineStore: OrderedStore {
  private struct Registry {
    /// The open databases that the catalogue contains, or will contain after a commit in flight.
    var open: [String: OpenDatabase] = [:]
    /// The databases that are in use without being in the catalogue.
    var provisional: [String: WeakDatabase] = [:]
    /// The newest version of a removed database, or of a released provisional one.
    var newestRemovedVersion = Version.zero
    var isClosing = false
    var isClosed = false
    /// The callers that wait until the store is closed.
    var waiting: [CheckedContinuation<Void, Never>] = []

    func database(_ name: String) -> OpenDatabase? { open[name] ?? provisional[name]?.database }
  }

  private struct WeakDatabase {
    weak var database: OpenDatabase?
  }

  private let engine: any StorageEngine
  private let options: StoreOptions
  private let bootVersion: Version
  private let published: Guarded<SharedState>
  private let pipeline: CommitPipeline
  private let writer: DedicatedThread
  private let sequencers: ThreadPool
  private let catalogue = ThreadPool(threads: 1)
  private let readers: ThreadPool
  private let registry = Guarded(Registry())
  private let numbers: DatabaseNumbers
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
    numbers = DatabaseNumbers(next: try CatalogueRows.readNextNumber(snapshot))
    if found == nil {
      let batch = engine.makeBatch()
      CatalogueRows.putFormat(in: batch)
      try engine.commit(batch)
    }
    let now = options.clock.now()
    if let lead = options.maximumClockLead, bootVersion > .zero, now > bootVersion.microseconds &+ lead {
      let days = (now - bootVersion.microseconds) / 86_400_000_000
      throw StoreError(
        .clockAhead,
        "the clock is \(days) days ahead of the newest stored version, \(bootVersion) µs since 1970")
    }
    if now + CommitPipeline.ceilingLead * 2 < bootVersion.microseconds {
      options.report(
        "the clock was set back: it reads \(now) µs, below version \(bootVersion), which may have been assigned; "
          + "versions do not follow it")
    }
    published = Guarded(SharedState(snapshot: engine.snapshot()))
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
    if let database = registry.withLock({ $0.open[name] }) { return EngineDatabase(self, database) }
    return EngineDatabase(
      self,
      try await onCatalogue {
        let database = try self.open(name, history)
        try self.create(database)
        return database
      })
  }

  package func provisionalDatabase(
    named name: String, history: HistoryWindow
  ) async throws -> any OrderedDatabase {
    if let database = registry.withLock({ $0.database(name) }) { return EngineDatabase(self, database) }
    return EngineDatabase(
      self,
      try await onCatalogue {
        let database = try self.open(name, history)
        // Readers see this version from now on, so the ceiling on disk must be at least as high: a restarted process must
        // not assign the version again.
        let created = database.createdVersion
        if created > self.pipeline.durableCeiling { try self.write(database.publishedState, created) }
        return database
      })
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
      let (begins, isClosed) = registry.withLock { registry in
        defer { registry.isClosing = true }
        if !registry.isClosed { registry.waiting.append(continuation) }
        return (!registry.isClosing, registry.isClosed)
      }
      if isClosed { continuation.resume() }
      guard begins else { return }
      _ = DedicatedThread {
        self.closeAll()
        let waiting = self.registry.withLock { registry in
          registry.isClosed = true
          defer { registry.waiting = [] }
          return registry.waiting
        }
        for continuation in waiting { continuation.resume() }
      }
    }
  }

  /// The current time, in microseconds since the Unix epoch.
  var now: UInt64 { options.clock.now() }

  /// Deletes the history of all databases that is older than their history windows now. For tests and tools.
  package func trimNow() async throws {
    try await onCatalogue { try self.trimmer.trimAll() }
  }

  /// Runs a read on the caller's thread. If the read needs the disk or becomes long, runs it again from the
  /// start on a reader thread.
  func read<Result: Sendable>(_ read: @escaping @Sendable (ReadTier) throws -> Result) async throws
    -> Result
  {
    do {
      return try read(.memory)
    } catch is MemoryTierMiss {
      return try await EngineStore.run(on: readers) { try read(.disk) }
    }
  }

  /// Runs a part of a long scan on a reader thread. The engine does not cache the rows of the scan.
  func readWithoutCacheFill<Result: Sendable>(_ read: @escaping @Sendable (ReadTier) throws -> Result)
    async throws
    -> Result
  {
    try await EngineStore.run(on: readers) { try read(.withoutCacheFill) }
  }

  /// Runs work that reads from disk on a reader thread.
  /// - Parameter rejected: called instead if the store is closed.
  func runOnReader(_ work: @escaping @Sendable () -> Void, rejected: (StoreError) -> Void) {
    if !readers.submit(work) { rejected(EngineStore.closed) }
  }

  private static let closed = StoreError.unavailable("the store is closed")

  private func onCatalogue<Result: Sendable>(_ work: @escaping @Sendable () throws -> Result) async throws
    -> Result
  {
    guard !registry.withLock({ $0.isClosing }) else { throw EngineStore.closed }
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

  /// Opens a database. A missing one is provisional. Runs on the catalogue thread.
  private func open(_ name: String, _ history: HistoryWindow) throws -> OpenDatabase {
    let registered = registry.wait { registry -> OpenDatabase?? in
      let database = registry.database(name)
      // Waits for a provisional database that is being released: it has not recorded its newest version yet.
      return database == nil && registry.provisional[name] != nil ? nil : .some(database)
    }
    if let database = registered ?? nil { return database }
    guard !name.isEmpty, name.utf8.count <= StoreLimits.maximumNameBytes else {
      throw StoreError.limitExceeded("a database's name has 1 to \(StoreLimits.maximumNameBytes) bytes")
    }
    guard let snapshot = published.withLock({ $0.snapshot }) else { throw EngineStore.closed }
    let keepsHistory = history != .activeReadersOnly
    let entry: CatalogueRows.Entry
    let publishedState: PublishedState
    var creation: DatabaseCreation?
    if let found = try CatalogueRows.readEntry(named: name, snapshot) {
      entry = found
      var floor = try CatalogueRows.readFloor(of: found.number, snapshot)
      if keepsHistory, !found.keepsHistory { floor = max(bootVersion, found.created) }
      publishedState = PublishedState(published, latest: max(bootVersion, found.created), floor: floor)
      if keepsHistory != found.keepsHistory {
        var changed = found
        changed.keepsHistory = keepsHistory
        try write(publishedState, found.created) { [changed, floor] batch in
          CatalogueRows.put(changed, named: name, in: batch)
          CatalogueRows.putFloor(floor, of: changed.number, in: batch)
        }
      }
    } else {
      // An earlier database of this name may have been removed, and clients may still have its versions. The
      // new database's versions must be above them.
      let newestUsed = max(bootVersion, registry.withLock { $0.newestRemovedVersion })
      let created = Version(microseconds: max(options.clock.now(), newestUsed.microseconds + 1))
      precondition(
        created > bootVersion, "invariant: versions of this process are above the ceiling at its start")
      let new = CatalogueRows.Entry(number: numbers.assign(), created: created, keepsHistory: keepsHistory)
      entry = new
      publishedState = PublishedState(published, latest: created, floor: .zero)
      creation = DatabaseCreation { [weak self] in
        self?.register(name)
      } addEntry: { [numbers] batch in
        CatalogueRows.put(new, named: name, in: batch)
        CatalogueRows.putNextNumber(numbers.next, in: batch)
      }
    }
    let layout = StorageKeyLayout(number: entry.number)
    let sequencer = CommitSequencer(
      layout, publishedState, keepsHistory: keepsHistory, creation: creation, pipeline, sequencers, options)
    let database = OpenDatabase(
      name: name, created: entry.created, history, publishedState, sequencer, creation
    ) { [weak self] number, newest in self?.release(name, number, newest) }
    if creation == nil {
      registry.withLock { $0.open[name] = database }
      trimmer.add(database)
    } else {
      registry.withLock { $0.provisional[name] = WeakDatabase(database: database) }
    }
    return database
  }

  /// Adds a provisional database to the catalogue, unless a commit has done so, and waits until the entry is durable.
  private func create(_ database: OpenDatabase) throws {
    guard database.creation != nil else { return }
    let outcome = Guarded<StoreError??>(nil)
    try database.sequencer.enqueue { sequencer in
      sequencer.create { failure in
        outcome.withLock { $0 = .some(failure) }
        outcome.broadcast()
      }
    }
    if let failure = outcome.wait(until: { $0 }) { throw failure }
  }

  /// Moves a database from the provisional to the open ones, because its first commit is sequenced.
  private func register(_ name: String) {
    let database = registry.withLock { registry in
      let database = registry.provisional.removeValue(forKey: name)?.database
      registry.open[name] = database
      return database
    }
    guard let database else {
      preconditionFailure("invariant: a database is provisional until its first commit")
    }
    trimmer.add(database)
  }

  /// Removes a provisional database whose last handle was released from the registry.
  private func release(_ name: String, _ number: DatabaseNumber, _ newest: Version) {
    registry.withLock { registry in
      registry.provisional[name] = nil
      registry.newestRemovedVersion = max(registry.newestRemovedVersion, newest)
    }
    registry.broadcast()
    numbers.release(number)
  }

  /// Removes a database. Runs on the catalogue thread.
  private func remove(_ name: String) throws {
    guard let snapshot = published.withLock({ $0.snapshot }) else { throw EngineStore.closed }
    guard let entry = try CatalogueRows.readEntry(named: name, snapshot) else { return }
    let database = try open(name, entry.keepsHistory ? .seconds(0) : .activeReadersOnly)
    trimmer.remove(database)
    let outcome = Guarded<StoreError??>(nil)
    let (start, end) = database.layout.fullRange
    try database.sequencer.enqueue { sequencer in
      sequencer.remove { batch in
        CatalogueRows.remove(named: name, entry.number, in: batch)
        start.withUnsafeBytes { start in end.withUnsafeBytes { batch.deleteRange(from: start, to: $0) } }
      } _: { failure in
        outcome.withLock { $0 = .some(failure) }
        outcome.broadcast()
      }
    }
    database.sequencer.close()
    let failure = outcome.wait(until: { $0 })
    registry.withLock { registry in
      registry.open[name] = nil
      registry.newestRemovedVersion = max(
        registry.newestRemovedVersion, database.publishedState.latestVersion)
    }
    if let failure { throw failure }
    engine.reclaim(from: start, to: end)
  }

  /// Writes catalogue rows, if any, through the pipeline and waits until they are durable.
  private func write(
    _ publishedState: PublishedState, _ version: Version,
    _ rows: @escaping (any EngineBatch) -> Void = { _ in }
  ) throws {
    let outcome = Guarded<StoreError??>(nil)
    let commit = SequencedCommit(.barrier, of: publishedState, at: version) { failure in
      outcome.withLock { $0 = .some(failure) }
      outcome.broadcast()
    }
    pipeline.submit(commit, rows)
    pipeline.release()
    if let failure = outcome.wait(until: { $0 }) { throw failure }
  }

  /// Closes the parts of the store in this order: trimmer, sequencers, writer, readers, engine. Blocks.
  private func closeAll() {
    trimmer.stop()
    catalogue.close()
    let databases = registry.withLock { registry in
      defer {
        registry.open = [:]
        registry.provisional = [:]
      }
      return Array(registry.open.values) + registry.provisional.values.compactMap(\.database)
    }
    for database in databases { database.sequencer.close() }
    sequencers.close()
    pipeline.stop()
    writer.join()
    readers.close()
    trimmer.join()
    lowerCeiling(databases)
    published.withLock { $0.snapshot = nil }
    engine.close()
  }

  /// Lowers the ceiling on disk to the newest version. The next start then continues directly above it
  /// instead of above the old ceiling.
  private func lowerCeiling(_ databases: [OpenDatabase]) {
    guard pipeline.failure == nil else { return }
    let removed = max(bootVersion, registry.withLock { $0.newestRemovedVersion })
    let newest = databases.map(\.publishedState.latestVersion).reduce(removed, max)
    precondition(
      newest <= pipeline.durableCeiling, "invariant: the durable ceiling is above every published version")
    guard newest < pipeline.durableCeiling else { return }
    let batch = engine.makeBatch()
    CatalogueRows.putCeiling(newest, in: batch)
    do {
      try engine.commit(batch)
    } catch {
      options.report(
        "the last write of the closing store failed; acknowledged commits are not affected: \(error)")
    }
  }
}
