// The engine's front: one object for all databases of a store, one method for each operation of the API.
//
// Invariant: a method either does all it says, at one version, or throws a `FirestoreError` and changed nothing;
// only UNAVAILABLE leaves the outcome of a commit open.

public import FirestoreModel
import Locking
public import OrderedStore

/// Cloud Firestore over an ordered store.
public final class FirestoreEngine: Sendable {
  /// What can be set.
  public struct Options: Sendable {
    /// Whether a database that nobody created springs into being; else it is NOT_FOUND.
    public var createsDatabases: Bool
    /// How long a write waits for a lock before it fails ABORTED, in microseconds.
    public var lockWait: UInt64
    /// Idle Listen streams get a fresh token this often, in microseconds.
    public var heartbeat: UInt64
    /// Time for leases, waits and heartbeats.
    public var clock: any EngineClock
    /// Whether queries are refused that the hosted product would refuse for want of an index.
    public var requiresIndexes = false
    /// The product's limits, or higher ones.
    public var limits = EngineLimits.standard
    /// Bytes of results that all queries together may hold to sort them: a gibibyte. `HearthServer` gives them an eighth
    /// of the machine's memory.
    public var sortMemory = 1 << 30
    /// Called with what an operator wants to know: how far indexes are. From any thread; must be quick.
    public var report: @Sendable (String) -> Void = { _ in }
    /// What a slow Listen stream may hold.
    var watchBudget = WatchBudget()
    /// Rows that a query goes over in one read.
    var scanRows = EngineLimits.scanRows
    /// Bytes of results that one query may hold to sort them.
    var sortBytes = EngineLimits.sortBytes
    /// Bytes of documents that one commit may go over.
    var commitWork = EngineLimits.commitWork

    /// Makes options: two seconds of lock wait, a heartbeat every 37 seconds.
    public init(
      createsDatabases: Bool, lockWait: UInt64 = 2_000_000, heartbeat: UInt64 = 37_000_000,
      clock: any EngineClock = SystemClock()
    ) {
      self.createsDatabases = createsDatabases
      self.lockWait = lockWait
      self.heartbeat = heartbeat
      self.clock = clock
    }
  }

  private struct State {
    var databases: [DatabaseName: Task<FirestoreDatabase, any Error>] = [:]
    /// Those of them that are open.
    var opened: [DatabaseName: FirestoreDatabase] = [:]
    /// The indexes that databases should have, by the databases' ids.
    var indexes: [String: IndexConfiguration] = [:]
    var isShutDown = false
  }

  let options: Options
  /// The limits that it keeps.
  public var limits: EngineLimits { options.limits }
  private let store: any OrderedStore
  private let policy: any AccessPolicy
  let sorting: SortMemory
  private let state = Guarded(State())

  /// Makes an engine over an open store, which stays the caller's to close.
  public init(store: any OrderedStore, policy: any AccessPolicy, options: Options) {
    self.store = store
    self.policy = policy
    self.options = options
    sorting = SortMemory(limit: options.sortMemory)
  }

  /// Creates a database; nothing happens if it exists.
  /// - Throws: UNAVAILABLE if the store cannot write.
  public func createDatabase(_ name: DatabaseName) async throws(FirestoreError) {
    _ = try await reporting { try await self.open(name, creating: true) }
  }

  /// The names of all databases that exist.
  public func databaseNames() async throws(FirestoreError) -> [DatabaseName] {
    try await reporting {
      try await self.store.databaseNames().compactMap { name in
        guard name.hasPrefix(FirestoreDatabase.catalogue) else { return nil }
        return try? DatabaseName(parsing: String(name.dropFirst(FirestoreDatabase.catalogue.count)))
      }
    }
  }

  /// Ends all Listen streams with UNAVAILABLE and refuses what comes later. The store stays open.
  public func shutDown() async {
    let databases = state.withLock { state in
      state.isShutDown = true
      return Array(state.databases.values)
    }
    for database in databases {
      guard let database = try? await database.value else { continue }
      await database.indexes.stop()
      database.hub.close()
    }
  }

  /// Chooses which indexes the databases of an id have, in every project; those of other ids keep what they have.
  ///
  /// Returns once every open database knows. What is new is built in the background, while everything goes on; queries
  /// use it when it is whole. Databases that are opened later follow then.
  /// - Throws: INVALID_ARGUMENT for more indexes than a database may have, UNAVAILABLE if the store cannot write.
  public func setIndexes(
    _ configuration: IndexConfiguration, ofDatabase id: String
  ) async throws(FirestoreError) {
    try validate(configuration, ofDatabase: id)
    let opening = state.withLock { state in
      state.indexes[id] = configuration
      return state.databases.filter { $0.key.database == id }.map(\.value)
    }
    try await reporting {
      for task in opening {
        // One that cannot be opened is nobody's yet; when it is, it reads the new configuration.
        guard let database = try? await task.value else { continue }
        try await database.indexes.choose(configuration)
      }
    }
  }

  /// Checks what can be checked of a database's indexes before they are chosen.
  /// - Throws: INVALID_ARGUMENT for more indexes than a database may have.
  public func validate(
    _ configuration: IndexConfiguration, ofDatabase id: String
  ) throws(FirestoreError) {
    let count = configuration.compositeIndexes.count
    if count > limits.compositeIndexes {
      throw .invalidArgument(
        "The database \(id) would have \(count) composite indexes; at most \(limits.compositeIndexes) are "
          + "allowed.")
    }
    if configuration.overrides.count > limits.fieldOverrides {
      throw .invalidArgument(
        "The database \(id) would have \(configuration.overrides.count) field overrides; at most "
          + "\(limits.fieldOverrides) are allowed.")
    }
  }

  /// An open database.
  /// - Throws: NOT_FOUND if it does not exist and does not spring into being.
  func database(_ name: DatabaseName) async throws -> FirestoreDatabase {
    try await open(name, creating: options.createsDatabases)
  }

  /// A database that is open already; nil for others, and once the engine shuts down.
  func openDatabase(_ name: DatabaseName) -> FirestoreDatabase? {
    state.withLock { $0.isShutDown ? nil : $0.opened[name] }
  }

  private func open(_ name: DatabaseName, creating: Bool) async throws -> FirestoreDatabase {
    if let database = openDatabase(name) { return database }
    let opening = try state.withLock { state in
      if state.isShutDown { throw FirestoreError.unavailable("The server is shutting down.") }
      if let opening = state.databases[name] { return opening }
      let opening = Task { try await self.openRows(name, creating: creating) }
      state.databases[name] = opening
      return opening
    }
    do { return try await opening.value } catch {
      // Another try may succeed: the database may be created, the store may write again.
      state.withLock { state in if state.databases[name] == opening { state.databases[name] = nil } }
      throw error
    }
  }

  private func openRows(_ name: DatabaseName, creating: Bool) async throws -> FirestoreDatabase {
    let catalogueName = FirestoreDatabase.catalogueName(name)
    if !creating, try await !store.databaseExists(named: catalogueName) {
      throw FirestoreError.notFound(
        "The database \(name.database) does not exist for project \(name.project). Please create it first.")
    }
    let rows = try await store.database(
      named: catalogueName, history: .seconds(limits.historySeconds))
    let database = FirestoreDatabase(
      name: name, rows: rows, policy: policy, options: options, sorting: sorting)
    try await database.indexes.load()
    if let indexes = state.withLock({ $0.indexes[name.database] }) {
      try await database.indexes.choose(indexes)
    }
    state.withLock { $0.opened[name] = database }
    return database
  }
}
