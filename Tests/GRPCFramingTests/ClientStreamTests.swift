// Tests the client side of a gRPC stream. However a call ends, the client must report exactly one status.

import GRPCFraming
import NIOCore
import NIOHPACK
import RandomModels
import Testing

@Suite("gRPC client stream")
struct ClientStreamTests {
  private static let head: HPACKHeaders = [":status": "200", "content-type": "application/grpc"]

  private func events(_ drive: (inout GRPCClientStream) -> Void) -> [GRPCClientStream.Event] {
    var stream = GRPCClientStream(maximumMessageSize: 100)
    drive(&stream)
    var events: [GRPCClientStream.Event] = []
    while let event = stream.next() { events.append(event) }
    return events
  }

  private func status(_ events: [GRPCClientStream.Event]) -> GRPCStatus? {
    guard case .end(let status, _)? = events.last else { return nil }
    return status
  }

  private func message(_ bytes: [UInt8]) -> ByteBuffer {
    var buffer = ByteBuffer()
    buffer.writeGRPCMessage(bytes: bytes)
    return buffer
  }

  @Test("A complete response yields metadata, messages and the status with its decoded message")
  func completeResponse() {
    let trailers: HPACKHeaders = ["grpc-status": "5", "grpc-message": "N%C3%B6"]
    let seen = events {
      $0.receive(headers: Self.head, endStream: false)
      $0.receive(data: message([1, 2]), endStream: false)
      $0.receive(headers: trailers, endStream: true)
    }
    #expect(
      seen == [
        .metadata(Self.head), .message(ByteBuffer(bytes: [1, 2])),
        .end(GRPCStatus(.notFound, "Nö"), trailers),
      ])
  }

  @Test("A trailers-only response has no metadata event")
  func trailersOnly() {
    var headers = Self.head
    headers.add(name: "grpc-status", value: "16")
    #expect(
      events { $0.receive(headers: headers, endStream: true) } == [
        .end(GRPCStatus(.unauthenticated), headers)
      ])
  }

  @Test("Informational header blocks are skipped")
  func informational() {
    let seen = events {
      $0.receive(headers: [":status": "103"], endStream: false)
      $0.receive(headers: Self.head, endStream: false)
      $0.receive(headers: ["grpc-status": "0"], endStream: true)
    }
    #expect(status(seen) == .ok)
  }

  @Test(
    "A response that is not gRPC gets the status code for its HTTP status",
    arguments: [
      (400, GRPCStatus.Code.internal), (401, .unauthenticated), (403, .permissionDenied),
      (404, .unimplemented),
      (429, .unavailable), (502, .unavailable), (503, .unavailable), (504, .unavailable), (418, .unknown),
      (200, .unknown),
    ])
  func plainHTTP(http: Int, code: GRPCStatus.Code) {
    let seen = events {
      $0.receive(headers: [":status": "\(http)", "content-type": "text/html"], endStream: false)
      $0.receive(data: ByteBuffer(string: "<html>"), endStream: true)
    }
    #expect(seen.count == 1)
    #expect(status(seen)?.code == code)
  }

  @Test(
    "A reset stream gets the status code for its HTTP/2 error code",
    arguments: [
      (0, GRPCStatus.Code.internal), (2, .internal), (7, .unavailable), (8, .cancelled),
      (11, .resourceExhausted),
      (12, .permissionDenied), (99, .internal),
    ] as [(UInt32, GRPCStatus.Code)])
  func reset(http2: UInt32, code: GRPCStatus.Code) {
    #expect(status(events { $0.receiveReset(http2Code: http2) })?.code == code)
  }

  @Test("A lost connection ends the call with UNAVAILABLE, after the messages that arrived")
  func connectionLoss() {
    let seen = events {
      $0.receive(headers: Self.head, endStream: false)
      $0.receive(data: message([4]), endStream: false)
      $0.receiveConnectionLoss("gone")
    }
    #expect(seen.contains(.message(ByteBuffer(bytes: [4]))))
    #expect(status(seen) == GRPCStatus(.unavailable, "gone"))
  }

  @Test("A missing or malformed status becomes UNKNOWN; an unknown status number is reported unchanged")
  func unknownStatuses() {
    for (trailers, code) in [
      ([:], .unknown), (["grpc-status": "x"], .unknown), (["grpc-status": "77"], .init(rawValue: 77)),
    ] as [(HPACKHeaders, GRPCStatus.Code)] {
      let seen = events {
        $0.receive(headers: Self.head, endStream: false)
        $0.receive(headers: trailers, endStream: true)
      }
      #expect(status(seen)?.code == code)
    }
  }

  @Test(
    "Malformed framing and premature ends are INTERNAL, messages over the limit RESOURCE_EXHAUSTED"
  )
  func malformedResponses() {
    func code(_ bytes: [UInt8], endStream: Bool = false) -> GRPCStatus.Code? {
      status(
        events {
          $0.receive(headers: Self.head, endStream: false)
          $0.receive(data: ByteBuffer(bytes: bytes), endStream: endStream)
          $0.receive(headers: ["grpc-status": "0"], endStream: true)
        })?.code
    }
    #expect(code([9, 0, 0, 0, 0]) == .internal)
    #expect(code([0, 0, 0, 0, 5, 1]) == .internal)
    #expect(code([], endStream: true) == .internal)
    #expect(code([0, 0, 0, 1, 0]) == .resourceExhausted)
    #expect(status(events { $0.receive(data: ByteBuffer(bytes: [0]), endStream: false) })?.code == .internal)
  }

  @Test("Random input in random order ends the call at most once and never crashes", arguments: 0..<300)
  func randomInput(seed: Int) {
    var generator = SeededGenerator(seed: UInt64(seed))
    var stream = GRPCClientStream(maximumMessageSize: 64)
    var ends = 0
    for _ in 0..<Int.random(in: 1...20, using: &generator) {
      switch Int.random(in: 0..<6, using: &generator) {
      case 0: stream.receive(headers: Self.head, endStream: Bool.random(using: &generator))
      case 1: stream.receive(headers: ["grpc-status": "3"], endStream: true)
      case 2: stream.receiveReset(http2Code: UInt32.random(in: 0...20, using: &generator))
      case 3 where Int.random(in: 0..<4, using: &generator) == 0: stream.receiveConnectionLoss("gone")
      case 4: stream.receive(data: message(generator.bytes(5)), endStream: Bool.random(using: &generator))
      default:
        stream.receive(
          data: ByteBuffer(bytes: generator.bytes(Int.random(in: 0...9, using: &generator))), endStream: false
        )
      }
      while let event = stream.next() {
        #expect(ends == 0)
        if case .end = event { ends += 1 }
      }
    }
    #expect(stream.isEnded == (ends == 1))
  }
}
