// The failures of the cache on disk, and the errors that the app receives for them.

import Foundation
import GRDB

/// A failure of the cache file.
enum CacheFailure: Error, Equatable {
  /// The file is damaged, is not a cache, or has an unknown version.
  case damaged(String)
  /// Another process or another database object uses the file.
  case inUse
  /// The file cannot be opened, read or written.
  case unusable(String)
  /// The open file could not be synced, so a power cut may lose what was written to it.
  case unsynced(String)

  /// Classifies an error of SQLite or of the file system.
  init(_ error: any Error) {
    switch error {
    case let failure as CacheFailure: self = failure
    case let error as GRDB.DatabaseError
    where [ResultCode.SQLITE_IOERR_FSYNC, .SQLITE_IOERR_DIR_FSYNC].contains(error.extendedResultCode):
      self = .unsynced("\(error.extendedResultCode): \(error.message ?? "")")
    case let error as GRDB.DatabaseError
    where [ResultCode.SQLITE_IOERR_READ, .SQLITE_IOERR_SHORT_READ].contains(error.extendedResultCode):
      // The disk has an unreadable sector. Another attempt would fail as well.
      self = .damaged("\(error.extendedResultCode): \(error.message ?? "")")
    case let error as GRDB.DatabaseError:
      switch error.resultCode.primaryResultCode {
      case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_SCHEMA, .SQLITE_MISMATCH, .SQLITE_CONSTRAINT,
        .SQLITE_ERROR:
        self = .damaged("\(error.resultCode): \(error.message ?? "")")
      case .SQLITE_BUSY, .SQLITE_LOCKED: self = .inUse
      default: self = .unusable("\(error.resultCode): \(error.message ?? "")")
      }
    default: self = .unusable("\(error)")
    }
  }

  /// The error for the app.
  func asNSError(file: URL) -> NSError {
    let (code, text): (CachePersistenceError, String) =
      switch self {
      case .damaged(let reason):
        (
          .damaged,
          "The cache \(file.path) was damaged (\(reason)). It is renamed to \(CacheFile.quarantined(file).path). A new file "
            + "has the pending writes that could be read."
        )
      case .inUse:
        (
          .inUse,
          "The cache \(file.path) is in use by another process. This process keeps its cache and its pending writes in "
            + "memory only."
        )
      case .unusable(let reason):
        (
          .unusable,
          "The cache \(file.path) cannot be used (\(reason)). This process keeps its cache and its pending writes in "
            + "memory only."
        )
      case .unsynced(let reason):
        (
          .unsynced,
          "The cache \(file.path) could not be synced to the disk (\(reason)). The pending writes and the observed data are "
            + "written to a new file. Until that succeeds, this process keeps them in memory only."
        )
      }
    return NSError(
      domain: DatabasePersistenceErrorDomain, code: code.rawValue, userInfo: [NSLocalizedDescriptionKey: text]
    )
  }
}
