// The cache that the settings choose, and how it is opened.

import FirestoreModel
import Foundation

/// Where a client keeps its cache.
enum CacheChoice: Sendable {
  /// In memory, within a size in bytes; nil removes documents as soon as nothing refers to them.
  case memory(size: Int64?)
  /// In a folder, within a size in bytes.
  case disk(URL, size: Int64)

  /// The size in bytes that garbage collection keeps to; nil for eager collection.
  var size: Int64? {
    switch self {
    case .memory(let size): size
    case .disk(_, let size): size
    }
  }

  /// Opens the cache. A cache on disk that cannot be opened is replaced by one in memory, and the observer receives the
  /// failure.
  func open(_ database: DatabaseName, observer: CacheObserver) -> any Persistence {
    guard case .disk(let url, _) = self else { return MemoryPersistence(isEager: size == nil) }
    do {
      return try DiskPersistence(try CacheFolder(url), database: database, observer: observer)
    } catch {
      observer.failed(CacheFailure(opening: error))
      return MemoryPersistence(isEager: false)
    }
  }
}
