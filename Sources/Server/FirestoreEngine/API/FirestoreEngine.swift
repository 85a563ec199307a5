// The Firestore engine. One object serves all databases of a store. It has a method for each operation of
// Firestore's API.
//
// Invariant: a method takes effect completely at one version, or throws a `FirestoreError` and changes
// nothing. The exception is UNAVAILABLE, after which the outcome of a commit is unknown.

package import Access
public import FirestoreModel
import Locking
package import OrderedStore

/// Implements Cloud Firestore's operations on an ordered key-value store.
public final class FirestoreEngine: Sendable {
  /// Settings of the engine.
  public struct Options: Sendable {
    /// Whether the first commit of a missing database creates the database, which is empty until then. If
    /// false, requests for a missing database fail with NOT_FOUND.
    public var createsDatabases: Bool
    /// How long a commit waits for locks of transactions before it fails with ABORTED, in microseconds.
    public var lockWait: UInt64
    /// How often an idle Listen stream gets a fresh resume token, in microseconds.
    public var heartbeatInterval: UInt64
    /// The clock for the timeouts of transactions and locks, and for the heartbeats of Listen streams.
    public var clock: any EngineClock
    /// Whether queries without the indexes that Firebase requires are rejected.
    public var requiresIndexes = false
    /// The limits that the engine enforces. Firebase's limits by default; a server may raise them.
    public var limits = EngineLimits.standard
    /// Maximum bytes of results that all queries together may hold for sorting: 1 GiB. `HearthServer` sets an
    /// eighth of the machine's memory.
    public var sortMemory = 1 << 30
    /// Receives messages for the operator, such as the progress of index builds. Called from any thread; it
    /// must be quick.
    public var report: @Sendable (String) -> Void = { _ in }
    /// Receives the reason of every denied operation, for the operator. Called from any thread; it must be quick. Nil to
    /// receive none.
    package var reportDenial: (@Sendable (DatabaseName, FirestoreDecision.Denial) -> Void)?
    /// Returns the observer of a database's access decisions. Nil for none.
    package var observer: (@Sendable (DatabaseName) -> (any DecisionObserver<FirestoreAccess>)?)?
    /// Compiles a database's stored rules. If nil, a database with stored rules denies every request of users.
    package var compileRules: (@Sendable (String) throws -> any AccessPolicy<FirestoreAccess>)?
    /// Memory limits of a slow Listen stream.
    var watchBufferLimits = WatchBufferLimits()
    /// Maximum rows that a query scans in one read.
    var maximumScanRows = EngineLimits.maximumScanRows
    /// Maximum bytes of results that one query may hold for sorting.
    var maximumSortBytes = EngineLimits.maximumSortBytes
    /// Maximum cost of one commit, in bytes of documents.
    var maximumCommitCost = EngineLimits.maximumCommitCost

    /// Makes options: a lock timeout of 2 seconds and a heartbeat every 37 seconds.
    public init(
      createsDatabases: Bool, lockWait: UInt64 = 2_000_000, heartbeatInterval: UInt64 = 37_000_000,
      clock: any EngineClock = SystemClock()
    ) {
      self.createsDatabases = createsDatabases
      self.lockWait = lockWait
      self.heartbeatInterval = heartbeatInterval
      self.clock = clock
    }
  }

  struct State {
    /// The databases that are being opened.
    var opening: [DatabaseName: Task<FirestoreDatabase, any Error>] = [:]
    /// The databases whose opening has completed.
    var opened = OpenDatabases()
    /// The configured indexes, by database id.
    var indexes: [String: DatabaseIndexConfiguration] = [:]
    var isShutDown = false
  }

  let options: Options
  /// The limits that the engine enforces.
  public var limits: EngineLimits { options.limits }
  private let store: any OrderedStore
  /// The access policies of all databases. A published policy is in force immediately.
  package let policies: PolicyDirectory<FirestoreAccess>
  /// The open streams of callers with credentials.
  package let callerStreams: CallerStreams
  let sortMemory: SortMemoryBudget
  let state = Guarded(State())
  /// The changes of rules in this process.
  let rules = Guarded(RulesDirectory())

  /// Makes an engine over an open store. The caller closes the store.
  /// - Parameter policy: the access policy of databases without a dedicated one.
  package init(store: any OrderedStore, policy: any AccessPolicy<FirestoreAccess>, options: Options) {
    self.store = store
    policies = PolicyDirectory(default: policy, observer: options.observer)
    self.options = options
    callerStreams = CallerStreams(clock: options.clock)
    sortMemory = SortMemoryBudget(limit: options.sortMemory)
  }

  /// Creates a database. Does nothing if it exists.
  /// - Throws: UNAVAILABLE if the store cannot write.
  public func createDatabase(_ name: DatabaseName) async throws(FirestoreError) {
    try await convertingErrors { try await self.create(try await self.open(name, creating: true)) }
  }

