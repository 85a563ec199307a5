// The storage of a client between runs. Only the contract and the storage that keeps nothing exist
// so far; the core already calls it where a durable one must be called.

import FirebaseCore

/// Where pending writes survive the end of the program.
///
/// Called on the core's queue alone, in the order in which writes are made and answered.
protocol ClientStorage: Sendable {
  /// A write was made and will be sent.
  func append(_ write: OutgoingWrite)

  /// A write was answered.
  func remove(_ id: Int)

  /// All pending writes were given up.
  func removeAll()
}

/// Keeps nothing: a database's cache and pending writes end with the program.
struct MemoryStorage: ClientStorage {
  func append(_ write: OutgoingWrite) {}
  func remove(_ id: Int) {}
  func removeAll() {}

  /// Says that a size was set for a cache on disk that does not exist.
  static func warnThatNoSizeIsKept() {
    FirebaseLogger.log(
      .warning, service: "Database",
      "persistenceCacheSizeBytes is set, but this version keeps the cache in memory only: the size limits nothing"
    )
  }

  /// Says that an app which asked for persistence does not get it.
  static func warnThatNothingIsKept() {
    FirebaseLogger.log(
      .warning, service: "Database",
      "isPersistenceEnabled is set, but this version keeps the cache and pending writes in memory only: "
        + "they do not survive the end of the program")
  }
}
