// The cache file: opens, renames and closes the SQLite file of one database.
//
// The file is in WAL mode under an exclusive lock. A commit is a write to the log without a sync, so that it survives
// the end of the process. `LogSync` syncs the log in the background, so that it survives a power cut soon after.
//
// Invariant: a process that has a file open is the only one, and only the file's owner can read it.

import Foundation
import GRDB

/// One open cache file.
final class CacheFile {
  let url: URL
  let queue: DatabaseQueue
  let sync: LogSync

  private init(url: URL, queue: DatabaseQueue) {
    self.url = url
    self.queue = queue
    sync = LogSync(log: URL(fileURLWithPath: url.path + "-wal"))
  }

  /// Opens a file, or creates it with its folder.
  ///
  /// - Throws: `CacheFailure`.
  static func open(_ url: URL, migrations: [CacheSchema.Migration] = CacheSchema.migrations) throws
    -> CacheFile
  {
    do {
      try create(url)
      var configuration = Configuration()
      configuration.label = "com.google.firebase.database.cache"
      configuration.allowsUnsafeTransactions = true
      configuration.foreignKeysEnabled = false
      configuration.journalMode = .wal
      configuration.prepareDatabase { db in
        try db.execute(sql: "PRAGMA locking_mode = EXCLUSIVE")
        try db.execute(sql: "PRAGMA auto_vacuum = INCREMENTAL")
      }
      let queue = try DatabaseQueue(path: url.path, configuration: configuration)
      do {
        try queue.inDatabase { db in
          // Takes the lock now, so that a second process fails here.
          try db.inTransaction(.exclusive) { .commit }
          try CacheSchema.prepare(db, migrations: migrations)
        }
      } catch {
        try? queue.close()
        throw error
      }
      return CacheFile(url: url, queue: queue)
    } catch {
      throw CacheFailure(error)
    }
  }

  private static func create(_ url: URL) throws {
    try FileManager.default.createDirectory(
      at: url.deletingLastPathComponent(), withIntermediateDirectories: true,
      attributes: [.posixPermissions: 0o700])
    guard !FileManager.default.fileExists(atPath: url.path) else { return }
    // SQLite gives the log the permissions of the file.
    guard
      FileManager.default.createFile(
        atPath: url.path, contents: nil, attributes: [.posixPermissions: 0o600])
    else { throw CacheFailure.unusable("it cannot be created") }
  }

  /// Renames a damaged file with its log, and replaces an earlier damaged file.
  ///
  /// - Returns: the new name; nil if the file could not be renamed, and was removed instead.
  static func quarantine(_ url: URL) -> URL? {
    let manager = FileManager.default
    let target = URL(fileURLWithPath: url.path + ".damaged")
    for suffix in ["", "-wal", "-shm"] {
      try? manager.removeItem(atPath: target.path + suffix)
      if (try? manager.moveItem(atPath: url.path + suffix, toPath: target.path + suffix)) == nil {
        try? manager.removeItem(atPath: url.path + suffix)
      }
    }
    return manager.fileExists(atPath: target.path) ? target : nil
  }

  func close() {
    sync.close()
    try? queue.close()
  }
}
