// The replacement of a cache file: a new file that takes the place of one whose log could not be synced.
//
// The old file and its log stay as they are until the new file is on the disk. Then the new file gets the suffix
// ".next", or ".repaired" if the old file is damaged, which makes it the valid one; that is one step for the file system.
// Renaming a damaged file, removing the old log and renaming the new file follow, at the next start if the process ends
// before.
//
// Invariant: at every moment the disk has the old file with its log, or the complete new file.

import Foundation
import GRDB

extension CacheFile {
  private static func incomplete(_ url: URL) -> URL { URL(fileURLWithPath: url.path + ".new") }
  private static func complete(_ url: URL, keepsOld: Bool) -> URL {
    URL(fileURLWithPath: url.path + (keepsOld ? ".repaired" : ".next"))
  }

  /// Writes the replacement of a file to the disk.
  ///
  /// - Parameters:
  ///   - keepsOld: whether the old file is damaged and renamed.
  ///   - fill: writes the contents, in one transaction.
  /// - Throws: `CacheFailure`; the old file is then still valid.
  static func writeReplacement(
    of url: URL, keepsOld: Bool, sync: @escaping LogSync.Sync, fill: (GRDB.Database) throws -> Void
  ) throws {
    do {
      removeIncomplete(url)
      let new = incomplete(url)
      let file = try CacheFile.open(new, sync: sync)
      do {
        try file.queue.inDatabase { db in
          try db.inTransaction(.immediate) {
            try fill(db)
            return .commit
          }
          try db.checkpoint(.truncate)
        }
      } catch {
        file.close()
        throw error
      }
      file.close()
      try sync(new)
      try move(new, to: complete(url, keepsOld: keepsOld))
      try sync(url.deletingLastPathComponent())
    } catch {
      throw CacheFailure(error)
    }
  }

  /// Puts a complete replacement in the place of the file. Without one it does nothing.
  static func finishReplacement(of url: URL, sync: LogSync.Sync) throws {
    // A replacement that does not keep the old file is the newer one.
    for keepsOld in [true, false] {
      let new = complete(url, keepsOld: keepsOld)
      guard FileManager.default.fileExists(atPath: new.path) else { continue }
      if keepsOld { quarantine(url) }
      // SQLite would apply the old log to the new file. So the log's removal must reach the disk before the new name.
      guard unlink(url.path + "-wal") == 0 || errno == ENOENT else {
        throw CacheFailure.unusable("the old log cannot be removed: error \(errno)")
      }
      try sync(url.deletingLastPathComponent())
      try move(new, to: url)
      try sync(url.deletingLastPathComponent())
    }
  }

  /// Removes a replacement that was not completed.
  static func removeIncomplete(_ url: URL) {
    for suffix in ["", "-wal", "-journal"] { unlink(incomplete(url).path + suffix) }
  }

  private static func move(_ from: URL, to: URL) throws {
    guard rename(from.path, to.path) == 0 else {
      throw CacheFailure.unusable("\(from.path) cannot be renamed: error \(errno)")
    }
  }
}
