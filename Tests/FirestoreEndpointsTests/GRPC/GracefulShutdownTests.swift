// Tests the graceful shutdown of an HTTP/2 connection: no call that the client has already sent is lost.
//
// The server sends two GOAWAY frames (RFC 9113, section 6.8). The first announces the shutdown, names the largest
// possible stream, and is followed by a ping. Calls that the client sends before it receives this frame are
// served. After the client acknowledges the ping, the last GOAWAY names the last call that the server serves.

import NIOCore
import NIOHPACK
import Testing

@testable import EndpointFixture
@testable import Ports

@Suite("Graceful shutdown of HTTP/2 connections", .timeLimit(.minutes(10)))
struct GracefulShutdownTests {
  private typealias Code = FrameConnection.Code

  /// Runs `begin` on a port with one connection, drains the port, and runs `body` during the drain.
  private func drain(
    _ begin: (EchoPort, FrameConnection) async throws -> Void,
    _ body: (EchoPort, FrameConnection) async throws -> Void
  ) async throws {
    let echo = try await EchoPort.start()
    let client = try await FrameConnection.open(port: echo.port.port)
    try await begin(echo, client)
    let stopping = Task { await echo.port.drain(grace: .seconds(60)) }
    do {
      try await body(echo, client)
    } catch {
      await client.close()
      await stopping.value
      throw error
    }
    await client.close()
    await stopping.value
    #expect(echo.port.connectionCount == 0)
  }

  /// Expects the first GOAWAY frame and a ping, and returns the ping's data.
  private func expectFirstGoAway(_ client: FrameConnection) async throws -> [UInt8] {
    #expect(try await client.next() == .goAway(last: FrameConnection.largestStreamID, code: Code.noError))
    guard case .ping(let ping, false) = try await client.next() else { throw DeadlinePassed() }
    return ping
  }

  private func echo(_ client: FrameConnection, _ stream: Int) async throws {
    try await client.request(stream, FrameConnection.callFields("Echo"), [1])
    #expect(try await client.status(of: stream) == 0)
  }

  @Test(
    "Calls in flight at the first GOAWAY, and calls sent before it arrives, are served; the last GOAWAY names the last call"
  )
  func callsInFlight() async throws {
    try await drain { _, client in
      try await client.request(1, FrameConnection.callFields("Echo"), [1], end: false)
      try await echo(client, 3)
    } _: { _, client in
      let ping = try await expectFirstGoAway(client)
      try await echo(client, 5)
      try await echo(client, 7)
      try await client.acknowledge(ping)
      #expect(try await client.next() == .goAway(last: 7, code: Code.noError))
      try await client.send(FrameConnection.frame(0, 1, 1))
      #expect(try await client.status(of: 1) == 0)
      #expect(try await client.next() == .closed)
    }
  }

  @Test("A client that does not acknowledge the ping receives the last GOAWAY after a timeout")
  func unacknowledgedPing() async throws {
    try await drain { _, client in
      try await client.request(1, FrameConnection.callFields("Echo"), [1], end: false)
    } _: { _, client in
      _ = try await expectFirstGoAway(client)
      #expect(try await client.next() == .goAway(last: 1, code: Code.noError))
      try await client.send(FrameConnection.frame(0, 1, 1))
      #expect(try await client.status(of: 1) == 0)
      #expect(try await client.next() == .closed)
    }
  }

  @Test("Streams after the last GOAWAY are refused, and their frames are ignored")
  func lateStreams() async throws {
    try await drain { _, client in
      try await client.request(1, FrameConnection.callFields("Echo"), [1], end: false)
    } _: { _, client in
      try await client.acknowledge(try await expectFirstGoAway(client))
      #expect(try await client.next() == .goAway(last: 1, code: Code.noError))
      for stream in [3, 5] {
        try await client.request(stream, FrameConnection.callFields("Echo"), [1], end: false)
        #expect(try await client.next() == .reset(stream: stream, code: Code.refusedStream))
        try await client.send(FrameConnection.messageFrame(stream, [1], end: true))
      }
      // All frames of this stream arrive at once.
      try await client.request(7, FrameConnection.callFields("Echo"), [1])
      #expect(try await client.next() == .reset(stream: 7, code: Code.refusedStream))
      try await client.send(FrameConnection.frame(0, 1, 1))
      #expect(try await client.status(of: 1) == 0)
      #expect(try await client.next() == .closed)
    }
  }

  @Test("A partly read response is sent completely, also with new calls on the connection")
  func partlyReadResponse() async throws {
    try await drain { _, client in
      // The response is much larger than the flow-control windows.
      try await client.openWindows(0, by: 1 << 20)
      try await client.request(1, FrameConnection.callFields("Large"), [])
      guard case .headers(1, _, false) = try await client.next() else { throw DeadlinePassed() }
    } _: { _, client in
      var bytes = 0
      var frames: [FrameConnection.Frame] = []
      try await client.request(3, FrameConnection.callFields("Echo"), [1])
      while true {
        let frame = try await client.next()
        switch frame {
        case .data(1, let chunk, let end):
          bytes += chunk.readableBytes
          #expect(!end)
          try? await client.openWindows(1, by: UInt32(max(1, chunk.readableBytes)))
        case .closed: frames.append(frame)
        case .ping(let ping, _): try await client.acknowledge(ping)
        default: frames.append(frame)
        }
        if frame == .closed { break }
      }
      #expect(bytes == (1 << 20) + 5)
      #expect(frames.contains { if case .headers(1, _, true) = $0 { true } else { false } })
      #expect(frames.contains { if case .headers(3, _, true) = $0 { true } else { false } })
      #expect(!frames.contains { if case .reset = $0 { true } else { false } })
    }
  }

  @Test("Bidirectional streams end with UNAVAILABLE, also streams that begin after the first GOAWAY")
  func bidirectionalStreams() async throws {
    try await drain { _, client in
      try await client.request(1, FrameConnection.callFields("Converse"), [1], end: false)
      _ = try await client.frames { if case .data(1, _, _) = $0 { true } else { false } }
    } _: { _, client in
      let ping = try await expectFirstGoAway(client)
      #expect(try await client.status(of: 1) == 14)
      try await client.request(3, FrameConnection.callFields("Converse"), [1], end: false)
      #expect(try await client.status(of: 3) == 14)
      try await client.acknowledge(ping)
      _ = try await client.frames { if case .goAway(3, Code.noError) = $0 { true } else { false } }
      // The server may already have closed the connection, so this write may fail.
      try? await client.send(FrameConnection.frame(0, 1, 1) + FrameConnection.frame(0, 1, 3))
      #expect(try await client.frames { _ in false }.last == .closed)
    }
  }

  @Test("An idle connection receives GOAWAY and is closed")
  func idleConnection() async throws {
    try await drain { _, client in
      try await echo(client, 1)
    } _: { _, client in
      try await client.acknowledge(try await expectFirstGoAway(client))
      #expect(try await client.next() == .goAway(last: 1, code: Code.noError))
      #expect(try await client.next() == .closed)
    }
  }
}
