// Syncs the cache file's write-ahead log to the disk in the background, so that pending writes survive a power
// cut.
//
// A sync takes milliseconds, so one sync for each write would make a burst of writes slow. Requests that
// arrive during a sync share the next one. SQLite locks the database file but never its log. Therefore
// opening and closing the log here does not release SQLite's lock.
//
// After a failed sync the system may drop the data that it could not write, and report success for the next
// sync. Therefore this object stops syncing after a failure, and the storage writes a new file.
//
// Invariant: a commit that precedes a request is on the disk when the next successful sync after the request
// ends.

import Dispatch
import Foundation
import Locking

/// Syncs the log of one cache file.
final class LogSync: Sendable {
  /// Writes a file's data, or a folder's entries, to the disk.
  typealias Sync = @Sendable (URL) throws -> Void

  private struct State {
    var isRequested = false
    var hasFailed = false
    /// The failure that the storage has not read yet.
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

  /// Returns the failure of a sync once. Later calls return nil.
  func takeFailure() -> CacheFailure? {
    state.withLock { state in
      defer { state.failure = nil }
      return state.failure
    }
  }

  /// Starts a sync in the background, unless one is already requested.
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
        // Syncs the folder too: a new file is not on the disk before its directory entry is.
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

  /// Waits until the syncs in progress have ended.
  func close() {
    queue.sync {}
  }

  /// Writes a file's data, or a folder's entries, to the disk. Errors of syncing a folder are ignored: some
  /// file systems cannot sync folders, and a folder without read permission cannot be opened.
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
      // Only F_FULLFSYNC reaches the medium on Apple's platforms. Some file systems do not support it.
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
