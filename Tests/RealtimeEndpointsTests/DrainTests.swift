// Tests draining the port (graceful shutdown). Open streams end at once. Connections that open during the
// drain get a response or are closed, and none remains.

import NIOCore
import RealtimeModel
import Testing

@testable import EndpointFixture
@testable import Ports
@testable import RealtimeEngine

@Suite("Draining the Realtime Database's port", .timeLimit(.minutes(10)))
struct DrainTests {
  /// The grace period for clients. A drain that does not wait for clients is far shorter.
  private static let grace = TimeAmount.seconds(90)

  @Test("an event stream ends when the drain starts, not when the grace period ends")
  func eventStream() async throws {
    try await RealtimeTestServer.run { server in
      let client = try await RawClient.connect(server.port.port)
      try await client.send("GET /a.json HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
      _ = try await client.read(through: "\n\n")
      let started = ContinuousClock.now
      async let drained: Void = server.port.drain(grace: Self.grace)
      // The response ends with the last chunk, so the client sees a complete stream.
      #expect(String(decoding: await client.readToEnd(), as: UTF8.self).hasSuffix("0\r\n\r\n"))
      await drained
      #expect(ContinuousClock.now - started < .seconds(60))
      try await expectNoOpenNamespaces(server.engine)
    }
  }

  @Test(
    "streams and sockets that open during a drain are closed, and leave no listener", arguments: 0..<8)
  func opening(round: Int) async throws {
    try await RealtimeTestServer.run { server in
      let started = ContinuousClock.now
      try await withThrowingTaskGroup(of: Void.self) { group in
        for index in 0..<60 {
          group.addTask {
            guard let client = try? await RawClient.connect(server.port.port) else { return }
            // Each client uses a separate namespace, so that the server first has to open it, which takes
            // time.
            let request =
              index % 3 == 0
              ? RawSocket.request(server, "v=5&ns=n\(index)")
              : "GET /a.json?ns=n\(index) HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"
            try? await client.send(request)
            _ = await client.readToEnd()
          }
        }
        group.addTask {
          // Each round starts the drain at a different moment while connections are opening.
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

  /// Checks that no namespace is open. A namespace without writes stays open only while a connection or
  /// listener holds it.
  private func expectNoOpenNamespaces(_ engine: RealtimeEngine) async throws {
    #expect(try await eventually { engine.openCount == 0 }, "\(engine.openCount) are open")
  }
}
