// Tests WebSockets that send frames without content: endless pings and empty fragments.

import Testing

@testable import Endpoints

@Suite("WebSocket floods", .timeLimit(.minutes(5)))
struct SocketFloodTests {
  /// Credit is not refilled by time, so that a slow machine forgives no more than a fast one.
  private func withServer(_ body: (RealtimeTestServer) async throws -> Void) async throws {
    var limits = RealtimeEndpointLimits.standard
    limits.socketCredit = PeerCreditLimits(initial: 100, perSecond: 0, maximum: 100)
    try await RealtimeTestServer.run(limits: limits, body)
  }

  private func expectEnd(_ socket: RawSocket, _ flood: [UInt8]) async throws {
    // The connection may close while the flood is still being written.
    try? await socket.client.send(flood)
    while true {
      let frame = try await socket.readFrame()
      guard frame.opcode == 8 else { continue }
      #expect(Array(frame.payload.prefix(2)) == [0x03, 0xF0])
      break
    }
    #expect(await socket.client.readToEnd().isEmpty)
  }

  @Test("pings are answered, and too many of them end the connection with a reason")
  func pings() async throws {
    try await withServer { server in
      let socket = try await RawSocket.open(server)
      let other = try await RawSocket.open(server)
      try await expectEnd(socket, (0..<101).flatMap { _ in RawSocket.frame(9, []) })
      try await other.play([#"{"r":1,"a":"s","b":{}}"#], expect: [#"{"r":1,"b":{"s":"ok","d":""}}"#])
      await other.close()
    }
  }

  @Test("empty frames end the connection, frames of one byte do not")
  func emptyPieces() async throws {
    try await withServer { server in
      let socket = try await RawSocket.open(server)
      let message = Array(#"{"t":"d","d":{"r":1,"a":"s","b":{}}}"#.utf8)
      for _ in 0..<20 {
        var bytes: [UInt8] = []
        for (index, byte) in message.enumerated() {
          bytes += RawSocket.frame(index == 0 ? 1 : 0, [byte], fin: index == message.count - 1)
        }
        try await socket.client.send(bytes)
        #expect(try await socket.next() == #"{"r":1,"b":{"s":"ok","d":""}}"#)
      }
      try await expectEnd(
        socket,
        RawSocket.frame(1, [], fin: false) + (0..<102).flatMap { _ in RawSocket.frame(0, [], fin: false) })
    }
  }

  @Test("a client may send as many pings as requests")
  func pingsBetween() async throws {
    try await withServer { server in
      let socket = try await RawSocket.open(server)
      for number in 1...300 {
        try await socket.sendFrame(9, [])
        #expect(try await socket.readFrame().opcode == 10)
        try await socket.play(
          [#"{"r":\#(number),"a":"s","b":{}}"#], expect: [#"{"r":\#(number),"b":{"s":"ok","d":""}}"#])
      }
      await socket.close()
    }
  }
}
