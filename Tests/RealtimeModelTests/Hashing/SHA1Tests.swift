// Tests SHA-1 against the vectors of RFC 3174 and digests of another implementation.

import Testing

@testable import RealtimeModel

@Suite("SHA-1", .timeLimit(.minutes(1)))
struct SHA1Tests {
  private func digest(_ message: [UInt8]) -> [UInt8] { message.withUnsafeBytes { SHA1.digest(of: $0) } }

  private func hexadecimal(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  @Test("The test vectors of RFC 3174 have the published digests")
  func vectors() {
    let vectors = [
      ("", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
      ("abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
      (
        "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "84983e441c3bd26ebaae4aa1f95129e5e54670f1"
      ),
      (String(repeating: "a", count: 1_000_000), "34aa973cd4c4daa4f61eeb2bdbad27316534016f"),
    ]
    for (text, expected) in vectors { #expect(hexadecimal(digest(Array(text.utf8))) == expected) }
  }

  @Test("Messages that end at any position of a block have the digests of Python's hashlib")
  func lengths() {
    var all: [UInt8] = []
    for count in 0..<300 { all += digest((0..<count).map { UInt8(truncatingIfNeeded: $0 * 7 + count) }) }
    #expect(hexadecimal(digest(all)) == "dfc942b5ddc5fe6421ccada9be50fa42e873926c")
  }
}
