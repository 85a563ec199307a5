// Tests status codes, their mappings, and the percent-encoding of messages.

import NIOCore
import NIOHPACK
import RandomModels
import Testing

@testable import GRPCFraming

@Suite("gRPC status")
struct StatusTests {
  @Test(
    "Percent-encoding and decoding leaves every message unchanged, and the encoded form is printable ASCII",
    arguments: 0..<200)
  func messageRoundTrip(seed: Int) {
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
    "Known messages have the expected encoded form",
    arguments: [("50% of ä", "50%25 of %C3%A4"), ("plain text", "plain text"), ("a\nb", "a%0Ab"), ("", "")])
  func knownEncodings(message: String, wire: String) {
    #expect(GRPCStatus.percentEncoded(message) == wire)
    #expect(GRPCStatus.percentDecoded(wire) == message)
  }

  @Test("A message over the limit is truncated between characters")
  func longMessages() {
    for (letter, size) in [("x", 1), ("%", 3), ("\u{E9}", 6), ("\u{4E2D}", 9), ("\u{1F600}", 12)] {
      let maximumCount = GRPCStatus.maximumMessageBytes / size
      let longest = String(repeating: letter, count: maximumCount)
      #expect(GRPCStatus.truncated(longest) == longest)
      for count in [maximumCount + 1, 2 * maximumCount, 30_000] {
        let short = GRPCStatus.truncated(String(repeating: letter, count: count))
        #expect(short == String(repeating: letter, count: (4_096 - 9) / size) + "\u{2026}")
        #expect(GRPCStatus.percentEncoded(short).utf8.count <= GRPCStatus.maximumMessageBytes)
      }
    }
    // One character with many combining marks.
    let marks = "e" + String(repeating: "\u{301}", count: 30_000)
    #expect(GRPCStatus.percentEncoded(GRPCStatus.truncated(marks)).utf8.count <= 4_096)
  }

  @Test("The headers of every status are smaller than 8 KiB, and smaller than one frame")
  func longStatuses() throws {
    for letter in ["x", "\\", "\u{E9}"] {
      let long = String(repeating: letter, count: 30_000)
      for (message, description) in [(long, "d"), (long, long), ("m", long), ("m", "d")] {
        var status = GRPCStatus(.invalidArgument, message)
        status.details = .init(
          fieldViolations: [.init(field: "f", description: description)], reason: "R", domain: "d")
        let headers = GRPCServerStream.trailersOnly(status)
        #expect(headers.listSize < 8 << 10)
        if message == "m" {
          #expect(headers.contains(name: "grpc-status-details-bin") == (description == "d"))
        }
        #expect(headers.first(name: "grpc-message")?.isEmpty == false)
        var block = ByteBuffer()
        var encoder = HPACKEncoder(allocator: ByteBufferAllocator())
        try encoder.encode(headers: headers, to: &block)
        #expect(block.readableBytes < 16 << 10)
      }
    }
  }

  @Test(
    "An invalid escape decodes to itself",
    arguments: [("100%", "100%"), ("%4", "%4"), ("%zz", "%zz"), ("%e4%c3%a4", "\u{fffd}ä"), ("%%41", "%A")])
  func lenientDecoding(wire: String, message: String) {
    #expect(GRPCStatus.percentDecoded(wire) == message)
  }

  @Test("Every code has the HTTP status that Google's REST interfaces return for it")
  func httpStatuses() {
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
    "Header values are parsed to the specified timeouts",
    arguments: [
      ("1n", 1), ("250m", 250_000_000), ("10S", 10_000_000_000), ("3u", 3_000), ("2M", 120_000_000_000),
      ("1H", 3_600_000_000_000), ("0S", 0), ("99999999H", Int64.max),
    ] as [(String, Int64)])
  func timeouts(header: String, nanoseconds: Int64) {
    #expect(GRPCTimeout(headerValue: header)?.nanoseconds == nanoseconds)
  }

  @Test(
    "Malformed timeouts are rejected",
    arguments: ["", "S", "10", "-1S", "1.5S", "123456789S", "1s", "1 S", "１S", "+1S"])
  func malformedTimeouts(header: String) {
    #expect(GRPCTimeout(headerValue: header) == nil)
  }

  @Test("A written timeout reads back equal or at most 0.01 % longer", arguments: 0..<200)
  func timeoutRoundTrip(seed: Int) {
    var generator = SeededGenerator(seed: UInt64(seed))
    let length = Int64.random(
      in: 0...(Int64.max >> Int64.random(in: 11...60, using: &generator)), using: &generator)
    let back = GRPCTimeout(headerValue: GRPCTimeout(nanoseconds: length).headerValue)?.nanoseconds ?? -1
    #expect(back >= length)
    #expect(back - length <= length / 10_000)
  }
}
