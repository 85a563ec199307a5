// An engine over an in-memory store, with shorthands for common requests.

import Access
import FirestoreModel
import Locking
import OrderedStore
import Testing

@testable import FirestoreEngine

/// One engine with one database.
struct EngineFixture: Sendable {
  let engine: FirestoreEngine
  let store: any OrderedStore
  let clock: ManualClock
  let database = DatabaseName(project: "demo")

  init(
    store: (any OrderedStore)? = nil, policy: any AccessPolicy<FirestoreAccess> = OpenPolicy(),
    lockWait: UInt64 = 2_000_000, watchBufferLimits: WatchBufferLimits = WatchBufferLimits(),
    maximumScanRows: Int = EngineLimits.maximumScanRows, strict: Bool = false,
    limits: EngineLimits = .standard,
    maximumCommitCost: Int = EngineLimits.maximumCommitCost, sortMemory: Int = 1 << 30,
    maximumSortBytes: Int = EngineLimits.maximumSortBytes,
    observer: (any DecisionObserver<FirestoreAccess>)? = nil,
    report: @escaping @Sendable (String) -> Void = { _ in }
  ) throws {
    self.store = try store ?? MemoryStore()
    clock = ManualClock()
    var options = FirestoreEngine.Options(createsDatabases: true, lockWait: lockWait, clock: clock)
    options.watchBufferLimits = watchBufferLimits
    options.maximumScanRows = maximumScanRows
    options.maximumCommitCost = maximumCommitCost
    options.sortMemory = sortMemory
    options.maximumSortBytes = maximumSortBytes
    options.requiresIndexes = strict
    options.limits = limits
    if let observer { options.observer = { _ in observer } }
    options.report = report
    engine = FirestoreEngine(store: self.store, policy: policy, options: options)
  }

  /// Sets the index configuration and waits for the build; with `untilStable` also for the removal of old
  /// entries.
  func setIndexes(_ configuration: DatabaseIndexConfiguration, untilStable: Bool = false) async throws {
    let database = try await engine.database(self.database)
    let indexes = database.indexes
    try await engine.setIndexes(configuration, ofDatabase: self.database.database)
    try await eventually("the indexes are built") { indexes.current.state.phase != .building }
    // A read uses an index only when the commit that marks the index as ready is durable. That is later than the
    // sequencer's execution of the commit, which sets `readySince`.
    let since = indexes.current.state.composites.compactMap(\.readySince).max() ?? 0
    try await eventually("the ready state is durable") {
      database.rows.latestVersion >= Version(microseconds: since)
    }
    guard untilStable else { return }
    try await eventually("the old entries are removed") {
      clock.advance(by: EngineLimits.standard.transactionTimeout)
      return indexes.current.state.phase == .stable
    }
  }

  /// Returns the report of a consistency check.
  func check() async throws -> ConsistencyReport { try await ConsistencyCheck.run(database, in: store) }

  var root: ParentName { ParentName(rootOf: database) }

  func name(_ path: ResourcePath) throws -> DocumentName {
    try #require(DocumentName(database: database, path: path))
  }

  func collection(_ path: ResourcePath) throws -> CollectionName {
    try #require(CollectionName(database: database, path: path))
  }

  @discardableResult
  func commit(_ writes: [Write], transaction: [UInt8]? = nil) async throws -> CommitResponse {
    try await engine.commit(in: database, writes, transaction: transaction, as: .administrator)
  }

  @discardableResult
  func set(_ path: ResourcePath, _ fields: MapValue) async throws -> CommitResponse {
    try await commit([Write(.update(try name(path), fields: fields))])
  }

  @discardableResult
  func delete(_ path: ResourcePath) async throws -> CommitResponse {
    try await commit([Write(.delete(try name(path)))])
  }

  func get(_ path: ResourcePath, _ consistency: ReadConsistency = .latest) async throws -> MapValue? {
    do {
      return try await engine.getDocument(
        try name(path), consistency: consistency, as: .administrator
      ).document.fields()
    } catch let error as FirestoreError where error.code == .notFound { return nil }
  }

  func query(_ query: StructuredQuery, _ consistency: ReadConsistency = .latest) async throws
    -> [StoredDocument]
  {
    try await self.query(Query(parent: root, query), consistency)
  }

  func query(_ query: Query, _ consistency: ReadConsistency = .latest) async throws -> [StoredDocument] {
    let documents = Collected<StoredDocument>()
    try await engine.runQuery(query, consistency: consistency, as: .administrator) { page in
      documents.append(page.documents)
    }
    return documents.all
  }

  func watch(_ output: any WatchOutput, as caller: Principal = .administrator) async throws -> WatchStream {
    try await engine.watch(database, as: caller, output: output)
  }

  /// Returns the selection of a target for a query at the root.
  func selection(_ query: StructuredQuery) -> WatchTarget.Selection {
    .query(Query(parent: root, query))
  }

  func begin(_ options: TransactionOptions = .readWrite()) async throws -> [UInt8] {
    try await engine.beginTransaction(in: database, options, as: .administrator)
  }
}

/// A list that several tasks append to.
final class Collected<Element: Sendable>: Sendable {
  private let elements = Guarded<[Element]>([])

  func append(_ more: [Element]) { elements.withLock { $0 += more } }
  func append(_ one: Element) { elements.withLock { $0.append(one) } }
  var all: [Element] { elements.withLock { $0 } }
}

/// Polls a condition for at most one minute.
func eventually(
  _ what: String, _ location: SourceLocation = #_sourceLocation, _ condition: () async throws -> Bool
) async throws {
  let clock = SystemClock()
  let deadline = clock.now() + 60_000_000
  while clock.now() < deadline {
    if try await condition() { return }
    try await Task.sleep(nanoseconds: 1_000_000)
  }
  Issue.record("timed out waiting for: \(what)", sourceLocation: location)
}

/// Returns the thrown FirestoreError; nil if the body succeeds or throws another error.
func failure(_ body: () async throws -> some Any) async -> FirestoreError? {
  do {
    _ = try await body()
    return nil
  } catch { return error as? FirestoreError }
}
