// Tests that a body queue passes a body to its consumer in order, and combines small chunks.

import NIOCore
import Testing

@testable import Ports

@Suite("Bodies that are consumed while they arrive", .timeLimit(.minutes(1)))
struct BodyQueueTests {
  @Test("Small chunks are combined in order, up to the maximum size of a chunk")
  func coalesces() async throws {
    let queue = BodyQueue {}
    let bytes = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    for byte in bytes { queue.add(ByteBuffer(bytes: [byte])) }
    queue.finish(.end)
    var received: [UInt8] = []
    var chunks = 0
    while case .chunk(let chunk) = await queue.next() {
      received += chunk
      chunks += 1
    }
    #expect(received == bytes)
    #expect(chunks == 2)
  }

  @Test(
    "If the queued chunks of a complete body are discarded, the consumer receives `broken` instead of the end"
  )
  func discardedChunks() async throws {
    let queue = BodyQueue {}
    queue.add(ByteBuffer(bytes: [1, 2, 3]))
    queue.finish(.end)
    queue.finish(.broken)
    guard case .broken = await queue.next() else {
      Issue.record("the consumer received a chunk or the end of a truncated body")
      return
    }
  }
}
