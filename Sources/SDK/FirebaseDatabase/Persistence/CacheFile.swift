// The cache file: opens, renames and closes the SQLite file of one database.
//
// The file is in WAL mode under an exclusive lock. A commit writes to the log without a sync, so it survives
// the end of the process. `LogSync` syncs the log in the background. After that sync the commit also survives
// a power cut.
//
// Invariant: only one process has a file open at a time, and only the file's owner can read it.

import Foundation
import GRDB
import GRDBSQLite

/// One open cache file.
final class CacheFile {
  let url: URL
  let queue: DatabaseQueue
  let sync: LogSync

  private init(url: URL, queue: DatabaseQueue, sync: LogSync) {
    self.url = url
    self.queue = queue
    self.sync = sync
  }

  /// Opens a file. A missing file is created with its folder.
  ///
  /// - Parameters:
  ///   - sync: writes a file's data to the disk.
  ///   - syncFailed: called on another thread when a sync of the log has failed.
  /// - Throws: `CacheFailure`.
  static func open(
    _ url: URL, migrations: [CacheSchema.Migration] = CacheSchema.migrations,
    sync: @escaping LogSync.Sync = LogSync.sync, syncFailed: @escaping @Sendable () -> Void = {}
  ) throws -> CacheFile {
    do {
      try finishReplacement(of: url, sync: sync)
      try create(url, sync: sync)
      let queue = try connect(url)
      do {
        try queue.inDatabase { db in
          // Takes SQLite's lock now, so that a second process fails here.
          try db.inTransaction(.exclusive) { .commit }
          try CacheSchema.prepare(db, migrations: migrations)
          reportFailedSyncs(of: db)
        }
      } catch {
        try? queue.close()
        throw error
      }
      removeIncomplete(url)
      let log = LogSync(
        log: URL(fileURLWithPath: url.path + "-wal"), sync: sync, failed: syncFailed)
      return CacheFile(url: url, queue: queue, sync: log)
    } catch {
      throw CacheFailure(error)
    }
  }

  private static func connect(_ url: URL) throws -> DatabaseQueue {
    var configuration = Configuration()
    configuration.label = "com.google.firebase.database.cache"
    configuration.allowsUnsafeTransactions = true
    configuration.foreignKeysEnabled = false
    configuration.journalMode = .wal
    configuration.prepareDatabase { db in
      try db.execute(sql: "PRAGMA locking_mode = EXCLUSIVE")
      try db.execute(sql: "PRAGMA auto_vacuum = INCREMENTAL")
    }
    return try DatabaseQueue(path: url.path, configuration: configuration)
  }

  /// Reads the pending writes of a file that `open` found damaged. The damage may be in other tables only.
  ///
  /// - Returns: no writes if SQLite cannot open the file, or if it is not a cache.
  static func readPendingWrites(_ url: URL) -> RestoredWrites {
    guard let queue = try? connect(url) else { return RestoredWrites() }
    defer { try? queue.close() }
    return
      (try? queue.inDatabase { db in
        guard try Int.fetchOne(db, sql: "PRAGMA application_id") == CacheSchema.applicationID else {
          return RestoredWrites()
        }
        return try PendingWriteTable(db: db).load()
      }) ?? RestoredWrites()
  }

  /// Replaces SQLite's automatic checkpoint, because SQLite ignores a failed sync in it. The next sync may
  /// then succeed although data is lost. This checkpoint reports the failure as the failure of the commit.
  private static func reportFailedSyncs(of db: GRDB.Database) {
    sqlite3_wal_hook(
      db.sqliteConnection,
      { _, connection, name, pages in
        guard pages >= CacheFile.pagesBetweenCheckpoints else { return SQLITE_OK }
        let code = sqlite3_wal_checkpoint_v2(connection, name, SQLITE_CHECKPOINT_PASSIVE, nil, nil)
        return ResultCode(rawValue: code) == .SQLITE_IOERR_FSYNC ? code : SQLITE_OK
      }, nil)
  }

  /// The number of pages in the log above which a commit starts a checkpoint. It is SQLite's default.
  private static let pagesBetweenCheckpoints = 1_000

  /// Takes the lock of a cache, and creates its folder.
  ///
  /// - Throws: `CacheFailure`.
  static func lock(_ url: URL, sync: LogSync.Sync) throws -> CacheLock {
    do {
      try createFolder(url.deletingLastPathComponent(), sync: sync)
      return try CacheLock(url)
    } catch {
      throw CacheFailure(error)
    }
  }

  private static func create(_ url: URL, sync: LogSync.Sync) throws {
    try createFolder(url.deletingLastPathComponent(), sync: sync)
    guard !FileManager.default.fileExists(atPath: url.path) else { return }
    // SQLite gives the log the permissions of the file.
    guard
      FileManager.default.createFile(
        atPath: url.path, contents: nil, attributes: [.posixPermissions: 0o600])
    else { throw CacheFailure.unusable("it cannot be created") }
  }

  /// Creates a folder with its missing parents, and syncs their directory entries to the disk.
  private static func createFolder(_ folder: URL, sync: LogSync.Sync) throws {
    var created: [URL] = []
    var at = folder
    while at.path != "/", !FileManager.default.fileExists(atPath: at.path) {
      created.append(at)
      at = at.deletingLastPathComponent()
    }
    guard !created.isEmpty else { return }
    try FileManager.default.createDirectory(
      at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    for folder in created { try sync(folder.deletingLastPathComponent()) }
  }

  /// Renames a damaged file with its log to `….damaged`, and overwrites an earlier damaged file. If renaming
  /// fails, it removes the file.
  static func quarantine(_ url: URL) {
    let manager = FileManager.default
    // An earlier call was interrupted after it had moved the file.
    guard manager.fileExists(atPath: url.path) else { return }
    let target = quarantined(url)
    for suffix in ["", "-wal", "-shm"] {
      try? manager.removeItem(atPath: target.path + suffix)
      if (try? manager.moveItem(atPath: url.path + suffix, toPath: target.path + suffix)) == nil {
        try? manager.removeItem(atPath: url.path + suffix)
      }
    }
  }

  /// The name that a damaged file receives.
  static func quarantined(_ url: URL) -> URL { URL(fileURLWithPath: url.path + ".damaged") }

  func close() {
    sync.close()
    try? queue.close()
  }
}
