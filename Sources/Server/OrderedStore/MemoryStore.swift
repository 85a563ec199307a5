// The memory store keeps its data in memory, until the process ends. It implements the complete store
// contract except durability, and starts in less than a millisecond. The option `--ephemeral` and tests use
// it.

/// A store in memory.
public final class MemoryStore: OrderedStore {
  private let store: EngineStore

  /// Makes an empty store.
  public convenience init(_ options: StoreOptions = StoreOptions()) throws {
    try self.init(MemoryEngine(), options)
  }

  /// Makes a store over the contents of an earlier store, to simulate a restart.
  package init(_ engine: MemoryEngine, _ options: StoreOptions) throws {
    store = try EngineStore(engine, options)
  }

  /// Opens a database by its name in the catalogue. A new database gets the next number.
  public func database(named name: String, history: HistoryWindow) async throws -> any OrderedDatabase {
    try await store.database(named: name, history: history)
  }

  /// Opens a database by its name. A missing database is empty until its first commit creates it.
  public func provisionalDatabase(
    named name: String, history: HistoryWindow
  ) async throws -> any OrderedDatabase {
    try await store.provisionalDatabase(named: name, history: history)
  }

  /// Whether the catalogue contains a database of this name.
  public func databaseExists(named name: String) async throws -> Bool {
    try await store.databaseExists(named: name)
  }

  /// The names of all databases in the catalogue, in ascending order of their UTF-8 bytes.
  public func databaseNames() async throws -> [String] { try await store.databaseNames() }

  /// Removes every row, log record and version of a database.
  public func removeDatabase(named name: String) async throws { try await store.removeDatabase(named: name) }

  /// Completes every call in flight and ends the store's threads. Later calls throw ``StoreError``.
  public func close() async throws { try await store.close() }

  /// Deletes history that is older than the history windows now. For tests and tools.
  package func trimNow() async throws { try await store.trimNow() }
}
