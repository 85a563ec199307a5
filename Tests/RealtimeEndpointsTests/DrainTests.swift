// Tests connections that open while the port drains: each gets a response or its end, and none remains.

import NIOCore
import RealtimeModel
import Testing

@testable import EndpointFixture
@testable import Ports
@testable import RealtimeEngine

@Suite("Draining the Realtime Database's port", .timeLimit(.minutes(10)))
struct DrainTests {
  /// Far longer than a drain takes if it does not wait for clients.
  private static let grace = TimeAmount.seconds(90)

  @Test("an event stream ends at the start of the drain, not at the end of its grace period")
  func eventStream() async throws {
    try await RealtimeTestServer.run { server in
      let client = try await RawClient.connect(server.port.port)
      try await client.send("GET /a.json HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
      _ = try await client.read(through: "\n\n")
      let started = ContinuousClock.now
      async let drained: Void = server.port.drain(grace: Self.grace)
      // The last chunk: the stream ends correctly.
      #expect(String(decoding: await client.readToEnd(), as: UTF8.self).hasSuffix("0\r\n\r\n"))
      await drained
      #expect(ContinuousClock.now - started < .seconds(60))
      try await expectNoOpenNamespaces(server.engine)
    }
  }

  @Test(
    "streams and sockets that open during a drain are ended, and leave no listener", arguments: 0..<8)
  func opening(round: Int) async throws {
    try await RealtimeTestServer.run { server in
      let started = ContinuousClock.now
      try await withThrowingTaskGroup(of: Void.self) { group in
        for index in 0..<60 {
          group.addTask {
            guard let client = try? await RawClient.connect(server.port.port) else { return }
            // Separate namespaces, each of which has to be opened first, which takes time.
            let request =
              index % 3 == 0
              ? RawSocket.request(server, "v=5&ns=n\(index)")
              : "GET /a.json?ns=n\(index) HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"
            try? await client.send(request)
            _ = await client.readToEnd()
          }
        }
        group.addTask {
          // At another point of the openings in every round.
          for _ in 0..<(round * 40) { await Task.yield() }
          await server.port.drain(grace: Self.grace)
        }
        try await group.waitForAll()
      }
      #expect(ContinuousClock.now - started < .seconds(60))
      #expect(server.port.connectionCount == 0)
      try await expectNoOpenNamespaces(server.engine)
    }
  }

  /// Checks that no namespace is open: only connections hold namespaces without writes.
  private func expectNoOpenNamespaces(_ engine: RealtimeEngine) async throws {
    #expect(try await eventually { engine.openCount == 0 }, "\(engine.openCount) are open")
  }
}
