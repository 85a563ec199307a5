// The cache replacement: replaces a cache file by a copy, because the log of the file could not be synced.
//
// The old file and its log stay unchanged until the copy is on the disk. Then the copy gets the suffix
// ".next". This rename is atomic and makes the copy the valid file. Two steps follow: removing the old log
// and renaming the copy. If the process ends before them, the next start performs them.
// docs/decisions/0037-failed-syncs-of-the-firestore-cache.md has the reasons.
//
// Invariant: at every moment the disk has the old file with its log, or the complete copy.

import Foundation
import GRDB

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Replaces one cache file.
struct CacheReplacement {
  let file: URL
  let sync: LogSync.Sync

  private var incomplete: URL { URL(fileURLWithPath: file.path + ".new") }
  private var complete: URL { URL(fileURLWithPath: file.path + ".next") }

  /// Writes a copy of the open cache to the disk. If it throws, the old file is still valid.
  ///
  /// - Throws: `FailedSync`, or the error of SQLite or of the file system.
  func write(from queue: DatabaseQueue) throws {
    removeIncomplete()
    do {
      try copy(queue)
      try move(incomplete, to: complete)
    } catch {
      // Removes a partial copy, because the disk may be full.
      removeIncomplete()
      throw error
    }
    do {
      try sync(file.deletingLastPathComponent())
    } catch {
      // The old file stays in use, so the next start must not find the copy. If the copy cannot be removed,
      // it counts as valid.
      if unlink(complete.path) == 0 { throw error }
    }
  }

  private func copy(_ queue: DatabaseQueue) throws {
    guard
      FileManager.default.createFile(
        atPath: incomplete.path, contents: nil, attributes: [.posixPermissions: 0o600])
    else { throw FailedSync(description: "\(incomplete.path) cannot be created") }
    do {
      // VACUUM reads the file's data as this process sees it, which includes data that is not on the disk.
      try queue.writeWithoutTransaction { try $0.execute(sql: "VACUUM INTO ?", arguments: [incomplete.path]) }
    } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
      // Converts SQLITE_ERROR to a FailedSync. For other statements `DiskPersistence.isDamage` treats this error as
      // damage of the file, but here only the copy has failed.
      throw FailedSync(description: "the cache cannot be copied: \(error)")
    }
    try sync(incomplete)
  }

  /// Moves a complete copy to the file's name, and removes an incomplete copy. The cache must be closed.
  func finish() throws {
    removeIncomplete()
    guard FileManager.default.fileExists(atPath: complete.path) else { return }
    // SQLite would apply the old log to the copy. So the log's removal must reach the disk before the new name.
    guard unlink(file.path + "-wal") == 0 || errno == ENOENT else {
      throw FailedSync(description: "the old log cannot be removed: error \(errno)")
    }
    try sync(file.deletingLastPathComponent())
    try move(complete, to: file)
    try sync(file.deletingLastPathComponent())
  }

  private func removeIncomplete() {
    for suffix in ["", "-wal", "-journal"] { unlink(incomplete.path + suffix) }
  }

  private func move(_ from: URL, to: URL) throws {
    guard rename(from.path, to.path) == 0 else {
      throw FailedSync(description: "\(from.path) cannot be renamed: error \(errno)")
    }
  }
}
