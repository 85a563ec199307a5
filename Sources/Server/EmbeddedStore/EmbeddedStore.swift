// The store that keeps everything on this machine's disk: RocksDB under the machinery of OrderedStore. One process
// opens a directory at a time.

public import OrderedStore

/// A durable store in a directory.
///
/// ```swift
/// let store = try await EmbeddedStore.open(directory: "/var/lib/hearth")
/// let database = try await store.database(named: "realtime/app", history: .openReads)
/// ```
public final class EmbeddedStore: OrderedStore {
  private let store: EngineStore

  private init(_ store: EngineStore) { self.store = store }

  /// Opens a directory, creating it if need be, and replays what the last process had not sorted to disk yet.
  ///
  /// - Throws: ``StoreError`` of code `locked` if another process holds the directory (the message names it),
  ///   `corrupted` if what lies there is damaged or of another format, `unavailable` with the system's reason.
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

  /// Removes every row, log record and version of a database from the catalogue and the disk.
  public func removeDatabase(named name: String) async throws { try await store.removeDatabase(named: name) }

  /// Finishes what is in flight, makes it durable, and releases the directory.
  public func close() async throws { try await store.close() }

  /// Removes what lies below the history windows now; for tests and tools.
  package func trimNow() async throws { try await store.trimNow() }
}
