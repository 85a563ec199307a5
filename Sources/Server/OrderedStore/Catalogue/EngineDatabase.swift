// A database of an ``EngineStore``. Reads use the published state, which is durable. Writes are calls that
// wait in the queue of the database's commit sequencer.

/// A handle of an open database. It retains its store, so that the store lives while its databases are used.
final class EngineDatabase: OrderedDatabase {
  private let store: EngineStore
  private let database: OpenDatabase

  init(_ store: EngineStore, _ database: OpenDatabase) {
    self.store = store
    self.database = database
  }

  var name: String { database.name }
  var createdVersion: Version { database.createdVersion }
  var latestVersion: Version { database.publishedState.latestVersion }

  func setFirstRows(_ write: @escaping @Sendable (any SequencedTransaction) throws -> Void) {
    database.creation?.setFirstRows(write)
  }

  func read<Result: Sendable>(
    at version: Version?, _ body: @escaping @Sendable (any ReadView) throws -> Result
  ) async throws -> Result {
    let published = try database.publishedState.publishedView()
    let version = version ?? published.latest
    let isPast = try database.isPast(version, published)
    return try await store.read { [database] tier in
      let reader = database.reader(published, tier)
      let view: any TieredView = isPast ? PastView(reader, at: version) : CurrentView(reader, at: version)
      return try view.run(body)
    }
  }

  func pinView() throws -> any PinnedView {
    PinnedState(store: store, database: database, published: try database.publishedState.publishedView())
  }

  func execute<Result: Sendable>(
    validating reads: ReadSet?, _ body: @escaping @Sendable (any SequencedTransaction) throws -> Result,
    completion: @escaping @Sendable (Swift.Result<Committed<Result>, any Error>) -> Void
  ) {
    enqueue(validating: reads.map { ReadValidation($0) }, body, SequencedCall(completion))
  }

  private func enqueue<Result: Sendable>(
    validating validation: ReadValidation?,
    _ body: @escaping @Sendable (any SequencedTransaction) throws -> Result, _ call: SequencedCall<Result>
  ) {
    do {
      // The closure retains the handle: neither the store nor a provisional database (one without a commit) may be
      // released before every call is completed.
      try database.sequencer.enqueue { sequencer in
        withExtendedLifetime(self) {
          sequencer.execute(validating: validation, body, call) { self.validate($0, body, call) }
        }
      }
    } catch {
      call.complete(.failure(error))
    }
  }

  /// Validates reads on a reader thread, and queues the call again.
  private func validate<Result: Sendable>(
    _ validation: ReadValidation, _ body: @escaping @Sendable (any SequencedTransaction) throws -> Result,
    _ call: SequencedCall<Result>
  ) {
    let database = database
    store.runOnReader {
      do {
        self.enqueue(validating: try database.validate(validation), body, call)
      } catch {
        call.complete(.failure(error))
      }
    } rejected: {
      call.complete(.failure($0))
    }
  }

  func reserveVersion() async throws -> Version {
    try await withCheckedThrowingContinuation { continuation in
      do {
        try database.sequencer.enqueue { sequencer in
          withExtendedLifetime(self) { sequencer.reserve { continuation.resume(with: $0) } }
        }
      } catch {
        continuation.resume(throwing: error)
      }
    }
  }

  func latestVersion(within age: UInt64) -> Version? {
    let latest = latestVersion
    let now = store.now
    return now > latest.microseconds && now - latest.microseconds > age ? nil : latest
  }

  func recentVersion(within age: UInt64) async throws -> Version {
    if let latest = latestVersion(within: age) { return latest }
    return try await reserveVersion()
  }

  func log(after version: Version, limit: Int) async throws -> [LogRecord] {
    let published = try database.publishedState.publishedView()
    guard version >= published.floor else { throw StoreError.versionTooOld }
    guard version < published.latest, limit > 0 else { return [] }
    return try await store.read { [database] tier in
      try database.reader(published, tier).logRecords(after: version, limit: limit)
    }
  }

  func follow(_ deliver: @escaping @Sendable (LogRecord) -> Void) -> any LogSubscription {
    FollowerSubscription(database.publishedState, deliver)
  }
}

/// A pinned state of a database.
private struct PinnedState: PinnedView {
  let store: EngineStore
  let database: OpenDatabase
  let published: PublishedState.PublishedView

  var version: Version { published.latest }

  func read<Result: Sendable>(
    _ body: @escaping @Sendable (any ReadView) throws -> Result
  ) async throws -> Result {
    try await store.readWithoutCacheFill { [database, published] tier in
      try CurrentView(database.reader(published, tier), at: published.latest).run(body)
    }
  }
}

/// The parts of an open database. The store retains this object if the database is in the catalogue. Handles retain it
/// too, so that a provisional database is released with its last handle.
final class OpenDatabase: Sendable {
  let name: String
  let createdVersion: Version
  let layout: StorageKeyLayout
  let history: HistoryWindow
  let publishedState: PublishedState
  let sequencer: CommitSequencer
  /// The creation of the database; nil if it was in the catalogue when it was opened.
  let creation: DatabaseCreation?
  private let released: @Sendable (_ number: DatabaseNumber, _ newest: Version) -> Void

  /// - Parameter released: called when the database is released without ever being created.
  init(
    name: String, created: Version, _ history: HistoryWindow, _ publishedState: PublishedState,
    _ sequencer: CommitSequencer, _ creation: DatabaseCreation?,
    released: @escaping @Sendable (_ number: DatabaseNumber, _ newest: Version) -> Void
  ) {
    self.name = name
    self.createdVersion = created
    self.layout = sequencer.layout
    self.history = history
    self.publishedState = publishedState
    self.sequencer = sequencer
    self.creation = creation
    self.released = released
  }

  deinit {
    if sequencer.isProvisional { released(layout.number, sequencer.newestVersion) }
  }

  /// Makes a reader of the rows of a published state.
  func reader(_ published: PublishedState.PublishedView, _ tier: ReadTier) -> RowReader {
    RowReader(
      snapshot: published.snapshot, layout: layout, tier: tier, newestVersion: published.latest)
  }

  /// Whether a read at a version must read history rows, because rows have changed after that version.
  /// - Throws: ``StoreError`` if the version is above the latest or below the floor.
  func isPast(_ version: Version, _ published: PublishedState.PublishedView) throws -> Bool {
    if version > published.latest { throw StoreError.versionInFuture }
    if version >= published.newestCommit { return false }
    guard sequencer.keepsHistory, version >= published.floor else { throw StoreError.versionTooOld }
    return true
  }
}
