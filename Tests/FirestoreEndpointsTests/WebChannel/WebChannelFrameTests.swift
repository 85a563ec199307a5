// Tests of WebChannel frames: their length in UTF-16 code units, and the escapes that keep characters intact.

import JSON
import NIOCore
import RandomModels
import RealtimeModel
import Testing

@testable import FirestoreEndpoints

@Suite("WebChannel frames")
struct WebChannelFrameTests {
  @Test("The length of a frame counts UTF-16 code units, and frames are ASCII")
  func lengthsAreUTF16Units() throws {
    var random = SeededGenerator(seed: 11)
    let fragments = [
      "a", "é", "e\u{301}", "Käfer", "\u{1F600}", "\u{FF5E}", "\u{FFFD}", "\u{2028}", "\u{7F}", "\\n", "日本",
    ]
    for id in 1...2000 {
      let text = (0..<random.below(12)).map { _ in fragments[random.below(fragments.count)] }.joined()
      let frame = WebChannelFrames.array(id, ByteBuffer(string: "[\"\(text)\"]"))
      let parts = String(buffer: frame).split(separator: "\n", maxSplits: 1)
      #expect(Int(parts[0]) == parts[1].utf16.count)
      #expect(parts[1].utf8.allSatisfy { $0 < 0x80 })
      let value = try JSONValue(json: String(parts[1]))
      #expect(value.array?.first?.array?.first?.int == Int64(id))
      let sent = try JSONValue(json: "\"\(text)\"")
      #expect(value.array?.first?.array?.last?.array?.first == sent)
    }
  }

  @Test("Frames match the examples of the protocol description")
  func workedExample() {
    let frame = WebChannelFrames.handshake(session: "Qm9va3NTSUQtMDAwMDAwMQ", keepAlive: .seconds(30))
    #expect(String(buffer: frame) == "50\n[[0,[\"c\",\"Qm9va3NTSUQtMDAwMDAwMQ\",\"\",8,12,30000]]]")
    #expect(
      String(buffer: WebChannelFrames.forward(hasBackChannel: true, lastArray: 5, outstandingBytes: 0))
        == "7\n[1,5,0]")
    #expect(String(buffer: WebChannelFrames.array(5, WebChannelFrames.noop)) == "14\n[[5,[\"noop\"]]]")
  }
}
