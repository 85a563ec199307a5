// The queue between a request's body and its consumer: order, and merging of small chunks.

import NIOCore
import Testing

@testable import Endpoints

@Suite("Body queue", .timeLimit(.minutes(1)))
struct BodyQueueTests {
  @Test("small chunks are merged in order, up to the maximum chunk size")
  func coalesces() async throws {
    let queue = BodyQueue(resume: {})
    let bytes = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    for byte in bytes { queue.add(ByteBuffer(bytes: [byte])) }
    queue.finish(.end)
    var taken: [UInt8] = []
    var pieces = 0
    while case .chunk(let piece) = await queue.next() {
      taken += piece
      pieces += 1
    }
    #expect(taken == bytes)
    #expect(pieces == 2)
  }
}
