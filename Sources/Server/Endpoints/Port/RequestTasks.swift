// Where requests of HTTP are carried out: on threads of their own. What is asked over REST may take milliseconds of a
// processor, and a client may ask and go without paying for the answer: on the threads that all of the process's tasks
// share, a crowd of such requests would stand in line before everything else, such as the times that other clients' reads
// wait for, and the Realtime Database's writes.

import NIOCore
import NIOPosix

enum RequestTasks {
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
