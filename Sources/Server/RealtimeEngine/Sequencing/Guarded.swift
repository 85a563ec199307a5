// State that one lock guards: the only way the engine shares mutable memory between threads.
//
// Invariant: the state is touched inside `withLock` only, and no `body` blocks, awaits or takes another lock.

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// A value guarded by a mutex, for short critical sections.
///
/// `Synchronization.Mutex` would serve, but needs macOS 15.
/// It is `@unchecked Sendable` because the state is reached with the mutex held only, and the mutex lives at
/// one heap address for as long as the box does.
final class Guarded<State>: @unchecked Sendable {
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private var state: State

  init(_ state: State) {
    self.state = state
    mutex = .allocate(capacity: 1)
    mutex.initialize(to: pthread_mutex_t())
    pthread_mutex_init(mutex, nil)
  }

  deinit {
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
  }

  /// Runs `body` alone with the state. Not recursive.
  @inline(__always)
  func withLock<Result>(_ body: (inout State) throws -> Result) rethrows -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return try body(&state)
  }
}
