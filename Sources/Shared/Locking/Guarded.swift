// Guarded state: a value that is reachable only while its lock is held.
//
// The standard library's `Mutex` is not used, because it needs macOS 15 or iOS 18, and has no condition variable.
//
// Invariant: `state` is read and written only while the lock is held.

#if canImport(Darwin)
  package import Darwin
#elseif canImport(Musl)
  package import Musl
#else
  package import Glibc
#endif

/// State behind a lock, with a condition variable to wait for changes of it.
// SAFETY: `state` is touched only between lock and unlock of `mutex`, in this class.
package final class Guarded<State>: @unchecked Sendable {
  @usableFromInline let mutex: UnsafeMutablePointer<pthread_mutex_t>
  @usableFromInline let condition: UnsafeMutablePointer<pthread_cond_t>
  @usableFromInline var state: State

  /// Guards an initial state.
  @inlinable
  package init(_ state: sending State) {
    self.state = state
    mutex = .allocate(capacity: 1)
    condition = .allocate(capacity: 1)
    pthread_mutex_init(mutex, nil)
    pthread_cond_init(condition, nil)
  }

  @inlinable
  deinit {
    pthread_mutex_destroy(mutex)
    pthread_cond_destroy(condition)
    mutex.deallocate()
    condition.deallocate()
  }

  /// Runs `body` with exclusive access to the state. `body` must not block and must not lock again.
  @inlinable @inline(__always)
  package func withLock<Result, Failure: Error>(
    _ body: (inout State) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return try body(&state)
  }

  /// Runs `body` until it returns a result; waits for a signal after each nil. It blocks the thread, so tasks of the
  /// cooperative pool must not call it.
  @inlinable
  package func wait<Result>(until body: (inout State) throws -> Result?) rethrows -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    while true {
      if let result = try body(&state) { return result }
      pthread_cond_wait(condition, mutex)
    }
  }

  /// Runs `body`. If it returns nil, waits for one signal, for at most `milliseconds`, and runs `body` again.
  ///
  /// - Returns: the last result of `body`.
  @inlinable
  package func wait<Result>(milliseconds: Int, until body: (inout State) -> Result?) -> Result? {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    if let result = body(&state) { return result }
    var deadline = timespec()
    clock_gettime(CLOCK_REALTIME, &deadline)
    let nanoseconds = Int(deadline.tv_nsec) + (milliseconds % 1000) * 1_000_000
    deadline.tv_sec += milliseconds / 1000 + nanoseconds / 1_000_000_000
    deadline.tv_nsec = nanoseconds % 1_000_000_000
    pthread_cond_timedwait(condition, mutex, &deadline)
    return body(&state)
  }

  /// Wakes one waiting thread.
  package func signal() { pthread_cond_signal(condition) }

  /// Wakes all waiting threads.
  package func broadcast() { pthread_cond_broadcast(condition) }
}
