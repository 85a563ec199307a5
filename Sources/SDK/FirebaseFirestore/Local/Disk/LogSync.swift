// Syncs the write-ahead log of the cache file in the background. A queued write survives a power cut after this
// sync.
//
// A sync takes milliseconds, so one sync for each write would make a burst of writes slow. Requests that
// arrive during a sync share the next one. SQLite locks the cache file but never its log. Therefore opening
// and closing the log here does not release SQLite's lock.
//
// After a failed sync the system may drop the data that it could not write, and report success for the next
// sync. Therefore this object stops syncing after a failure, and the cache is copied to a new file.
//
// Invariant: a group that was committed before a request is on the disk when the next successful sync after
// the request ends.

import Dispatch
import Foundation
import Locking

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Data that could not be synced to the disk.
struct FailedSync: Error, CustomStringConvertible {
  let description: String
}

/// Syncs the log of one cache file.
final class LogSync: Sendable {
  /// Writes a file's data, or a folder's entries, to the disk.
  typealias Sync = @Sendable (URL) throws -> Void

  private struct State {
    var isRequested = false
    /// The first failure.
    var failure: FailedSync?
  }

  private let log: URL
  private let sync: Sync
  private let failed: @Sendable () -> Void
  private let queue = DispatchQueue(label: "firestore.cache.sync", qos: .utility)
  private let state = Guarded(State())

  /// - Parameters:
  ///   - file: the cache file.
  ///   - sync: writes data to the disk.
  ///   - failed: called once, on any thread, when a sync has failed.
  init(of file: URL, sync: @escaping Sync, failed: @escaping @Sendable () -> Void) {
    log = URL(fileURLWithPath: file.path + "-wal")
    self.sync = sync
    self.failed = failed
  }

  /// The failure that ended the syncs of this log.
  var failure: FailedSync? { state.withLock { $0.failure } }

  /// Starts a sync in the background, unless one is already requested.
  func request() {
    let isFirst = state.withLock { state in
      defer { state.isRequested = true }
      return !state.isRequested && state.failure == nil
    }
    guard isFirst else { return }
    queue.async { [self] in
      let mustSync = state.withLock { state in
        state.isRequested = false
        return state.failure == nil
      }
      guard mustSync else { return }
      do {
        try sync(log)
        // Syncs the folder too: a new file is not on the disk before its directory entry is.
        try sync(log.deletingLastPathComponent())
      } catch {
        fail("\(error)")
      }
    }
  }

  /// Records a failure, for instance of one of SQLite's syncs, and stops the syncs of this log.
  func fail(_ reason: String) {
    let isFirst = state.withLock { state in
      defer { state.failure = state.failure ?? FailedSync(description: reason) }
      return state.failure == nil
    }
    if isFirst { failed() }
  }

  /// Waits until the requested syncs have ended.
  func finish() { queue.sync {} }

  /// Writes a file's data, or a folder's entries, to the disk. Errors of syncing a folder are ignored: some
  /// file systems cannot sync folders, and a folder without read permission cannot be opened.
  ///
  /// - Throws: `FailedSync`.
  static let sync: Sync = { url in
    let descriptor = open(url.path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      let code = errno
      if code == EACCES, isFolder(url) { return }
      throw FailedSync(description: "opening \(url.path): error \(code)")
    }
    defer { close(descriptor) }
    #if canImport(Darwin)
      // Only F_FULLFSYNC reaches the medium on Apple's platforms. Some file systems do not support it.
      if fcntl(descriptor, F_FULLFSYNC) == 0 { return }
    #endif
    guard fsync(descriptor) == 0 else {
      let code = errno
      if code == EINVAL || code == ENOTSUP, isFolder(url) { return }
      throw FailedSync(description: "syncing \(url.path): error \(code)")
    }
  }

  private static func isFolder(_ url: URL) -> Bool {
    var isFolder: ObjCBool = false
    return FileManager.default.fileExists(atPath: url.path, isDirectory: &isFolder) && isFolder.boolValue
  }
}
