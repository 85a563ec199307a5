// Syncs the cache file's log to the disk in the background, so that pending writes survive a power cut.
//
// A sync takes milliseconds, so that a sync for each write would make a burst of writes slow. Requests that arrive during
// a sync share the next one. SQLite locks the file itself but never its log. Therefore opening and closing the log here
// releases no lock.
//
// After a failed sync the system may drop the data that it could not write, and report success for the next sync. So a
// failure ends the syncs of this log, and the storage writes a new file.
//
// Invariant: every commit that precedes a request is on the disk when the sync that follows the request ends without a
// failure.

import Dispatch
import Foundation
import Locking

/// Syncs one log.
final class LogSync: Sendable {
  /// Writes a file's data, or a folder's entries, to the disk.
  typealias Sync = @Sendable (URL) throws -> Void

  private struct State {
    var isRequested = false
    var hasFailed = false
    /// The failure that the storage has not taken yet.
    var failure: CacheFailure?
    /// Whether the last sync succeeded.
    var isWorking = false
  }

  private let log: URL
  private let sync: Sync
  private let failed: @Sendable () -> Void
  private let queue = DispatchQueue(label: "com.google.firebase.database.sync", qos: .utility)
  private let state = Guarded(State())

  /// - Parameter failed: called on another thread when a sync has failed.
  init(log: URL, sync: @escaping Sync, failed: @escaping @Sendable () -> Void) {
    self.log = log
    self.sync = sync
    self.failed = failed
  }

  /// Whether the last sync of this log succeeded; false before the first one.
  var isWorking: Bool { state.withLock { $0.isWorking } }

  /// The failure of a sync. Later calls return nil.
  func takeFailure() -> CacheFailure? {
    state.withLock { state in
      defer { state.failure = nil }
      return state.failure
    }
  }

  /// Syncs soon.
  func request() {
    let isNew = state.withLock { state in
      defer { state.isRequested = true }
      return !state.isRequested && !state.hasFailed
    }
    guard isNew else { return }
    queue.async { [self] in
      let mustSync = state.withLock { state in
        state.isRequested = false
        return !state.hasFailed
      }
      guard mustSync else { return }
      do {
        try sync(log)
        // The folder too: a new file is not on the disk before its entry is.
        try sync(log.deletingLastPathComponent())
        state.withLock { $0.isWorking = true }
      } catch {
        state.withLock { state in
          state.hasFailed = true
          state.isWorking = false
          state.failure = CacheFailure(error)
        }
        failed()
      }
    }
  }

  /// Waits for the syncs in progress.
  func close() {
    queue.sync {}
  }

  /// Writes a file's data, or a folder's entries, to the disk. A folder that cannot be synced does not fail: some file
  /// systems have no sync of folders, and a folder without the right to read it cannot be opened.
  ///
  /// - Throws: `CacheFailure.unsynced`.
  static let sync: Sync = { url in
    let descriptor = open(url.path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      let code = errno
      if code == EACCES, isFolder(url) { return }
      throw CacheFailure.unsynced("opening \(url.path): error \(code)")
    }
    defer { Foundation.close(descriptor) }
    #if canImport(Darwin)
      // Only this reaches the medium on Apple's platforms. Some file systems do not have it.
      if fcntl(descriptor, F_FULLFSYNC) == 0 { return }
    #endif
    guard fsync(descriptor) == 0 else {
      let code = errno
      if code == EINVAL || code == ENOTSUP, isFolder(url) { return }
      throw CacheFailure.unsynced("syncing \(url.path): error \(code)")
    }
  }

  private static func isFolder(_ url: URL) -> Bool {
    var isFolder: ObjCBool = false
    return FileManager.default.fileExists(atPath: url.path, isDirectory: &isFolder) && isFolder.boolValue
  }
}
