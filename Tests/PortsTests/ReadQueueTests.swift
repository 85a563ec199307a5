// Tests the limit on concurrent reads over REST: the order of waiting reads, and cancellation.

import NIOConcurrencyHelpers
import Testing

@testable import Ports

@Suite("Queue of reads over REST")
struct ReadQueueTests {
  /// Blocks reads until the test calls `end()`.
  private struct Blocker {
    private let ends: AsyncStream<Void>.Continuation
    private let ended: Task<Void, Never>

    init() {
      let (gates, ends) = AsyncStream.makeStream(of: Void.self)
      self.ends = ends
      ended = Task { for await _ in gates {} }
    }

    func wait() async { await ended.value }

    func end() { ends.finish() }
  }

  @Test("Reads up to the maximum run concurrently, and further reads start in the order of their arrival")
  func order() async {
    let queue = ReadQueue(maximumConcurrentReads: 1)
    let blocker = Blocker()
    let (started, start) = AsyncStream.makeStream(of: Int.self)
    for index in 0..<5 {
      _ = queue.start {
        start.yield(index)
        await blocker.wait()
      }
    }
    var found = started.makeAsyncIterator()
    #expect(await found.next() == 0)
    blocker.end()
    for index in 1..<5 { #expect(await found.next() == index) }
  }

  @Test("A read that is cancelled while it waits never starts and delays no other read")
  func cancelledWhileWaiting() async {
    let queue = ReadQueue(maximumConcurrentReads: 2)
    let blocker = Blocker()
    let (started, start) = AsyncStream.makeStream(of: Int.self)
    let running = (0..<2).map { index in
      queue.start {
        start.yield(index)
        await blocker.wait()
      }
    }
    var found = started.makeAsyncIterator()
    let first = [await found.next(), await found.next()]
    #expect(first.compactMap(\.self).sorted() == [0, 1])
    let cancelled = queue.start { start.yield(2) }
    let waiting = queue.start { start.yield(3) }
    #expect(cancelled.cancelIfWaiting())
    #expect(!cancelled.cancelIfWaiting())
    #expect(!running[0].cancelIfWaiting())
    blocker.end()
    #expect(await found.next() == 3)
    #expect(!waiting.cancelIfWaiting())
  }

  @Test("Cancelling a running read cancels its task")
  func cancelledWhileRunning() async {
    let queue = ReadQueue(maximumConcurrentReads: 1)
    let (events, event) = AsyncStream.makeStream(of: Bool.self)
    let read = queue.start {
      event.yield(false)
      // The sleep is far longer than the test waits, so only cancellation can end it.
      try? await Task.sleep(for: .seconds(3600))
      event.yield(Task.isCancelled)
    }
    var found = events.makeAsyncIterator()
    #expect(await found.next() == false)
    read.cancel()
    #expect(await found.next() == true)
  }
}
