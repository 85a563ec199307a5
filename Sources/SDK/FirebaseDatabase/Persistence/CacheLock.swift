// The cache lock: a lock file that one storage locks while it is open.
//
// SQLite's lock belongs to one file, and a repair replaces that file. Without this lock another process could
// open the new file first, and both processes would send the same pending writes.
//
// Invariant: the lock ends with its object or with the process.

import Foundation

/// The lock of one cache.
final class CacheLock {
  private let descriptor: Int32

  /// Takes the lock of a cache file, whose folder must exist.
  ///
  /// - Throws: `CacheFailure.inUse` if another process or another storage holds it.
  init(_ url: URL) throws {
    descriptor = open(url.path + "-lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw CacheFailure.unusable("its lock cannot be created: error \(errno)") }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let code = errno
      close(descriptor)
      throw code == EWOULDBLOCK
        ? CacheFailure.inUse : CacheFailure.unusable("it cannot be locked: error \(code)")
    }
  }

  deinit { close(descriptor) }
}
