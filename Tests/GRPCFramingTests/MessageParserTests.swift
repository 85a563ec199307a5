// Tests the incremental message parser with random messages, whose bytes arrive in random chunks.

import GRPCFraming
import NIOCore
import RandomModels
import Testing

@Suite("gRPC messages")
struct MessageParserTests {
  /// The results of the parser for bytes that arrive in the given chunks.
  private func parse(_ chunks: [ArraySlice<UInt8>], limit: Int = 1 << 20) -> ([[UInt8]], GRPCStatus?) {
    var parser = GRPCMessageParser(maximumMessageSize: limit)
    var messages: [[UInt8]] = []
    for chunk in chunks {
      parser.append(ByteBuffer(bytes: chunk))
      do {
        while let message = try parser.next() { messages.append(Array(message.readableBytesView)) }
      } catch {
        return (messages, error)
      }
    }
    return (messages, nil)
  }

  private func split(_ bytes: [UInt8], using generator: inout SeededGenerator) -> [ArraySlice<UInt8>] {
    var chunks: [ArraySlice<UInt8>] = []
    var start = 0
    let longest = Int.random(in: 1...40, using: &generator)
    while start < bytes.count {
      let end = min(bytes.count, start + Int.random(in: 0...longest, using: &generator))
      chunks.append(bytes[start..<end])
      start = end
    }
    return chunks
  }

  @Test("Any split of the bytes yields the same messages", arguments: 0..<300)
  func anySplitYieldsTheSameMessages(seed: Int) throws {
    var generator = SeededGenerator(seed: UInt64(seed))
    let messages = (0..<Int.random(in: 0...12, using: &generator)).map { _ in
      generator.bytes([0, 1, 4, 5, 6, 90].randomElement(using: &generator) ?? 0)
    }
    var wire = ByteBuffer()
    for message in messages { wire.writeGRPCMessage(bytes: message) }
    let bytes = Array(wire.readableBytesView)
    let (parsed, failure) = parse(split(bytes, using: &generator))
    #expect(failure == nil)
    #expect(parsed == messages)
    #expect(parse([bytes[...]]).0 == messages)
  }

  @Test("Splitting the bytes at any position, or after every byte, yields the same messages")
  func everySplit() {
    let messages: [[UInt8]] = [[], [7], Array(0...90), [0, 0, 0, 0, 5], []]
    var wire = ByteBuffer()
    for message in messages { wire.writeGRPCMessage(bytes: message) }
    let bytes = Array(wire.readableBytesView)
    for position in 0...bytes.count {
      let (parsed, failure) = parse([bytes[..<position], bytes[position...]])
      #expect(failure == nil && parsed == messages, "split at \(position)")
    }
    #expect(parse(bytes.indices.map { bytes[$0...$0] }).0 == messages)
  }

  @Test("Random bytes never crash, and an error is final", arguments: 0..<300)
  func randomBytesNeverCrash(seed: Int) {
    var generator = SeededGenerator(seed: UInt64(seed) &+ 7_000)
    var bytes = generator.bytes(Int.random(in: 0...400, using: &generator))
    if Bool.random(using: &generator), bytes.count > 3 {
      // A short first message, so that later bytes are parsed as well.
      bytes.replaceSubrange(0..<4, with: [0, 0, 0, 0])
    }
    var parser = GRPCMessageParser(maximumMessageSize: 200)
    var failure: GRPCStatus?
    for chunk in split(bytes, using: &generator) {
      parser.append(ByteBuffer(bytes: chunk))
      while true {
        do {
          guard let message = try parser.next() else { break }
          #expect(failure == nil)
          #expect(message.readableBytes <= 200)
        } catch {
          if let failure { #expect(failure == error) }
          failure = error
          break
        }
      }
    }
  }

  @Test("A message at the limit is accepted; one byte more is RESOURCE_EXHAUSTED with the limit and the size")
  func limit() {
    var atLimit = ByteBuffer()
    atLimit.writeGRPCMessage(bytes: [UInt8](repeating: 7, count: 100))
    #expect(parse([Array(atLimit.readableBytesView)[...]], limit: 100).0.count == 1)

    // The parser rejects the prefix before any of the message arrives.
    let (messages, failure) = parse([[0, 0, 0, 0, 101]], limit: 100)
    #expect(messages.isEmpty)
    #expect(failure?.code == .resourceExhausted)
    #expect(failure?.message.contains("101 bytes") == true)
    #expect(failure?.message.contains("100 bytes") == true)
  }

  @Test("The default limit is 17 MiB")
  func defaultLimit() throws {
    var parser = GRPCMessageParser()
    parser.append(ByteBuffer(bytes: [0, 0x01, 0x10, 0x00, 0x00]))  // 17 MiB exactly
    #expect(try parser.next() == nil)
    var rejecting = GRPCMessageParser()
    rejecting.append(ByteBuffer(bytes: [0, 0x01, 0x10, 0x00, 0x01]))
    #expect(throws: GRPCStatus.self) { try rejecting.next() }
  }

  @Test("A compressed message without an encoding and an undefined flag are INTERNAL")
  func flags() {
    #expect(parse([[1, 0, 0, 0, 0]]).1?.code == .internal)
    #expect(parse([[2, 0, 0, 0, 0]]).1?.code == .internal)
    #expect(parse([[255, 0, 0, 0, 0]]).1?.code == .internal)
  }

  @Test("Messages before a malformed one are delivered")
  func messagesBeforeAMalformedMessage() {
    let (messages, failure) = parse([[0, 0, 0, 0, 1, 9, 3, 0, 0, 0, 0]])
    #expect(messages == [[9]])
    #expect(failure?.code == .internal)
  }

  @Test("If the closure that writes a message throws, the buffer stays unchanged")
  func failingBody() throws {
    var buffer = ByteBuffer()
    buffer.writeGRPCMessage(bytes: [1, 2])
    let before = buffer
    #expect(throws: GRPCStatus.self) {
      try buffer.writeGRPCMessage { (buffer: inout ByteBuffer) throws(GRPCStatus) in
        buffer.writeBytes([9, 9, 9])
        throw GRPCStatus(.internal)
      }
    }
    #expect(buffer == before)
    try buffer.writeGRPCMessage { (buffer: inout ByteBuffer) throws(GRPCStatus) in
      buffer.writeBytes([3])
    }
    #expect(Array(buffer.readableBytesView) == [0, 0, 0, 0, 2, 1, 2, 0, 0, 0, 0, 1, 3])
  }
}
