// A body on its way to whoever takes it: in order, and many small pieces as one.

import NIOCore
import Testing

@testable import Endpoints

@Suite("Bodies that are taken while they arrive", .timeLimit(.minutes(1)))
struct BodyQueueTests {
  @Test("What has come in small pieces is taken as one, in order, up to what one piece may have")
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
