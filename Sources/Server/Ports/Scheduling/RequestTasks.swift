// Runs HTTP requests on dedicated threads, and bounds the number of concurrent reads.
//
// A REST request may take milliseconds of processor time, and its client may disconnect without reading the response. On the
// shared threads of the process, such requests would delay the store's reads and the Realtime Database's writes. For
// measurements see docs/decisions/0018.

import NIOCore
import NIOPosix

/// Starts the tasks of HTTP requests.
package enum RequestTasks {
  /// Maximum number of concurrent reads, over all connections. Each may hold a response to a client that has
  /// disconnected, since the server detects the disconnect only when it writes.
  static let maximumConcurrentReads = 128
  private static let reads = ReadQueue(maximumConcurrentReads: maximumConcurrentReads)

  /// Runs a read as soon as fewer than the maximum are running.
  package static func startReading(_ operation: @escaping @Sendable () async -> Void) -> ReadingTask {
    reads.start(operation)
  }

  /// Runs a request on the dedicated threads. Without task executors on the platform it runs on the shared threads.
  package static func start(_ operation: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
    if #available(macOS 15.0, iOS 18.0, tvOS 18.0, watchOS 11.0, *) {
      return Task(executorPreference: RequestExecutor.shared) { await operation() }
    }
    return Task { await operation() }
  }
}

/// The dedicated threads: one per processor core, at least two.
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
    // The threads never shut down, so every job runs.
    threads.submit { _ in job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
