// Connections that are just opening while the port drains: each gets an answer or an end, and none is left behind.

import Endpoints
import NIOCore
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite("Draining the Realtime Database's port", .timeLimit(.minutes(10)))
struct DrainTests {
  /// Far longer than a drain takes that waits for nobody.
  private static let grace = TimeAmount.seconds(90)

  @Test("an event stream ends with the drain, not with its grace")
  func eventStream() async throws {
    try await RealtimeTestServer.run { server in
      let client = try await RawClient.connect(server.port.port)
      try await client.send("GET /a.json HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
      _ = try await client.read(through: "\n\n")
      let started = ContinuousClock.now
      async let drained: Void = server.port.drain(grace: Self.grace)
      // The last chunk: the stream is whole, as far as it went.
      #expect(String(decoding: await client.readToEnd(), as: UTF8.self).hasSuffix("0\r\n\r\n"))
      await drained
      #expect(ContinuousClock.now - started < .seconds(60))
      try await noNames(server.engine)
    }
  }

  @Test(
    "streams and sockets that open while the port drains are ended, and leave no listener", arguments: 0..<8)
  func opening(round: Int) async throws {
    try await RealtimeTestServer.run { server in
      let started = ContinuousClock.now
      try await withThrowingTaskGroup(of: Void.self) { group in
        for index in 0..<60 {
          group.addTask {
            guard let client = try? await RawClient.connect(server.port.port) else { return }
            // Names of their own, so that each is opened first: that takes a while.
            let request =
              index % 3 == 0
              ? RawSocket.request(server, "v=5&ns=n\(index)")
              : "GET /a.json?ns=n\(index) HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"
            try? await client.send(request)
            _ = await client.readToEnd()
          }
        }
        group.addTask {
          // Somewhere among the openings, elsewhere in every round.
          for _ in 0..<(round * 40) { await Task.yield() }
          await server.port.drain(grace: Self.grace)
        }
        try await group.waitForAll()
      }
      #expect(ContinuousClock.now - started < .seconds(60))
      #expect(server.port.connectionCount == 0)
      try await noNames(server.engine)
    }
  }

  /// Names that nobody wrote to are held by their connections alone.
  private func noNames(_ engine: RealtimeEngine) async throws {
    #expect(try await eventually { engine.openCount == 0 }, "\(engine.openCount) are open")
  }
}
