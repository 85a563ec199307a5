// Tests assembling messages from numbered segments, which arrive in any order, may repeat and may be invalid.

import RandomModels
import RealtimeWire
import Testing

@testable import RealtimeEndpoints

@Suite("Segments of messages from browsers")
struct SegmentAssemblerTests {
  /// Splits messages into segments of random sizes.
  static func segments(of messages: [[UInt8]], _ random: inout SeededGenerator) -> [Segment] {
    var segments: [Segment] = []
    for message in messages {
      let text = Array(LongPollClient.base64(message).utf8)
      let size = Int.random(in: 1...40, using: &random)
      let starts = Array(stride(from: 0, to: max(1, text.count), by: size))
      for start in starts {
        segments.append(
          Segment(
            number: segments.count, total: starts.count,
            text: String(decoding: text[start..<min(start + size, text.count)], as: UTF8.self)))
      }
    }
    return segments
  }

  @Test(
    "from segments that repeat and are out of order, each message results once and in order",
    arguments: 1...40)
  func anyOrder(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let messages = (0..<Int.random(in: 1...30, using: &random)).map { _ in
      (0..<Int.random(in: 1...200, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
    }
    var segments = Self.segments(of: messages, &random)
    // Moves each segment by a few positions, and repeats some.
    var keyed = segments.map { (Double($0.number) + .random(in: 0...8, using: &random), $0) }
    keyed += segments.filter { _ in .random(using: &random) }
      .map { (Double($0.number) + .random(in: 0...20, using: &random), $0) }
    segments = keyed.sorted { $0.0 < $1.0 }.map(\.1)
    var assembler = SegmentAssembler(maximumBytes: 1 << 20, window: 64)
    var received: [[UInt8]] = []
    for segment in segments {
      for case .assembled(let bytes) in try assembler.receive(segment) { received.append(bytes) }
    }
    #expect(received == messages)
  }

  @Test("a message over the limit is reported with its request number, and the next message is complete")
  func oversized() throws {
    var random = SeededGenerator(seed: 5)
    let large =
      Array(#"{"t":"d","d":{"r":7,"a":"p","b":{"p":"/x","d":""#.utf8) + [UInt8](repeating: 0x61, count: 9000)
    var assembler = SegmentAssembler(maximumBytes: 6000, window: 10_000)
    var received: [MessageAssembler.Received] = []
    for segment in Self.segments(of: [large, Array("next".utf8)], &random) {
      received += try assembler.receive(segment)
    }
    #expect(received == [.oversized(request: 7), .assembled(Array("next".utf8))])
  }

  @Test("the size limit of a message is exact to the byte, for any base64 padding", arguments: [9, 10, 11])
  func exactLimit(count: Int) throws {
    let message = [UInt8](repeating: 0x61, count: count)
    let text = Array(LongPollClient.base64(message).utf8)
    let starts = Array(stride(from: 0, to: text.count, by: 4))
    for limit in [count - 1, count] {
      var assembler = SegmentAssembler(maximumBytes: limit, window: 100)
      var received: [MessageAssembler.Received] = []
      for (number, start) in starts.enumerated() {
        let piece = String(decoding: text[start..<min(start + 4, text.count)], as: UTF8.self)
        received += try assembler.receive(Segment(number: number, total: starts.count, text: piece))
      }
      if limit == count {
        #expect(received == [.assembled(message)])
      } else if case .oversized? = received.first {
        #expect(received.count == 1)
      } else {
        Issue.record("\(count) bytes are \(received)")
      }
    }
  }

  @Test("segments too far ahead, contradictory totals and invalid base64 have different errors")
  func faults() {
    var window = SegmentAssembler(maximumBytes: 100, window: 4)
    #expect(throws: SegmentAssembler.Fault.tooFarAhead) {
      try window.receive(Segment(number: 4, total: 1, text: "AAAA"))
    }
    var bytes = SegmentAssembler(maximumBytes: 10, window: 100)
    #expect(throws: SegmentAssembler.Fault.tooFarAhead) {
      _ = try bytes.receive(Segment(number: 1, total: 1, text: "AAAAAAAA"))
      _ = try bytes.receive(Segment(number: 2, total: 1, text: "AAAAAAAA"))
    }
    var total = SegmentAssembler(maximumBytes: 100, window: 4)
    #expect(throws: SegmentAssembler.Fault.inconsistent) {
      _ = try total.receive(Segment(number: 0, total: 2, text: "AAAA"))
      _ = try total.receive(Segment(number: 1, total: 3, text: "AAAA"))
    }
    for text in ["A", "AA+A", "AA/A", "A...", "A A A", "...."] {
      var assembler = SegmentAssembler(maximumBytes: 100, window: 4)
      #expect(throws: SegmentAssembler.Fault.notBase64, "\(text)") {
        try assembler.receive(Segment(number: 0, total: 1, text: text))
      }
    }
  }

  @Test(
    "`heldBytes` includes the memory overhead of segments that wait for earlier segments, until they are assembled"
  )
  func keptSegments() throws {
    var assembler = SegmentAssembler(maximumBytes: 1 << 20, window: 1024)
    for number in 1...1000 { _ = try assembler.receive(Segment(number: number, total: 1, text: "QUJD")) }
    #expect(assembler.heldBytes >= 100_000)
    #expect(try assembler.receive(Segment(number: 0, total: 1, text: "QUJD")).count == 1001)
    #expect(assembler.heldBytes == 0)
  }
}
