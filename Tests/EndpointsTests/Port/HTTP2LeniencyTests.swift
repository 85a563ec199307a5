// Which frames are left out before frames are made of them, however the bytes are cut.

import NIOCore
import Testing

@testable import Endpoints

@Suite("Frames that are left out")
struct HTTP2LeniencyTests {
  private typealias Raw = RawFrames

  /// What comes, and what is handed on of it.
  private static let cases: [(came: [UInt8], passed: [UInt8], owed: Int)] = {
    let head = Raw.head("/a/b", stream: 1)
    let block = Array(head.dropFirst(9))
    let body = Raw.frame(type: 0, stream: 1, [1, 2, 3])
    let short = Raw.frame(type: 2, stream: 1, [1, 2, 3])
    let itself = Raw.frame(type: 2, stream: 1, [0, 0, 0, 1, 9])
    return [
      (head + short + body + itself + Raw.ping, head + body + Raw.ping, 0),
      (itself, [], 0),
      // Of the connection, and too large to be allowed at all.
      (Raw.frame(type: 2, stream: 0, [0, 0, 0, 1, 9]), Raw.frame(type: 2, stream: 0, [0, 0, 0, 1, 9]), 0),
      (
        Raw.frame(type: 2, stream: 1, Array(repeating: 0, count: 16_385)),
        Raw.frame(type: 2, stream: 1, Array(repeating: 0, count: 16_385)), 0
      ),
      // Within a field block everything breaks the connection.
      (
        Raw.frame(type: 1, stream: 1, block) + short + Raw.frame(type: 9, flags: 4, stream: 1) + short,
        Raw.frame(type: 1, stream: 1, block) + short + Raw.frame(type: 9, flags: 4, stream: 1), 0
      ),
      (
        Raw.frame(type: 1, flags: 0x24, stream: 1, [0x80, 0, 0, 1, 9] + block) + body,
        Raw.frame(type: 1, flags: 0x24, stream: 1, [0, 0, 0, 0, 9] + block) + body, 0
      ),
      (
        Raw.frame(type: 1, flags: 0x2c, stream: 1, [1, 1, 2, 3, 1, 9] + block + [0]),
        Raw.frame(type: 1, flags: 0x2c, stream: 1, [1, 0, 0, 0, 0, 9] + block + [0]), 0
      ),
      (head + body + Raw.reset(1) + body + body + Raw.ping, head + body + Raw.reset(1) + Raw.ping, 6),
      (head + Raw.reset(3) + body, head + Raw.reset(3) + body, 0),
    ]
  }()

  @Test("Frames are left out or blotted whole, however they are cut", arguments: 0..<9)
  func cuts(index: Int) {
    let (came, passed, owed) = Self.cases[index]
    let all = Raw.opening + came
    let sizes = all.count < 1000 ? Array(1...20) + [all.count] : [7, 1000, all.count]
    for size in sizes {
      var leniency = HTTP2Leniency()
      var output: [UInt8] = []
      for start in stride(from: 0, to: all.count, by: size) {
        let piece = ByteBuffer(bytes: all[start..<min(all.count, start + size)])
        output += Array(leniency.pass(piece).readableBytesView)
      }
      #expect(output == Raw.opening + passed, "pieces of \(size)")
      #expect(leniency.owed == owed)
      let (little, all) = (leniency.giveBack(atLeast: 7), leniency.giveBack(atLeast: 1))
      #expect(little == nil && all == (owed > 0 ? owed : nil) && leniency.owed == 0)
    }
  }

  @Test("A field block counts until its last frame has come whole", arguments: [1, 7, 100_000])
  func fieldBlocks(size: Int) {
    /// What is counted behind each frame's header, before its last byte and behind it.
    func counts(_ lengths: [Int]) -> [Int] {
      var leniency = HTTP2Leniency()
      func pass(_ bytes: [UInt8]) -> Int {
        for start in stride(from: 0, to: bytes.count, by: size) {
          _ = leniency.pass(ByteBuffer(bytes: bytes[start..<min(bytes.count, start + size)]))
        }
        return leniency.fieldBlockBytes
      }
      var found = [pass(Raw.opening)]
      for (index, length) in lengths.enumerated() {
        let frame = Raw.frame(
          type: index == 0 ? 1 : 9, flags: index == lengths.count - 1 ? 4 : 0, stream: 1,
          Array(repeating: 0, count: length))
        found.append(pass(Array(frame.prefix(9))))
        if length > 1 { found.append(pass(Array(frame[9..<8 + length]))) }
        if length > 0 { found.append(pass(Array(frame.suffix(1)))) }
      }
      return found + [pass(Raw.ping)]
    }
    #expect(counts([100]) == [0, 100, 100, 0, 0])
    #expect(counts([100, 50, 200]) == [0, 100, 100, 100, 150, 150, 150, 350, 350, 0, 0])
    #expect(counts([100, 0]) == [0, 100, 100, 100, 0, 0])
    #expect(counts([0, 16_384]) == [0, 0, 16_384, 16_384, 0, 0])
  }
}
