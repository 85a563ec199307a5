// Decompresses the large bodies and messages of one connection on threads, in order.
//
// Invariants
//   1. A connection occupies at most one thread. However many jobs one connection
//      has, another connection's job waits for at most one of them.
//   2. A cancelled job releases its input immediately if it has not started, otherwise when its thread has finished
//      with it. Until then the input counts as held memory.
//   3. A job that is cancelled before it starts is not decompressed. The completion of a cancelled job is not called.

import NIOConcurrencyHelpers
package import NIOCore
package import NIOPosix

/// The decompression jobs of one connection. Confined to its event loop.
package final class DecompressionQueue {
  /// The threads of all connections. They start with the first job and run until the process ends. There are few, since
  /// the output of a running job is not counted in the memory budget. They run no other work, since clients can keep them busy.
  package static let threads: NIOThreadPool = {
    let threads = NIOThreadPool(numberOfThreads: threadCount)
    threads.start()
    return threads
  }()

  package static let threadCount = 2

  /// The decompression of one input.
  package final class Job {
    /// The size of the input, in bytes.
    package let bytes: Int
    fileprivate let eventLoop: any EventLoop
    /// The input; nil after a thread took it, or after the job was cancelled.
    fileprivate let input: NIOLockedValueBox<ByteBuffer?>
    fileprivate let algorithm: CompressionAlgorithm
    fileprivate let limit: Int
    fileprivate var completion: ((Result<ByteBuffer, Decompression.Failure>) -> Void)?
    fileprivate var release: (() -> Void)?

    /// - Parameter completion: called with the output on the event loop, unless the job is cancelled.
    package init(
      _ input: ByteBuffer, _ algorithm: CompressionAlgorithm, limit: Int, on eventLoop: any EventLoop,
      _ completion: @escaping (Result<ByteBuffer, Decompression.Failure>) -> Void
    ) {
      bytes = input.readableBytes
      self.input = NIOLockedValueBox(input)
      self.algorithm = algorithm
      self.limit = limit
      self.eventLoop = eventLoop
      self.completion = completion
    }

    /// Whether a thread took the input, or the job was cancelled.
    var isTaken: Bool { input.withLockedValue { $0 == nil } }
  }

  private let threads: NIOThreadPool
  private var waiting = CircularBuffer<Job>(initialCapacity: 0)
  private var isBusy = false

  package init(_ threads: NIOThreadPool = DecompressionQueue.threads) { self.threads = threads }

  /// Adds a job.
  package func add(_ job: Job) {
    waiting.append(job)
    startNext()
  }

  /// Cancels a job whose completion has not been called.
  /// - Parameter release: called when the input is no longer held, now or later on the event loop.
  package func cancel(_ job: Job, _ release: @escaping () -> Void) {
    job.completion = nil
    let isDropped = job.input.withLockedValue { input in
      defer { input = nil }
      return input != nil
    }
    guard isDropped else {
      precondition(job.release == nil, "invariant: a job is cancelled once")
      job.release = release
      return
    }
    waiting.removeAll { $0 === job }
    release()
  }

  private func startNext() {
    guard !isBusy, let job = waiting.popFirst() else { return }
    isBusy = true
    // The thread captures these parts only, and not the job, which is confined to the event loop.
    let (box, algorithm, limit) = (job.input, job.algorithm, job.limit)
    let output = threads.runIfActive(eventLoop: job.eventLoop) {
      () -> Result<ByteBuffer, Decompression.Failure> in
      let input = box.withLockedValue { input in
        defer { input = nil }
        return input
      }
      // A cancelled job has no input. Its completion is not called, so this result is not used.
      guard let input else { return .success(ByteBuffer()) }
      do throws(Decompression.Failure) {
        return .success(try Decompression.decompress(input, algorithm, limit: limit))
      } catch {
        return .failure(error)
      }
    }
    output.assumeIsolated().whenComplete { result in
      self.end(job, (try? result.get()) ?? .failure(.corrupt("no thread is available to decompress it")))
    }
  }

  private func end(_ job: Job, _ result: Result<ByteBuffer, Decompression.Failure>) {
    isBusy = false
    let (release, completion) = (job.release, job.completion)
    job.release = nil
    job.completion = nil
    startNext()
    release?()
    completion?(result)
  }
}
