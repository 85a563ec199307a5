// Tests the frame filter, independent of how the input is divided into reads. Before NIOHTTP2 parses the input,
// the filter removes PRIORITY frames and DATA frames of reset streams, and overwrites the priorities in HEADERS
// frames. NIOHTTP2 would treat an invalid priority as an error of the connection, although it concerns only one stream.

import NIOCore
import Testing

@testable import EndpointFixture
@testable import Ports

@Suite("HTTP/2 frame filter")
struct HTTP2FrameFilterTests {
  private typealias Raw = RawFrames

  /// Input bytes, the bytes that are passed on, and the dropped bytes that the connection's window still
  /// needs.
  private static let cases: [(input: [UInt8], expected: [UInt8], windowCredit: Int)] = {
    let head = Raw.head("/a/b", stream: 1)
    let block = Array(head.dropFirst(9))
    let body = Raw.frame(type: 0, stream: 1, [1, 2, 3])
    let shortPriority = Raw.frame(type: 2, stream: 1, [1, 2, 3])
    let selfDependency = Raw.frame(type: 2, stream: 1, [0, 0, 0, 1, 9])
    return [
      (head + shortPriority + body + selfDependency + Raw.ping, head + body + Raw.ping, 0),
      (selfDependency, [], 0),
      // Two PRIORITY frames that pass, because they are errors of the connection: the first is on stream 0, the
      // second exceeds the maximum size of a frame.
      (Raw.frame(type: 2, stream: 0, [0, 0, 0, 1, 9]), Raw.frame(type: 2, stream: 0, [0, 0, 0, 1, 9]), 0),
      (
        Raw.frame(type: 2, stream: 1, Array(repeating: 0, count: 16_385)),
        Raw.frame(type: 2, stream: 1, Array(repeating: 0, count: 16_385)), 0
      ),
      // A PRIORITY frame within a field block passes, because it is an error of the connection. After the block it
      // is removed.
      (
        Raw.frame(type: 1, stream: 1, block) + shortPriority + Raw.frame(type: 9, flags: 4, stream: 1)
          + shortPriority,
        Raw.frame(type: 1, stream: 1, block) + shortPriority + Raw.frame(type: 9, flags: 4, stream: 1), 0
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

  @Test("Frames are removed or overwritten completely, independent of the read sizes", arguments: 0..<9)
  func dividedFrames(index: Int) {
    let (input, expected, windowCredit) = Self.cases[index]
    let all = Raw.opening + input
    let sizes = all.count < 1000 ? Array(1...20) + [all.count] : [7, 1000, all.count]
    for size in sizes {
      var filter = HTTP2FrameFilter()
      var output: [UInt8] = []
      for start in stride(from: 0, to: all.count, by: size) {
        let chunk = ByteBuffer(bytes: all[start..<min(all.count, start + size)])
        output += Array(filter.filter(chunk).readableBytesView)
      }
      #expect(output == Raw.opening + expected, "chunks of \(size) bytes")
      #expect(filter.windowCredit == windowCredit)
      let (little, all) = (filter.useWindowCredit(atLeast: 7), filter.useWindowCredit(atLeast: 1))
      #expect(little == nil && all == (windowCredit > 0 ? windowCredit : nil) && filter.windowCredit == 0)
    }
  }

  @Test(
    "The bytes of a field block count as held until its last frame is complete", arguments: [1, 7, 100_000])
  func fieldBlocks(size: Int) {
    /// Returns the counted bytes at these points: after the opening; in each frame after its header, before its last
    /// byte and after its last byte; after a PING frame at the end.
    func countedBytes(_ lengths: [Int]) -> [Int] {
      var filter = HTTP2FrameFilter()
      func pass(_ bytes: [UInt8]) -> Int {
        for start in stride(from: 0, to: bytes.count, by: size) {
          _ = filter.filter(ByteBuffer(bytes: bytes[start..<min(bytes.count, start + size)]))
        }
        return filter.fieldBlockBytes
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
    #expect(countedBytes([100]) == [0, 100, 100, 0, 0])
    #expect(countedBytes([100, 50, 200]) == [0, 100, 100, 100, 150, 150, 150, 350, 350, 0, 0])
    #expect(countedBytes([100, 0]) == [0, 100, 100, 100, 0, 0])
    #expect(countedBytes([0, 16_384]) == [0, 0, 16_384, 16_384, 0, 0])
  }
}
