// The order of decompression jobs, and the release of their input.

import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import Testing

@testable import Endpoints

@Suite("Decompression queue", .timeLimit(.minutes(5)))
struct DecompressionQueueTests {
  private typealias Outcome = Result<ByteBuffer, Decompression.Failure>

  private static let limit = 64 << 20

  private let loop = MultiThreadedEventLoopGroup.singleton.next()
  private let events = NIOLockedValueBox<[String]>([])

  private func received() -> [String] { events.withLockedValue { $0 } }

  /// A job that records its outcome under a name.
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

  /// One thread, which is busy until the test frees it.
  private func withThread(
    _ body: (NIOThreadPool, BusyThreads) async throws -> Void
  ) async throws {
    let threads = NIOThreadPool(numberOfThreads: 1)
    threads.start()
    try await body(threads, BusyThreads(threads, count: 1))
    try await threads.shutdownGracefully()
  }

  @Test("jobs of one connection run in order and one at a time, with jobs of others between them")
  func order() async throws {
    try await withThread { threads, busy in
      let packed = Packer.pack([1, 2, 3])
      try await loop.submit {
        let (busyConnection, otherConnection) = (DecompressionQueue(threads), DecompressionQueue(threads))
        for name in ["a", "b", "c"] { busyConnection.add(job(name, packed)) }
        otherConnection.add(job("other", [7]))
      }.get()
      busy.free()
      #expect(try await eventually { received().count == 4 })
      #expect(received().first == "a: 3" && received().last == "c: 3")
      #expect(received().dropFirst().first?.hasPrefix("other: corrupt") == true, "\(received())")
    }
  }

  @Test("a job that is cancelled before it starts is released immediately and not decompressed")
  func cancelledBeforeStart() async throws {
    try await withThread { threads, busy in
      try await loop.submit {
        let queue = DecompressionQueue(threads)
        let jobs = (0..<3).map { job("\($0)", Packer.bomb(1 << 20)) }
        for job in jobs { queue.add(job) }
        // The first job waits for the thread, the second in the queue.
        for index in 0..<2 { cancel(jobs[index], "\(index)", of: queue) }
        #expect(received() == ["0 released", "1 released"])
        #expect(jobs[0].isTaken && jobs[1].isTaken && !jobs[2].isTaken)
      }.get()
      busy.free()
      #expect(try await eventually { received().count == 3 })
      #expect(received().last == "2: \(1 << 20)")
    }
  }

  @Test("a job that is cancelled while it runs is released at its end, and the next one runs")
  func cancelledWhileRunning() async throws {
    try await withThread { threads, busy in
      busy.free()
      try await loop.submit {
        let queue = DecompressionQueue(threads)
        let (first, second) = (job("first", Packer.bomb(32 << 20)), job("second", Packer.pack([1])))
        queue.add(first)
        queue.add(second)
        // The outcome is delivered on this event loop, so it cannot arrive yet.
        while !first.isTaken {}
        cancel(first, "first", of: queue)
        #expect(received() == [])
      }.get()
      #expect(try await eventually { received().count == 2 })
      #expect(received() == ["first released", "second: 1"])
    }
  }
}
