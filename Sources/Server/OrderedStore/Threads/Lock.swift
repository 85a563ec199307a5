// A lock and a condition over pthreads. The standard library's `Mutex` would raise the lowest macOS to 15 and has no
// condition to wait on.

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Glibc
#endif

/// State behind a lock, with a condition for those who wait for it to change.
// Safety: `state` is only touched between lock and unlock of `mutex`.
package final class Guarded<State>: @unchecked Sendable {
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let condition: UnsafeMutablePointer<pthread_cond_t>
  private var state: State

  /// Guards an initial state.
  package init(_ state: sending State) {
    self.state = state
    mutex = .allocate(capacity: 1)
    condition = .allocate(capacity: 1)
    pthread_mutex_init(mutex, nil)
    pthread_cond_init(condition, nil)
  }

  deinit {
    pthread_mutex_destroy(mutex)
    pthread_cond_destroy(condition)
    mutex.deallocate()
    condition.deallocate()
  }

  /// Runs `body` with the state, alone. It must not block.
  @inline(__always)
  package func withLock<Result>(_ body: (inout State) throws -> Result) rethrows -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return try body(&state)
  }

  /// Runs `body` until it returns a result, waiting for a wake-up in between. Never on the cooperative pool.
  package func wait<Result>(until body: (inout State) throws -> Result?) rethrows -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    while true {
      if let result = try body(&state) { return result }
      pthread_cond_wait(condition, mutex)
    }
  }

  /// Waits once, at most so many milliseconds, unless `body` returns a result before or after.
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

  /// Wakes one that waits.
  package func signal() { pthread_cond_signal(condition) }

  /// Wakes all that wait.
  package func broadcast() { pthread_cond_broadcast(condition) }
}
