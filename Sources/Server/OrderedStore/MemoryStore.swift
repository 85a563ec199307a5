// The store that lives in memory and ends with the process: `--ephemeral`, tests, and the reference that other
// engines are compared with. It starts in well under a millisecond and keeps the whole contract but for durability.

/// A store in memory.
public final class MemoryStore: OrderedStore {
  private let store: EngineStore

  /// Makes an empty store.
  public convenience init(_ options: StoreOptions = StoreOptions()) throws {
    try self.init(MemoryEngine(), options)
  }

  /// Makes a store over what another left in memory, as a restart would find it.
  package init(_ engine: MemoryEngine, _ options: StoreOptions) throws {
    store = try EngineStore(engine, options)
  }

  /// Opens a database by its name in the catalogue, numbering it if it is new.
  public func database(named name: String, history: HistoryWindow) async throws -> any OrderedDatabase {
    try await store.database(named: name, history: history)
  }

  /// Whether the catalogue has a database of this name.
  public func databaseExists(named name: String) async throws -> Bool {
    try await store.databaseExists(named: name)
  }

  /// The names of all databases in the catalogue, in ascending order of their UTF-8 bytes.
  public func databaseNames() async throws -> [String] { try await store.databaseNames() }

  /// Removes every row, log record and version of a database.
  public func removeDatabase(named name: String) async throws { try await store.removeDatabase(named: name) }

  /// Finishes what is in flight and ends the store's threads. Later calls throw ``StoreError``.
  public func close() async throws { try await store.close() }

  /// Removes what lies below the history windows now; for tests and tools.
  package func trimNow() async throws { try await store.trimNow() }
}
