// Tests splitting messages into frames and assembling them. A message of several frames follows a frame with
// their number.

import RandomModels
import RealtimeWire
import Testing

@Suite("Frames of protocol v5")
struct FrameTests {
  private func frames(_ text: String) -> [Substring]? {
    let bytes = Array(text.utf8)
    return bytes.withUnsafeBytes { raw in MessageSplitter.frames(of: raw) }?
      .map { Substring(decoding: bytes[$0], as: UTF8.self) }
  }

  private func receive(_ assembler: inout MessageAssembler, _ text: some StringProtocol)
    -> MessageAssembler.Received
  {
    Array(text.utf8).withUnsafeBytes { assembler.receive($0) }
  }

  @Test("A message of 16,384 characters is one frame, a longer message is split")
  func threshold() {
    #expect(frames(String(repeating: "x", count: 16_384))?.count == 1)
    #expect(frames(String(repeating: "x", count: 16_385))?.map(\.count) == [16_384, 1])
    #expect(frames(String(repeating: "x", count: 40_000))?.map(\.count) == [16_384, 16_384, 7_232])
    #expect(frames("")?.count == 1)
  }

  @Test("Frames are measured in UTF-16 code units and never split a surrogate pair")
  func surrogates() throws {
    let text = String(repeating: "x", count: 16_383) + "😀" + String(repeating: "y", count: 16_382) + "z"
    let split = try #require(frames(text))
    #expect(split.map(\.utf16.count) == [16_383, 16_384, 1])
    #expect(split.joined() == text)
    #expect(frames(String(repeating: "é", count: 16_384))?.count == 1)
    #expect(frames(String(repeating: "€", count: 16_385))?.count == 2)
  }

  @Test("A message that needs more than 9,999 frames is rejected")
  func tooManyFrames() {
    let bytes = Array(repeating: UInt8(ascii: "x"), count: 3 * 9_999 + 1)
    #expect(bytes.dropLast().withUnsafeBytes { MessageSplitter.frames(of: $0, length: 3) }?.count == 9_999)
    #expect(bytes.withUnsafeBytes { MessageSplitter.frames(of: $0, length: 3) } == nil)
  }

  @Test("`fits` agrees with the number of frames that splitting gives", arguments: ["x", "é", "€", "😀"])
  func fits(character: String) {
    for count in [32_766, 32_767, 32_768, 32_769] {
      for start in ["", "x"] {
        let text = start + String(repeating: character, count: count / character.utf16.count)
        let fits = Array(text.utf8).withUnsafeBytes { MessageSplitter.fits($0, maximum: 2) }
        #expect(fits == ((frames(text)?.count ?? 0) <= 2), "\(start), \(count)")
      }
    }
  }

  @Test("Random texts are unchanged after splitting and assembling")
  func roundTrip() throws {
    var random = SeededGenerator(seed: 1)
    let alphabet = ["a", "é", "€", "😀", "0"]
    for _ in 0..<60 {
      let run = alphabet[random.below(5)]
      let text = "{" + String(repeating: run, count: random.below(40_000)) + alphabet[random.below(5)] + "}"
      let split = try #require(frames(text))
      var assembler = MessageAssembler(maximumBytes: 1 << 20)
      guard split.count > 1 else {
        #expect(receive(&assembler, text) == .message)
        continue
      }
      #expect(receive(&assembler, String(split.count)) == .nothing)
      for frame in split.dropLast() {
        #expect(frame.utf16.count <= 16_384)
        #expect(receive(&assembler, frame) == .nothing)
      }
      #expect(receive(&assembler, try #require(split.last)) == .assembled(Array(text.utf8)))
    }
  }

  @Test("Splitting is correct with characters of two, three and four bytes at the border")
  func wideCharactersAtFrameBorders() throws {
    for wide in ["é", "€", "😀"] {
      for shift in 0..<6 {
        let text = String(repeating: "x", count: 16_380 + shift) + String(repeating: wide, count: 16_390)
        let split = try #require(frames(text))
        #expect(split.allSatisfy { $0.utf16.count <= 16_384 && !$0.isEmpty })
        #expect(split.joined().utf8.elementsEqual(text.utf8), "\(wide) shifted by \(shift)")
        var assembler = MessageAssembler(maximumBytes: 1 << 20)
        #expect(receive(&assembler, String(split.count)) == .nothing)
        for frame in split.dropLast() { #expect(receive(&assembler, frame) == .nothing) }
        #expect(receive(&assembler, try #require(split.last)) == .assembled(Array(text.utf8)))
      }
    }
  }

  @Test("A frame with a zero and an empty frame are keep-alives, not messages")
  func keepAlive() {
    var assembler = MessageAssembler(maximumBytes: 100)
    #expect(receive(&assembler, "0") == .nothing)
    #expect(receive(&assembler, "") == .nothing)
    #expect(receive(&assembler, "{}") == .message)
    #expect(receive(&assembler, "000000") == .nothing)
    #expect(receive(&assembler, "{}") == .message)
  }

  @Test("After a frame count, the announced frames are parts of a message, even if they contain only digits")
  func announcedFramesWithDigits() {
    var assembler = MessageAssembler(maximumBytes: 100)
    #expect(receive(&assembler, "1") == .nothing)
    #expect(receive(&assembler, "{}") == .assembled(Array("{}".utf8)))
    #expect(receive(&assembler, "2") == .nothing)
    #expect(receive(&assembler, "7") == .nothing)
    #expect(receive(&assembler, "0") == .assembled(Array("70".utf8)))
    #expect(receive(&assembler, "{}") == .message)
  }

  @Test("Frames of a message over the limit are counted but not buffered; its request number is found")
  func oversized() {
    var assembler = MessageAssembler(maximumBytes: 10)
    #expect(receive(&assembler, "3") == .nothing)
    #expect(receive(&assembler, "{\"d\":{") == .nothing)
    #expect(receive(&assembler, "\"r\":7,\"a\"") == .nothing)
    #expect(assembler.heldBytes == 0)
    #expect(receive(&assembler, "}") == .oversized(request: 7))
    #expect(receive(&assembler, "{}") == .message)
    #expect(receive(&assembler, "1") == .nothing)
    #expect(receive(&assembler, "12345678901") == .oversized(request: nil))
  }

  @Test("After an excessive frame count the frames are counted but not buffered")
  func excessiveFrameCount() {
    var assembler = MessageAssembler(maximumBytes: 1 << 20)
    #expect(receive(&assembler, "10000") == .nothing)
    for _ in 1..<10_000 { #expect(receive(&assembler, "frame") == .nothing) }
    #expect(assembler.heldBytes == 0)
    #expect(receive(&assembler, "end") == .oversized(request: nil))
    #expect(receive(&assembler, "{}") == .message)
  }

  @Test("A frame with seven digits or other characters is a message, not a count")
  func messagesThatResembleCounts() {
    var assembler = MessageAssembler(maximumBytes: 100)
    for text in ["1234567", "-1", "1.0", "+1", " 1", "1e3"] { #expect(receive(&assembler, text) == .message) }
  }
}
