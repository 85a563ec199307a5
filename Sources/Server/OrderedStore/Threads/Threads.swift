// The threads of a store. Storage calls block: they read from disk and sync. If they blocked threads of
// Swift's small cooperative pool, other tasks of the process would stall. The store therefore runs them on
// its own threads.

import Locking

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Glibc
#endif

/// A thread that runs one function and can be joined.
package final class DedicatedThread: Sendable {
  private let isFinished = Guarded(false)

  /// Starts a thread.
  package init(_ body: @escaping @Sendable () -> Void) {
    let isFinished = self.isFinished
    let start = Unmanaged.passRetained(
      ThreadBody {
        body()
        isFinished.withLock { $0 = true }
        isFinished.broadcast()
      })
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    pthread_attr_setstacksize(&attributes, 2 << 20)
    #if canImport(Darwin)
      var thread: pthread_t?
      let code = pthread_create(&thread, &attributes, { runThreadBody($0) }, start.toOpaque())
    #else
      var thread = pthread_t()
      let code = pthread_create(&thread, &attributes, { $0.flatMap { runThreadBody($0) } }, start.toOpaque())
    #endif
    pthread_attr_destroy(&attributes)
    // Thread creation fails only if the process is out of memory or threads. The store cannot work without
    // its threads.
    precondition(code == 0, "the store could not start a thread: errno \(code)")
  }

  /// Waits until the thread's function has returned.
  package func join() { isFinished.wait { $0 ? () : nil } }
}

private final class ThreadBody {
  let body: @Sendable () -> Void
  init(_ body: @escaping @Sendable () -> Void) { self.body = body }
}

private func runThreadBody(_ pointer: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
  Unmanaged<ThreadBody>.fromOpaque(pointer).takeRetainedValue().body()
  return nil
}

/// A pool of threads that start jobs in the order of submission.
package final class ThreadPool: Sendable {
  private struct State {
    var jobs: [@Sendable () -> Void] = []
    var head = 0
    var isClosed = false

    mutating func pop() -> (@Sendable () -> Void)? {
      guard head < jobs.count else { return nil }
      let job = jobs[head]
      head += 1
      if head == jobs.count {
        jobs.removeAll(keepingCapacity: true)
        head = 0
      } else if head >= 1024, head * 2 >= jobs.count {
        jobs.removeFirst(head)
        head = 0
      }
      return job
    }
  }

  private enum Step {
    case run(@Sendable () -> Void)
    case end
  }

  /// The nice value of background threads: they get a tenth of the share of a normal thread.
  private static let backgroundNice: Int32 = 10

  private let state: Guarded<State>
  private let threads: [DedicatedThread]

  /// Starts `count` threads.
  /// - Parameter isBackground: whether threads of normal priority run first when processors are scarce. It has an
  ///   effect with glibc only.
  package init(threads count: Int, isBackground: Bool = false) {
    let state = Guarded(State())
    self.state = state
    threads = (0..<count).map { _ in
      DedicatedThread {
        #if canImport(Glibc)
          // On Linux the priority belongs to the thread; process 0 is the calling one. A failure leaves it unchanged.
          if isBackground {
            setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, Self.backgroundNice)
          }
        #endif
        while true {
          let step: Step = state.wait { state in
            if let job = state.pop() { return .run(job) }
            return state.isClosed ? .end : nil
          }
          guard case .run(let job) = step else { return }
          job()
        }
      }
    }
  }

  /// Ends the threads after the submitted jobs, so that a store that was never closed leaks no threads.
  deinit {
    state.withLock { $0.isClosed = true }
    state.broadcast()
  }

  /// Runs a job on one of the threads.
  /// - Returns: false once the pool is closed; the job then never runs.
  @discardableResult
  package func submit(_ job: @escaping @Sendable () -> Void) -> Bool {
    let accepted = state.withLock { state in
      guard !state.isClosed else { return false }
      state.jobs.append(job)
      return true
    }
    state.signal()
    return accepted
  }

  /// Finishes the submitted jobs and ends the threads. Blocks; must not be called on one of the pool's threads.
  package func close() {
    state.withLock { $0.isClosed = true }
    state.broadcast()
    for thread in threads { thread.join() }
  }
}
