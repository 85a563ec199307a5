// Syncs the log of the cache file in the background. A queued write survives a power cut after this sync.
//
// A sync takes milliseconds, too long for each write of a burst; requests during a sync share the next one. SQLite
// locks the cache file and not its log, so that opening and closing the log here releases no lock.
//
// Invariant: groups that were committed before a request are on the disk when the sync after the request ends.

import Dispatch
import Foundation
import Locking

final class LogSync: Sendable {
  private let log: URL
  private let queue = DispatchQueue(label: "firestore.cache.sync", qos: .utility)
  private let isRequested = Guarded(false)

  init(of file: URL) { log = URL(fileURLWithPath: file.path + "-wal") }

  /// Syncs the log soon.
  func request() {
    let isFirst = isRequested.withLock { isRequested in
      defer { isRequested = true }
      return !isRequested
    }
    guard isFirst else { return }
    queue.async { [self] in
      isRequested.withLock { $0 = false }
      guard let handle = try? FileHandle(forUpdating: log) else { return }
      try? handle.synchronize()
      try? handle.close()
    }
  }

  /// Waits for the requested syncs.
  func finish() { queue.sync {} }
}
