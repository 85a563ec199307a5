// The embedded store keeps its data on this machine's disk: an ``EngineStore`` on RocksDB. One process at a time opens a
// directory.

public import OrderedStore

/// A durable store in a directory.
///
/// ```swift
/// let store = try await EmbeddedStore.open(directory: "/var/lib/hearth")
/// let database = try await store.database(named: "realtime/app", history: .activeReadersOnly)
/// ```
public final class EmbeddedStore: OrderedStore {
  private let store: EngineStore

  private init(_ store: EngineStore) { self.store = store }

  /// Opens a directory, creates it if it does not exist, and replays the write-ahead log of the last process.
  ///
  /// - Throws: ``StoreError`` of code `locked` if another process has the directory open (the message has its ID),
  ///   `corrupted` if the data is damaged or of another format, `unavailable` with the system's reason.
  public static func open(
    directory: String, _ options: EmbeddedOptions = EmbeddedOptions()
  ) async throws -> EmbeddedStore {
    try await withCheckedThrowingContinuation { continuation in
      _ = DedicatedThread {
        continuation.resume(
          with: Result {
            let engine = try RocksEngine(DataDirectory(directory), options)
            return EmbeddedStore(try EngineStore(engine, options.store, readers: options.readerThreads))
          })
      }
    }
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

  /// Removes every row, log record and version of a database from the catalogue and the disk.
  public func removeDatabase(named name: String) async throws { try await store.removeDatabase(named: name) }

  /// Makes every call in flight durable and releases the directory.
  public func close() async throws { try await store.close() }

  /// Deletes the rows below the history windows now. For tests and tools.
  package func trimNow() async throws { try await store.trimNow() }
}
