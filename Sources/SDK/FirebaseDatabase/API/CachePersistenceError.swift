// The codes of the errors of the cache on disk. The app receives them through
// ``Database/persistenceErrorHandler``.

/// The domain of the errors of the cache on disk. The codes are those of ``CachePersistenceError``.
public let DatabasePersistenceErrorDomain = "com.firebase.database.persistence"

/// The code of an error of the cache on disk.
public enum CachePersistenceError: Int, Sendable {
  /// The file was damaged, was not a cache, or had an unknown version. The client renames it and creates a
  /// new file with the pending writes that it could read. The description reports whether pending writes are
  /// lost.
  case damaged = 1
  /// Another process uses the file. This process keeps everything in memory.
  case inUse = 2
  /// The file cannot be opened, read or written. This process keeps everything in memory.
  case unusable = 3
  /// The file could not be synced to the disk. The client writes the pending writes and the observed data to a new file,
  /// with growing delays until it succeeds. Until then it keeps them in memory, and a power cut loses them.
  case unsynced = 4
}