  /// The names of all existing databases.
  public func databaseNames() async throws(FirestoreError) -> [DatabaseName] {
    try await convertingErrors {
      try await self.store.databaseNames().compactMap { name in
        guard name.hasPrefix(FirestoreDatabase.cataloguePrefix) else { return nil }
        return try? DatabaseName(parsing: String(name.dropFirst(FirestoreDatabase.cataloguePrefix.count)))
      }
    }
  }

  /// Ends all Listen streams with UNAVAILABLE and rejects later requests. The store stays open.
  public func shutDown() async {
    let databases = state.withLock { state in
      state.isShutDown = true
      return state.databases()
    }
    for database in databases {
      guard let database = await database.value else { continue }
      await database.indexes.stop()
      database.hub.close()
    }
  }

  /// Sets the indexes of the databases with an id, in every project. Databases with other ids keep their
  /// indexes.
  ///
  /// Returns once every open database has stored the configuration. New indexes are built in the background
  /// and serve queries when they are complete. A database that is opened later adopts the configuration when
  /// it is opened.
  /// - Throws: INVALID_ARGUMENT for too many indexes, UNAVAILABLE if the store cannot write.
  public func setIndexes(
    _ configuration: DatabaseIndexConfiguration, ofDatabase id: String
  ) async throws(FirestoreError) {
    try validate(configuration, ofDatabase: id)
    let opening = state.withLock { state in
      state.indexes[id] = configuration
      return state.databases { $0.database == id }
    }
    try await convertingErrors {
      for task in opening {
        // If a database fails to open here, it adopts the new configuration when it is opened later.
        guard let database = await task.value else { continue }
        try await database.indexes.setConfiguration(configuration)
      }
    }
  }

  /// Validates an index configuration before it is set.
  /// - Throws: INVALID_ARGUMENT for more indexes than a database may have.
  public func validate(
    _ configuration: DatabaseIndexConfiguration, ofDatabase id: String
  ) throws(FirestoreError) {
    let count = configuration.compositeIndexes.count
    if count > limits.maximumCompositeIndexes {
      throw .invalidArgument(
        "The database \(id) would have \(count) composite indexes; at most \(limits.maximumCompositeIndexes) are "
          + "allowed.")
    }
    if configuration.overrides.count > limits.maximumFieldOverrides {
      throw .invalidArgument(
        "The database \(id) would have \(configuration.overrides.count) field overrides; at most "
          + "\(limits.maximumFieldOverrides) are allowed.")
    }
  }

  /// Opens a database, or returns the open one.
  /// - Throws: NOT_FOUND if it does not exist and is not created automatically.
  func database(_ name: DatabaseName) async throws -> FirestoreDatabase {
    try await open(name, creating: options.createsDatabases)
  }

  /// The database if it is open already. Nil if it is not, or if shutdown has begun.
  func openDatabase(_ name: DatabaseName) -> FirestoreDatabase? {
    state.withLock { $0.isShutDown ? nil : $0.opened[name] }
  }

  /// The databases that are open.
  var openDatabases: [FirestoreDatabase] { state.withLock { Array($0.opened.all) } }

  private func open(_ name: DatabaseName, creating: Bool) async throws -> FirestoreDatabase {
    if let database = openDatabase(name) { return database }
    let opening = try state.withLock { state -> Task<FirestoreDatabase, any Error> in
      if state.isShutDown { throw FirestoreError.unavailable("The server is shutting down.") }
      if let database = state.opened[name] { return Task { database } }
      if let opening = state.opening[name] { return opening }
      let opening = Task { try await self.openRows(name, creating: creating) }
      state.opening[name] = opening
      return opening
    }
    do { return try await opening.value } catch {
      // The failure is not cached, since a later attempt may succeed: the database may have been created, or
      // the store may be able to write again.
      state.withLock { state in if state.opening[name] == opening { state.opening[name] = nil } }
      throw error
    }
  }

  private func openRows(_ name: DatabaseName, creating: Bool) async throws -> FirestoreDatabase {
    let catalogueName = FirestoreDatabase.catalogueName(name)
    let exists = try await store.databaseExists(named: catalogueName)
    if !creating, !exists {
      throw FirestoreError.notFound(
        "The database \(name.database) does not exist for project \(name.project). Please create it first.")
    }
    let history = HistoryWindow.seconds(limits.historySeconds)
    let rows =
      exists
      ? try await store.database(named: catalogueName, history: history)
      : try await store.provisionalDatabase(named: catalogueName, history: history)
    let database = FirestoreDatabase(
      name: name, rows: rows, exists: exists, policies: policies.slot(of: name),
      signer: exists ? try await TokenSigner.load(rows) : TokenSigner(), rules: self.rules,
      options: options, callerStreams: callerStreams, sortMemory: sortMemory)
    rows.setFirstRows { [weak firstRows = database.firstRows] in try firstRows?.write(to: $0) }
    try await adoptRules(in: database)
    try await database.indexes.load()
    if let indexes = state.withLock({ $0.indexes[name.database] }) {
      try await database.indexes.setConfiguration(indexes)
    }
    let released = state.withLock { state in
      state.opening[name] = nil
      return state.opened.add(database)
    }
    // No request uses these databases. They are released here, outside the lock.
    for database in released { policies.forget(database.name) }
    return database
  }
}
