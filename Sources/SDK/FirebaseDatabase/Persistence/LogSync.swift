// Syncs the cache file's log to the disk in the background, so that pending writes survive a power cut.
//
// A sync takes milliseconds, so that a sync for each write would make a burst of writes slow. Requests that arrive during
// a sync share the next one. SQLite locks the file itself but never its log. Therefore opening and closing the log here
// releases no lock.
//
// Invariant: every commit that precedes a request is on the disk when the sync that follows the request ends.

import Dispatch
import Foundation
import Locking

/// Syncs one log.
final class LogSync: Sendable {
  private let log: URL
  private let queue = DispatchQueue(label: "com.google.firebase.database.sync", qos: .utility)
  private let isRequested = Guarded(false)

  init(log: URL) {
    self.log = log
  }

  /// Syncs soon.
  func request() {
    let isNew = isRequested.withLock { isRequested in
      defer { isRequested = true }
      return !isRequested
    }
    guard isNew else { return }
    queue.async { [self] in
      isRequested.withLock { $0 = false }
      // The folder too: a new file is not on the disk before its entry is.
      for url in [log, log.deletingLastPathComponent()] {
        guard let handle = try? FileHandle(forReadingFrom: url) else { continue }
        try? handle.synchronize()
        try? handle.close()
      }
    }
  }

  /// Waits for the syncs in progress.
  func close() {
    queue.sync {}
  }
}
