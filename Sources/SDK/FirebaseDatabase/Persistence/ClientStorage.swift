// The storage of a client between runs: the protocol, and its implementation for a client without
// persistence. The core, which calls it, is the client's `Repository`.

import RealtimeModel

/// Stores pending writes, the server's data and the tracked queries of one database.
///
/// Called only on the core's queue. All calls since the last `commit` are stored atomically. No call throws:
/// a storage that cannot store reports the failure to the app and continues without storing.
protocol ClientStorage: AnyObject {
  /// Opens the storage.
  ///
  /// - Returns: the pending writes of earlier runs, in their order.
  func restore() -> [OutgoingWrite]

  /// Makes the calls since the last commit permanent.
  func commit()

  /// Handles a failed sync, or stores again after a failure. It is called after the delay that the storage
  /// requested.
  func retry()

  /// Commits and closes the storage. Later calls have no effect.
  func close()

  // MARK: Pending writes

  /// Stores a write that will be sent.
  func append(_ write: OutgoingWrite)

  /// Removes a write to which the server has responded.
  func remove(_ id: Int)

  /// Removes all pending writes, because they were cancelled.
  func removeAllWrites()

  // MARK: Queries

  /// The stored data of a query. If the data is incomplete, the node contains only the children that are
  /// known completely.
  func load(_ query: QuerySpec, at path: Path) -> CacheNode

  /// Records that a query is observed or kept synchronized from now on.
  func activate(_ query: QuerySpec, at path: Path)

  /// Records that no observer uses a query any more.
  func deactivate(_ query: QuerySpec, at path: Path)

  /// Records that the server has sent all data of a query.
  func complete(_ query: QuerySpec, at path: Path)

  /// Replaces the stored window of a filtered query by these children.
  func setWindow(_ keys: [ChildKey], of query: QuerySpec, at path: Path)

  /// Adds and removes children of the stored window of a filtered query.
  func updateWindow(adding: [ChildKey], removing: [ChildKey], of query: QuerySpec, at path: Path)

  // MARK: Data of the server

  /// Stores data of a query that the server sent.
  ///
  /// - Parameter previous: the server's complete previous value at the path, if the core has it. If it is
  ///   given, only differences are written.
  func store(_ node: Node, at path: Path, query: QuerySpec, replacing previous: Node?)

  /// Stores values that the server sent for several paths.
  func merge(_ changes: [(Path, Node)], at path: Path)

  /// Stores data of a query without observers: the result of a read, or a write that the server accepted.
  func storeUnobserved(_ node: Node, at path: Path, query: QuerySpec)
}

/// The data that a storage writes to a new file after a failure.
struct StorageContents {
  var writes: [OutgoingWrite] = []
  var queries: [(path: Path, query: QuerySpec, server: CacheNode)] = []
}

/// Provides the core's current data to a storage that must write it again.
protocol StorageSource: AnyObject, Sendable {
  var storageContents: StorageContents { get }

  /// Calls the storage's `retry` after a delay in milliseconds, when the current step has ended. It may be
  /// called on any thread.
  func retryStorage(after delay: Int64)
}

/// Stores nothing. The cache and the pending writes end with the program.
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
  func store(_ node: Node, at path: Path, query: QuerySpec, replacing previous: Node?) {}
  func merge(_ changes: [(Path, Node)], at path: Path) {}
  func storeUnobserved(_ node: Node, at path: Path, query: QuerySpec) {}
}
