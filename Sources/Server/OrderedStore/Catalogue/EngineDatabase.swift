// A database of a store that stands on a storage engine: the contract's calls, handed to the sequencer, the readers
// and the log.

/// One open database. Holds its store, so that the store lives as long as its databases are used.
final class EngineDatabase: OrderedDatabase {
  let name: String
  let createdVersion: Version
  private let store: EngineStore
  private let core: DatabaseCore

  init(_ store: EngineStore, _ core: DatabaseCore) {
    self.store = store
    self.core = core
    name = core.name
    createdVersion = core.created
  }

  var latestVersion: Version { core.standing.latestVersion }

  func read<Result: Sendable>(
    at version: Version?, _ body: @escaping @Sendable (any ReadView) throws -> Result
  ) async throws -> Result {
    let moment = try core.standing.moment()
    let at = version ?? moment.latest
    let isPast = try core.isPast(at, moment)
    return try await store.reading { [layout = core.layout] tier in
      let reader = RowReader(snapshot: moment.snapshot, layout: layout, tier: tier)
      if isPast {
        let view = PastView(reader, at: at)
        return try Reading.attempt(missed: { view.missed }) { try body(view) }
      }
      let view = CurrentView(reader, at: at)
      return try Reading.attempt(missed: { view.missed }) { try body(view) }
    }
  }

  func pinView() throws -> any PinnedView {
    HeldMoment(store: store, layout: core.layout, moment: try core.standing.moment())
  }

  func execute<Result: Sendable>(
    validating reads: ReadSet?, _ body: @escaping @Sendable (any SequencedTransaction) throws -> Result,
    completion: @escaping @Sendable (Swift.Result<Committed<Result>, any Error>) -> Void
  ) {
    do {
      try core.sequencer.enqueue { sequencer in sequencer.execute(validating: reads, body, completion) }
    } catch {
      completion(.failure(error))
    }
  }

  func reserveVersion() async throws -> Version {
    try await withCheckedThrowingContinuation { continuation in
      do {
        try core.sequencer.enqueue { sequencer in sequencer.reserve { continuation.resume(with: $0) } }
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
    let moment = try core.standing.moment()
    guard version >= moment.floor else { throw StoreError.versionTooOld }
    guard version < moment.latest, limit > 0 else { return [] }
    return try await store.reading { [layout = core.layout] tier in
      try Reading.log(layout, moment.snapshot, after: version, upTo: moment.latest, limit: limit, tier)
    }
  }

  func follow(_ deliver: @escaping @Sendable (LogRecord) -> Void) -> any LogSubscription {
    Following(core.standing, deliver)
  }
}

/// A state that is held.
private struct HeldMoment: PinnedView {
  let store: EngineStore
  let layout: KeyLayout
  let moment: Standing.Moment

  var version: Version { moment.latest }

  func read<Result: Sendable>(
    _ body: @escaping @Sendable (any ReadView) throws -> Result
  ) async throws -> Result {
    try await store.walking { [layout, moment] tier in
      let view = CurrentView(
        RowReader(snapshot: moment.snapshot, layout: layout, tier: tier), at: moment.latest)
      return try Reading.attempt(missed: { view.missed }) { try body(view) }
    }
  }
}

/// What a store keeps of an open database.
final class DatabaseCore: Sendable {
  let name: String
  let created: Version
  let layout: KeyLayout
  let history: HistoryWindow
  let standing: Standing
  let sequencer: Sequencer

  init(
    name: String, _ entry: CatalogueRows.Entry, _ history: HistoryWindow, _ standing: Standing,
    _ sequencer: Sequencer
  ) {
    self.name = name
    self.created = entry.created
    self.layout = sequencer.layout
    self.history = history
    self.standing = standing
    self.sequencer = sequencer
  }

  /// Whether a read at a version needs history; throws if it cannot be served.
  func isPast(_ version: Version, _ moment: Standing.Moment) throws -> Bool {
    if version > moment.latest { throw StoreError.versionInFuture }
    if version >= moment.newestCommit { return false }
    guard sequencer.keepsHistory, version >= moment.floor else { throw StoreError.versionTooOld }
    return true
  }
}
