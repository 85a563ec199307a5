// Tests MD5 against the vectors of RFC 1321 and digests of another implementation.

import Testing

@testable import FirestoreModel

@Suite("MD5", .timeLimit(.minutes(1)))
struct MD5Tests {
  private func digest(_ message: [UInt8]) -> [UInt8] {
    let (first, second) = message.withUnsafeBytes { MD5.digest(of: $0) }
    return [first, second].flatMap { half in (0..<8).map { UInt8(truncatingIfNeeded: half >> (8 * $0)) } }
  }

  private func hexadecimal(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  @Test("The test vectors of RFC 1321 have the published digests")
  func vectors() {
    let vectors = [
      ("", "d41d8cd98f00b204e9800998ecf8427e"), ("abc", "900150983cd24fb0d6963f7d28e17f72"),
      ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
      (String(repeating: "1234567890", count: 8), "57edf4a22be3c955ac49da2e2107b67a"),
    ]
    for (text, expected) in vectors { #expect(hexadecimal(digest(Array(text.utf8))) == expected) }
  }

  @Test("Messages that end at any position of a block have the digests of Python's hashlib")
  func lengths() {
    var all: [UInt8] = []
    for count in 0..<300 { all += digest((0..<count).map { UInt8(truncatingIfNeeded: $0 * 7 + count) }) }
    #expect(hexadecimal(digest(all)) == "07078cab541bc45f0a66e2c0213a32f4")
  }
}
