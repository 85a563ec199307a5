// A lock that exports acquire in the order of their arrival.

/// Runs one export at a time, in the order of arrival, since two exports may use the same directory.
actor ExportLock {
  private var isLocked = false
  private var waiting: [CheckedContinuation<Void, Never>] = []

  /// Waits for the lock.
  func lock() async {
    guard isLocked else { return isLocked = true }
    await withCheckedContinuation { waiting.append($0) }
  }

  /// Passes the lock to the export that waited longest.
  func unlock() {
    precondition(isLocked, "invariant: an export unlocks what it locked")
    if waiting.isEmpty { isLocked = false } else { waiting.removeFirst().resume() }
  }
}
