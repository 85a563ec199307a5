// The errors of the cache on disk. The app receives them through ``Firestore/persistenceErrorHandler``.

import Foundation
import Locking

/// The domain of the errors of the cache on disk. The codes are those of ``FirestorePersistenceErrorCode``.
public let FirestorePersistenceErrorDomain = "com.firebase.firestore.persistence"

/// The code of an error of the cache on disk.
public enum FirestorePersistenceErrorCode: Int, Sendable {
  /// The file was damaged, was not a cache, or had an unknown version. The SDK moved it to `damaged.sqlite`
  /// and created an empty cache. Writes that the server had not acknowledged are lost.
  case damaged = 1
  /// Another process uses the cache. This instance keeps its cache in memory.
  case inUse = 2
  /// The file cannot be opened. This instance keeps its cache in memory.
  case unusable = 3
  /// The file could not be synced to the disk. The SDK copies the cache with all its writes to a new file, with growing
  /// delays until it succeeds. Until then a power cut loses the writes that the server has not acknowledged.
  case unsynced = 4
}

extension Firestore {
  /// The last failure of the cache on disk, in ``FirestorePersistenceErrorDomain``; nil if there was none.
  public var persistenceError: (any Error)? { observedCache.withLock { $0.error } }

  /// Receives the failures of the cache on disk, on the queue of the settings.
  ///
  /// The errors are in ``FirestorePersistenceErrorDomain``, and their codes are those of
  /// ``FirestorePersistenceErrorCode``. The instance continues after each error. To receive errors that
  /// happen at the start, the app sets the handler before the first use of the instance. ``persistenceError``
  /// is the last error.
  ///
  /// ```swift
  /// db.persistenceErrorHandler = { error in
  ///   print("The cache failed:", error.localizedDescription)
  /// }
  /// ```
  public var persistenceErrorHandler: (@Sendable (any Error) -> Void)? {
    get { observedCache.withLock { $0.handler } }
    set { observedCache.withLock { $0.handler = newValue } }
  }

  /// The last failure of the cache, and the app's handler of failures.
  struct ObservedCache: Sendable {
    var error: NSError?
    var handler: (@Sendable (any Error) -> Void)?
  }

  /// Logs a failure and passes it to the app.
  func report(_ failure: CacheFailure, on queue: DispatchQueue) {
    failure.log()
    let error = failure.error
    let handler = observedCache.withLock { observed in
      observed.error = error
      return observed.handler
    }
    if let handler { queue.async { handler(error) } }
  }
}
