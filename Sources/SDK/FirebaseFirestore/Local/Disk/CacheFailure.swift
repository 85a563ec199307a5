// A failure of the complete cache on disk. It is logged, and the app receives it.
//
// A `PersistenceFailure` is the failure of one operation.

import Foundation

/// A failure of the cache on disk.
enum CacheFailure: Sendable {
  /// Another process uses the cache.
  case inUse(CacheFolderError)
  /// The file cannot be opened.
  case unusable(String)
  /// The file was damaged, and was moved to `url`.
  case damaged(reason: String, url: URL)
  /// The file could not be synced to the disk.
  case unsynced(FailedSync)

  /// A failure to open the cache.
  init(opening error: any Error) {
    if let error = error as? CacheFolderError, case .inUse = error {
      self = .inUse(error)
    } else {
      self = .unusable("\(error)")
    }
  }

  private static let inMemory =
    "This instance keeps its cache in memory: its documents and the writes that the server has not acknowledged are lost"
    + " when the program ends."

  private var text: String {
    switch self {
    case .inUse(let error): "The cache on disk cannot be opened: \(error). \(CacheFailure.inMemory)"
    case .unusable(let reason): "The cache on disk cannot be opened: \(reason). \(CacheFailure.inMemory)"
    case .damaged(let reason, let url):
      "The cache is damaged (\(reason)). It was moved to \(url.path), and an empty cache replaces it. Cached"
        + " documents are read again; writes that were not acknowledged are lost."
    case .unsynced(let failure):
      "The cache could not be synced to the disk (\(failure)). It is copied to a new file. Until that succeeds, a power cut"
        + " loses the writes that were not acknowledged."
    }
  }

  /// The failure's code in the log.
  private var logCode: String {
    switch self {
    case .inUse, .unusable: "I-FST000008"
    case .damaged: "I-FST000009"
    case .unsynced: "I-FST000010"
    }
  }

  /// Writes the failure to the log.
  func log() { FirestoreLog.error(logCode, text) }

  /// The error that the app receives.
  var error: NSError {
    let code: FirestorePersistenceErrorCode =
      switch self {
      case .damaged: .damaged
      case .inUse: .inUse
      case .unusable: .unusable
      case .unsynced: .unsynced
      }
    return NSError(
      domain: FirestorePersistenceErrorDomain, code: code.rawValue,
      userInfo: [NSLocalizedDescriptionKey: text])
  }
}

/// Receives the events of a cache on disk.
struct CacheObserver: Sendable {
  /// Called with each failure, on the client's queue.
  var failed: @Sendable (CacheFailure) -> Void = { $0.log() }
  /// Called on any thread when a sync has failed and the cache must be copied to a new file.
  var syncFailed: @Sendable () -> Void = {}
}
