// Tests base64 with RFC 4648's test vectors and random bytes.

import JSON
import Testing

@Suite("Base64")
struct Base64Tests {
  private static let padding = [UInt8(ascii: "="), UInt8(ascii: ".")]

  @Test("The test vectors of RFC 4648, section 10, encode and decode")
  func vectors() {
    let vectors = [
      ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
      ("foobar", "Zm9vYmFy"),
    ]
    for (plain, encoded) in vectors {
      let bytes = Array(plain.utf8)
      #expect(Base64.encode(bytes) == encoded)
      #expect(Base64.decode(encoded.utf8, .either, paddedBy: Self.padding) == bytes)
      #expect(Base64.decode(encoded.utf8.filter { $0 != UInt8(ascii: "=") }, .urlSafe) == bytes)
    }
  }

  @Test("Random bytes are unchanged after encoding and decoding, with and without padding, in both alphabets")
  func random() {
    var generator = SystemRandomNumberGenerator()
    for count in 0..<300 {
      let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
      let text = Base64.encode(bytes)
      #expect(text.utf8.count == (count + 2) / 3 * 4)
      #expect(Base64.decode(text.utf8, .either, paddedBy: Self.padding) == bytes)
      let safe = text.map { ["+": "-", "/": "_", "=": "."][$0] ?? $0 }.reduce(into: "") { $0.append($1) }
      #expect(Base64.decode(safe.utf8, .urlSafe, paddedBy: Self.padding) == bytes)
      #expect(Base64.decode(safe.utf8, .either, paddedBy: Self.padding) == bytes)
    }
  }

  @Test(
    "Invalid base64 is rejected",
    arguments: ["A", "A===", "AA=", "AAA==", "====", "=", "AA=A", "AA A", "AAAAA", "Zg==\n", "é", "AA*A"])
  func rejected(text: String) {
    #expect(Base64.decode(text.utf8, .either, paddedBy: Self.padding) == nil)
  }

  @Test("The URL-safe alphabet rejects the standard alphabet's last characters")
  func alphabets() {
    #expect(Base64.decode("-_-_".utf8, .urlSafe) == Base64.decode("+/+/".utf8, .either))
    #expect(Base64.decode("+/+/".utf8, .urlSafe) == nil)
  }
}
