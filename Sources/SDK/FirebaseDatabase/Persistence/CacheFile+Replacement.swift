// Replaces a cache file by a new file, because its log could not be synced or the file is damaged.
//
// The old file and its log stay unchanged until the new file is on the disk. Then the new file gets the
// suffix ".next", or ".repaired" if the old file is damaged. This rename is atomic and makes the new file the
// valid one. Three steps follow: renaming a damaged old file, removing the old log, and renaming the new
// file. If the process ends before them, the next start performs them.
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
  ///   - keepsOld: whether the old file is damaged, so that it is renamed instead of overwritten.
  ///   - fill: writes the contents, in one transaction.
  /// - Throws: `CacheFailure`; in this case the old file is still valid.
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

  /// Moves a complete replacement to the file's name. Without a replacement it does nothing.
  static func finishReplacement(of url: URL, sync: LogSync.Sync) throws {
    // A replacement that overwrites the old file is newer than one that keeps it.
    for keepsOld in [true, false] {
      let new = complete(url, keepsOld: keepsOld)
      guard FileManager.default.fileExists(atPath: new.path) else { continue }
      if keepsOld { quarantine(url) }
      // SQLite would apply the old log to the new file. Therefore the log's removal must reach the disk
      // before the new name.
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
