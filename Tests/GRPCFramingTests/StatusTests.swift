// Codes, their tables, and the percent-encoding of messages.

import NIOHPACK
import RandomModels
import Testing

@testable import GRPCFraming

@Suite("gRPC status")
struct StatusTests {
  @Test("Every message survives percent-encoding, and the wire form is printable ASCII", arguments: 0..<200)
  func messagesSurvive(seed: Int) {
    var generator = SeededGenerator(seed: UInt64(seed) &+ 900)
    let alphabet = Array("abc %\"\\\n\r\u{0}\u{7f}~äß😀中\u{301}0A")
    let message = String(
      (0..<Int.random(in: 0...40, using: &generator)).map { _ in
        alphabet.randomElement(using: &generator) ?? "x"
      })
    let encoded = GRPCStatus.percentEncoded(message)
    #expect(encoded.utf8.allSatisfy { (0x20...0x7e).contains($0) })
    #expect(GRPCStatus.percentDecoded(encoded) == message)
  }

  @Test(
    "Known encodings",
    arguments: [("50% of ä", "50%25 of %C3%A4"), ("plain text", "plain text"), ("a\nb", "a%0Ab"), ("", "")])
  func knownEncodings(message: String, wire: String) {
    #expect(GRPCStatus.percentEncoded(message) == wire)
    #expect(GRPCStatus.percentDecoded(wire) == message)
  }

  @Test(
    "What is no valid escape stands for itself",
    arguments: [("100%", "100%"), ("%4", "%4"), ("%zz", "%zz"), ("%e4%c3%a4", "\u{fffd}ä"), ("%%41", "%A")])
  func lenientDecoding(wire: String, message: String) {
    #expect(GRPCStatus.percentDecoded(wire) == message)
  }

  @Test("The HTTP status of every code is the product's table")
  func httpTable() {
    let table: [(GRPCStatus.Code, Int)] = [
      (.ok, 200), (.cancelled, 499), (.unknown, 500), (.invalidArgument, 400), (.deadlineExceeded, 504),
      (.notFound, 404), (.alreadyExists, 409), (.permissionDenied, 403), (.resourceExhausted, 429),
      (.failedPrecondition, 400), (.aborted, 409), (.outOfRange, 400), (.unimplemented, 501),
      (.internal, 500),
      (.unavailable, 503), (.dataLoss, 500), (.unauthenticated, 401),
    ]
    for (index, (code, status)) in table.enumerated() {
      #expect(code.rawValue == UInt32(index))
      #expect(code.httpStatus == status)
    }
    #expect(GRPCStatus.Code(rawValue: 99).name == "UNKNOWN")
    #expect(GRPCStatus.Code.failedPrecondition.name == "FAILED_PRECONDITION")
  }

  @Test(
    "Timeouts read as the specification says",
    arguments: [
      ("1n", 1), ("250m", 250_000_000), ("10S", 10_000_000_000), ("3u", 3_000), ("2M", 120_000_000_000),
      ("1H", 3_600_000_000_000), ("0S", 0), ("99999999H", Int64.max),
    ] as [(String, Int64)])
  func timeouts(header: String, nanoseconds: Int64) {
    #expect(GRPCTimeout(headerValue: header)?.nanoseconds == nanoseconds)
  }

  @Test(
    "Malformed timeouts are refused",
    arguments: ["", "S", "10", "-1S", "1.5S", "123456789S", "1s", "1 S", "１S", "+1S"])
  func malformedTimeouts(header: String) {
    #expect(GRPCTimeout(headerValue: header) == nil)
  }

  @Test("A written timeout reads back no shorter and within a hundredth of a percent", arguments: 0..<200)
  func timeoutRoundTrip(seed: Int) {
    var generator = SeededGenerator(seed: UInt64(seed))
    let length = Int64.random(
      in: 0...(Int64.max >> Int64.random(in: 11...60, using: &generator)), using: &generator)
    let back = GRPCTimeout(headerValue: GRPCTimeout(nanoseconds: length).headerValue)?.nanoseconds ?? -1
    #expect(back >= length)
    #expect(back - length <= length / 10_000)
  }
}
