// The choice of the cache in the settings, and the function that opens the cache.

import FirestoreModel
import Foundation

/// The location of a client's cache: in memory or on disk.
enum CacheChoice: Sendable {
  /// In memory, with a maximum size in bytes. With nil, documents are removed as soon as nothing uses them.
  case memory(size: Int64?)
  /// In a folder, with a maximum size in bytes.
  case disk(URL, size: Int64)

  /// The maximum size in bytes for garbage collection; nil for eager collection.
  var size: Int64? {
    switch self {
    case .memory(let size): size
    case .disk(_, let size): size
    }
  }

  /// Opens the cache. If a cache on disk cannot be opened, the client uses a cache in memory, and the
  /// observer receives the failure.
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
