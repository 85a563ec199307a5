// The storage of a client between runs: the contract, and the storage of a client without persistence.

import RealtimeModel

/// Stores pending writes, the server's data and the tracked queries of one database.
///
/// Called on the core's queue alone. Calls since the last `commit` are stored together or not at all. No call fails:
/// a storage that cannot store reports that to the app and continues without effect.
protocol ClientStorage: AnyObject {
  /// Opens the storage.
  ///
  /// - Returns: the pending writes of earlier runs, in their order.
  func restore() -> [OutgoingWrite]

  /// Makes the calls since the last commit permanent.
  func commit()

  /// Handles a failed sync, or stores again after a failure, when the delay has passed that the storage requested.
  func retry()

  /// Commits and closes the storage. Later calls have no effect.
  func close()

  // MARK: Pending writes

  /// A write was made and will be sent.
  func append(_ write: OutgoingWrite)

  /// A write was answered.
  func remove(_ id: Int)

  /// All pending writes were cancelled.
  func removeAllWrites()

  // MARK: Queries

  /// The stored data of a query. If it is incomplete, the node has the children that are known completely.
  func load(_ query: QuerySpec, at path: Path) -> CacheNode

  /// A query is observed or kept synchronized from now on.
  func activate(_ query: QuerySpec, at path: Path)

  /// Nothing observes a query any more.
  func deactivate(_ query: QuerySpec, at path: Path)

  /// The server has sent all data of a query.
  func complete(_ query: QuerySpec, at path: Path)

  /// The window of a filtered query has exactly these children.
  func setWindow(_ keys: [ChildKey], of query: QuerySpec, at path: Path)

  /// Children entered and left the window of a filtered query.
  func updateWindow(adding: [ChildKey], removing: [ChildKey], of query: QuerySpec, at path: Path)

  // MARK: Data of the server

  /// The server sent the data of a query.
  ///
  /// - Parameter known: the server's complete value at the path until now, if known; only differences are written then.
  func store(_ node: Node, at path: Path, query: QuerySpec, replacing known: Node?)

  /// The server sent values at several paths.
  func merge(_ changes: [(Path, Node)], at path: Path)

  /// Stores data of a query without observers: the result of a read, or a write that the server accepted.
  func storeUnobserved(_ node: Node, at path: Path, query: QuerySpec)
}

/// The data that a storage must have, to fill a new file after a failure.
struct StorageContents {
  var writes: [OutgoingWrite] = []
  var queries: [(path: Path, query: QuerySpec, server: CacheNode)] = []
}

/// Provides the data that a storage must have.
protocol StorageSource: AnyObject, Sendable {
  var storageContents: StorageContents { get }

  /// Calls the storage's `retry` after a delay in milliseconds, once the current step has ended. Any thread may call it.
  func retryStorage(after delay: Int64)
}

/// Stores nothing: the cache and the pending writes end with the program.
final class MemoryStorage: ClientStorage {
  func restore() -> [OutgoingWrite] { [] }
  func commit() {}
  func retry() {}
  func close() {}
  func append(_ write: OutgoingWrite) {}
  func remove(_ id: Int) {}
  func removeAllWrites() {}
  func load(_ query: QuerySpec, at path: Path) -> CacheNode { .nothing }
  func activate(_ query: QuerySpec, at path: Path) {}
  func deactivate(_ query: QuerySpec, at path: Path) {}
  func complete(_ query: QuerySpec, at path: Path) {}
  func setWindow(_ keys: [ChildKey], of query: QuerySpec, at path: Path) {}
  func updateWindow(adding: [ChildKey], removing: [ChildKey], of query: QuerySpec, at path: Path) {}
  func store(_ node: Node, at path: Path, query: QuerySpec, replacing known: Node?) {}
  func merge(_ changes: [(Path, Node)], at path: Path) {}
  func storeUnobserved(_ node: Node, at path: Path, query: QuerySpec) {}
}
