// Tests WebSockets that send frames without content: pings, and empty fragments of a message.

import Testing

@testable import EndpointFixture

@Suite("Frames without content over WebSocket", .timeLimit(.minutes(5)))
struct SocketFloodTests {
  @Test("Each ping of a long series is answered, and other connections are served at the same time")
  func pings() async throws {
    try await RealtimeTestServer.run { server in
      let socket = try await RawSocket.open(server)
      let other = try await RawSocket.open(server)
      try await socket.client.send((0..<10_000).flatMap { _ in RawSocket.frame(9, []) })
      try await other.play([#"{"r":1,"a":"s","b":{}}"#], expect: [#"{"r":1,"b":{"s":"ok","d":""}}"#])
      for _ in 0..<10_000 { #expect(try await socket.readFrame().opcode == 10) }
      await socket.close()
      await other.close()
    }
  }

  @Test("Empty fragments are dropped, and the message is complete at its last fragment")
  func emptyFragments() async throws {
    try await RealtimeTestServer.run { server in
      let socket = try await RawSocket.open(server)
      let message = Array(#"{"t":"d","d":{"r":1,"a":"s","b":{}}}"#.utf8)
      var bytes: [UInt8] = []
      for (index, byte) in message.enumerated() {
        bytes += RawSocket.frame(index == 0 ? 1 : 0, [byte], fin: false)
        for _ in 0..<200 { bytes += RawSocket.frame(0, [], fin: false) }
      }
      try await socket.client.send(bytes + RawSocket.frame(0, []))
      #expect(try await socket.next() == #"{"r":1,"b":{"s":"ok","d":""}}"#)
      await socket.close()
    }
  }
}
