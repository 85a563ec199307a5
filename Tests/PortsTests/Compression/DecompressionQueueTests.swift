// Tests of the decompression queue: the order of jobs, and the release of their input after cancellation.

import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import Testing

@testable import EndpointFixture
@testable import Ports

@Suite("Decompression queue", .timeLimit(.minutes(5)))
struct DecompressionQueueTests {
  private typealias Outcome = Result<ByteBuffer, Decompression.Failure>

  private static let limit = 64 << 20

  private let loop = MultiThreadedEventLoopGroup.singleton.next()
  private let events = NIOLockedValueBox<[String]>([])

  /// Returns the recorded outcomes and releases, in order.
  private func received() -> [String] { events.withLockedValue { $0 } }

  /// Returns a job that records its outcome with a name.
  private func job(_ name: String, _ input: [UInt8]) -> DecompressionQueue.Job {
    DecompressionQueue.Job(ByteBuffer(bytes: input), .gzip, limit: Self.limit, on: loop) { [events] outcome in
      let text =
        switch outcome {
        case .success(let bytes): "\(name): \(bytes.readableBytes)"
        case .failure(let failure): "\(name): \(failure)"
        }
      events.withLockedValue { $0.append(text) }
    }
  }

  private func cancel(_ job: DecompressionQueue.Job, _ name: String, of queue: DecompressionQueue) {
    queue.cancel(job) { [events] in events.withLockedValue { $0.append("\(name) released") } }
  }

  /// Runs `body` with a pool of one thread, which is blocked until the test frees it.
  private func withThread(
    _ body: (NIOThreadPool, BusyThreads) async throws -> Void
  ) async throws {
    let threads = NIOThreadPool(numberOfThreads: 1)
    threads.start()
    try await body(threads, BusyThreads(threads, count: 1))
    try await threads.shutdownGracefully()
  }

  @Test("Jobs of one connection run sequentially, interleaved with jobs of other connections")
  func order() async throws {
    try await withThread { threads, busy in
      let compressed = TestCompressor.compress([1, 2, 3])
      try await loop.submit {
        let (busyConnection, otherConnection) = (DecompressionQueue(threads), DecompressionQueue(threads))
        for name in ["a", "b", "c"] { busyConnection.add(job(name, compressed)) }
        otherConnection.add(job("other", [7]))
      }.get()
      busy.free()
      #expect(try await eventually { received().count == 4 })
      #expect(received().first == "a: 3" && received().last == "c: 3")
      #expect(received().dropFirst().first?.hasPrefix("other: corrupt") == true, "\(received())")
    }
  }

  @Test("Cancelling a queued job releases its input immediately and skips decompression")
  func cancelledBeforeStart() async throws {
    try await withThread { threads, busy in
      try await loop.submit {
        let queue = DecompressionQueue(threads)
        let jobs = (0..<3).map { job("\($0)", TestCompressor.bomb(1 << 20)) }
        for job in jobs { queue.add(job) }
        // The first job is in the thread pool's queue, the second in the connection's queue.
        for index in 0..<2 { cancel(jobs[index], "\(index)", of: queue) }
        #expect(received() == ["0 released", "1 released"])
        #expect(jobs[0].isTaken && jobs[1].isTaken && !jobs[2].isTaken)
      }.get()
      busy.free()
      #expect(try await eventually { received().count == 3 })
      #expect(received().last == "2: \(1 << 20)")
    }
  }

  @Test("Cancelling a running job releases its input when it ends, and the next job runs")
  func cancelledWhileRunning() async throws {
    try await withThread { threads, busy in
      busy.free()
      try await loop.submit {
        let queue = DecompressionQueue(threads)
        let (first, second) = (
          job("first", TestCompressor.bomb(32 << 20)), job("second", TestCompressor.compress([1]))
        )
        queue.add(first)
        queue.add(second)
        // The queue delivers the outcome on this event loop, so the outcome cannot arrive before this closure ends.
        while !first.isTaken {}
        cancel(first, "first", of: queue)
        #expect(received() == [])
      }.get()
      #expect(try await eventually { received().count == 2 })
      #expect(received() == ["first released", "second: 1"])
    }
  }
}
