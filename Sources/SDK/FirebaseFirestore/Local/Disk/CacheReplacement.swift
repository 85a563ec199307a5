// The replacement of a cache file: a copy that takes the place of the file whose log could not be synced.
//
// The old file and its log stay as they are until the copy is on the disk. Then the copy gets the suffix ".next", which
// makes it the valid file; that is one step for the file system. Removing the old log and renaming the copy follow, at
// the next start if the process ends before. docs/decisions/0037-failed-syncs-of-the-firestore-cache.md has the reasons.
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

  /// Writes a copy of the open cache to the disk. When it throws, the old file is still the valid one.
  ///
  /// - Throws: `FailedSync`, or the error of SQLite or of the file system.
  func write(from queue: DatabaseQueue) throws {
    removeIncomplete()
    do {
      try copy(queue)
      try move(incomplete, to: complete)
    } catch {
      // A part of a copy would occupy a disk that may be full.
      removeIncomplete()
      throw error
    }
    do {
      try sync(file.deletingLastPathComponent())
    } catch {
      // The old file stays in use, so that a start must not find the copy. A copy that cannot be removed is valid.
      if unlink(complete.path) == 0 { throw error }
    }
  }

  private func copy(_ queue: DatabaseQueue) throws {
    guard
      FileManager.default.createFile(
        atPath: incomplete.path, contents: nil, attributes: [.posixPermissions: 0o600])
    else { throw FailedSync(description: "\(incomplete.path) cannot be created") }
    do {
      // Reads the file's data as the process sees it, which includes data that the disk does not have.
      try queue.writeWithoutTransaction { try $0.execute(sql: "VACUUM INTO ?", arguments: [incomplete.path]) }
    } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
      // Elsewhere this code means damage.
      throw FailedSync(description: "the cache cannot be copied: \(error)")
    }
    try sync(incomplete)
  }

  /// Puts a complete copy in the place of the file, and removes an incomplete one. The cache must be closed.
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
