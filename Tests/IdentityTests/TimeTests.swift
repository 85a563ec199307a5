// Tests of times, time-based codes and their encodings against published vectors.

import Identity
import Testing

@Suite("Times and time-based codes")
struct TimeTests {
  @Test("Milliseconds are formatted as RFC 3339 in UTC")
  func rfc3339() {
    #expect(RFC3339.text(0) == "1970-01-01T00:00:00.000Z")
    #expect(RFC3339.text(1_700_000_000_000) == "2023-11-14T22:13:20.000Z")
    #expect(RFC3339.text(951_782_400_123) == "2000-02-29T00:00:00.123Z")
    #expect(RFC3339.text(-1) == "1969-12-31T23:59:59.999Z")
  }

  @Test("Codes equal the last six digits of the vectors of RFC 6238")
  func timeBasedCodes() {
    let secret = Array("12345678901234567890".utf8)
    let vectors: [(Int64, String)] = [
      (59, "287082"), (1_111_111_109, "081804"), (1_111_111_111, "050471"), (1_234_567_890, "005924"),
      (2_000_000_000, "279037"), (20_000_000_000, "353130"),
    ]
    for (seconds, code) in vectors {
      #expect(TimeBasedCode.code(secret: secret, step: seconds / 30) == code)
    }
  }

  @Test("A time-based code is accepted only within the allowed time steps, and only once")
  func acceptedSteps() {
    let secret = Array("12345678901234567890".utf8)
    let code = TimeBasedCode.code(secret: secret, step: 100)
    func step(_ seconds: Int64, _ last: Int64) -> Int64? {
      TimeBasedCode.step(of: code, secret: secret, seconds: seconds, adjacent: 1, after: last)
    }
    #expect(step(3000, 0) == 100)
    #expect(step(3030, 0) == 100)
    #expect(step(2970, 0) == 100)
    #expect(step(3060, 0) == nil)
    #expect(step(3000, 100) == nil)
  }

  @Test("Base32 equals the vectors of RFC 4648 without padding")
  func base32() {
    let vectors = [
      "": "", "f": "MY", "fo": "MZXQ", "foo": "MZXW6", "foob": "MZXW6YQ", "foobar": "MZXW6YTBOI",
    ]
    for (text, encoded) in vectors { #expect(Base32.encode(Array(text.utf8)) == encoded) }
  }
}
