// What connections have unpacked beside their event loops: in which order, and when what they hold is released.

import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import Testing

@testable import Endpoints

@Suite("The queue of inflations", .timeLimit(.minutes(5)))
struct InflationQueueTests {
  private typealias Outcome = Result<ByteBuffer, Decompression.Failure>

  private static let limit = 64 << 20

  private let loop = MultiThreadedEventLoopGroup.singleton.next()
  private let events = NIOLockedValueBox<[String]>([])

  private func told() -> [String] { events.withLockedValue { $0 } }

  /// A job that tells its outcome by its name.
  private func job(_ name: String, _ packed: [UInt8]) -> DecompressionQueue.Job {
    DecompressionQueue.Job(ByteBuffer(bytes: packed), .gzip, limit: Self.limit, on: loop) { [events] outcome in
      let text =
        switch outcome {
        case .success(let bytes): "\(name): \(bytes.readableBytes)"
        case .failure(let failure): "\(name): \(failure)"
        }
      events.withLockedValue { $0.append(text) }
    }
  }

  private func giveUp(_ job: DecompressionQueue.Job, _ name: String, of queue: DecompressionQueue) {
    queue.giveUp(job) { [events] in events.withLockedValue { $0.append("\(name) released") } }
  }

  /// One thread, which waits until it is freed.
  private func withThread(
    _ body: (NIOThreadPool, BusyThreads) async throws -> Void
  ) async throws {
    let threads = NIOThreadPool(numberOfThreads: 1)
    threads.start()
    try await body(threads, BusyThreads(threads, count: 1))
    try await threads.shutdownGracefully()
  }

  @Test("a connection's inflations are done in order, one at a time, and those of others between them")
  func fairness() async throws {
    try await withThread { threads, busy in
      let packed = Packer.pack([1, 2, 3])
      try await loop.submit {
        let (greedy, honest) = (DecompressionQueue(threads), DecompressionQueue(threads))
        for name in ["a", "b", "c"] { greedy.add(job(name, packed)) }
        honest.add(job("other", [7]))
      }.get()
      busy.free()
      #expect(try await eventually { told().count == 4 })
      #expect(told().first == "a: 3" && told().last == "c: 3")
      #expect(told().dropFirst().first?.hasPrefix("other: damaged") == true, "\(told())")
    }
  }

  @Test("what is given up before a thread took it is dropped and released at once, and is not unpacked")
  func givenUpEarly() async throws {
    try await withThread { threads, busy in
      try await loop.submit {
        let queue = DecompressionQueue(threads)
        let jobs = (0..<3).map { job("\($0)", Packer.bomb(1 << 20)) }
        for job in jobs { queue.add(job) }
        // The first is with the thread, the second waits on the connection.
        for index in 0..<2 { giveUp(jobs[index], "\(index)", of: queue) }
        #expect(told() == ["0 released", "1 released"])
        #expect(jobs[0].isTaken && jobs[1].isTaken && !jobs[2].isTaken)
      }.get()
      busy.free()
      #expect(try await eventually { told().count == 3 })
      #expect(told().last == "2: \(1 << 20)")
    }
  }

  @Test("what is given up while it is unpacked is released when that is over, and the next is done")
  func givenUpLate() async throws {
    try await withThread { threads, busy in
      busy.free()
      try await loop.submit {
        let queue = DecompressionQueue(threads)
        let (first, second) = (job("first", Packer.bomb(32 << 20)), job("second", Packer.pack([1])))
        queue.add(first)
        queue.add(second)
        // The outcome comes by way of this event loop, so that it cannot be there yet.
        while !first.isTaken {}
        giveUp(first, "first", of: queue)
        #expect(told() == [])
      }.get()
      #expect(try await eventually { told().count == 2 })
      #expect(told() == ["first released", "second: 1"])
    }
  }
}
