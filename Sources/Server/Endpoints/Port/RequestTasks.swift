// Where requests of HTTP are carried out: on threads of their own. What is asked over REST may take milliseconds of a
// processor, and a client may ask and go without paying for the answer: on the threads that all of the process's tasks
// share, a crowd of such requests would stand in line before everything else, such as the times that other clients' reads
// wait for, and the Realtime Database's writes.

import NIOConcurrencyHelpers
import NIOCore
import NIOPosix

enum RequestTasks {
  /// How many requests that read may be under way at once, of all connections: each may hold an answer that nobody is left
  /// to take, which shows only when it is written.
  private static let readings = RequestGate(128)

  /// Starts a task for a request that reads and ends by itself, once fewer than the most are under way.
  static func startReading(_ operation: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
    start {
      await readings.enter()
      await operation()
      readings.leave()
    }
  }

  /// Starts a task for a request, where the platform can on the threads of requests; elsewhere on those of all tasks.
  static func start(_ operation: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
    if #available(macOS 15.0, iOS 18.0, tvOS 18.0, watchOS 11.0, *) {
      return Task(executorPreference: RequestExecutor.shared) { await operation() }
    }
    return Task { await operation() }
  }
}

@available(macOS 15.0, iOS 18.0, tvOS 18.0, watchOS 11.0, *)
private final class RequestExecutor: TaskExecutor {
  static let shared = RequestExecutor()

  private let threads: NIOThreadPool

  private init() {
    threads = NIOThreadPool(numberOfThreads: max(System.coreCount, 2))
    threads.start()
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    // The threads are never shut down, so that every job is run.
    threads.submit { _ in job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}

/// Lets a number of tasks pass at a time, the others in the order in which they came.
private final class RequestGate: Sendable {
  private struct State {
    var free: Int
    var waiting = CircularBuffer<CheckedContinuation<Void, Never>>(initialCapacity: 0)
  }

  private let state: NIOLockedValueBox<State>

  init(_ most: Int) { state = NIOLockedValueBox(State(free: most)) }

  func enter() async {
    await withCheckedContinuation { continuation in
      let enters = state.withLockedValue { state in
        guard state.free == 0 else {
          state.free -= 1
          return true
        }
        state.waiting.append(continuation)
        return false
      }
      if enters { continuation.resume() }
    }
  }

  func leave() {
    let next = state.withLockedValue { state -> CheckedContinuation<Void, Never>? in
      if let next = state.waiting.popFirst() { return next }
      state.free += 1
      return nil
    }
    next?.resume()
  }
}
