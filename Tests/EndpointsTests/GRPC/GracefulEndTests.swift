// A connection that drains serves what it has begun, and what was on its way when its client was told.

import NIOCore
import NIOHPACK
import Testing

@testable import Endpoints

@Suite("The graceful end of HTTP/2 connections", .timeLimit(.minutes(10)))
struct GracefulEndTests {
  private typealias Code = FrameConnection.Code

  /// Drains a port under one connection.
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

  /// The announcement, and the ping that asks for its acknowledgement.
  private func expectAnnouncement(_ client: FrameConnection) async throws -> [UInt8] {
    #expect(try await client.next() == .goAway(last: FrameConnection.largestStream, code: Code.noError))
    guard case .ping(let ping, false) = try await client.next() else { throw DeadlinePassed() }
    return ping
  }

  private func echo(_ client: FrameConnection, _ stream: Int) async throws {
    try await client.request(stream, FrameConnection.call("Echo"), [1])
    #expect(try await client.status(of: stream) == 0)
  }

  @Test("A call in flight and calls that cross the announcement are served; the end names the last of them")
  func crossing() async throws {
    try await drain { _, client in
      try await client.request(1, FrameConnection.call("Echo"), [1], end: false)
      try await echo(client, 3)
    } _: { _, client in
      let ping = try await expectAnnouncement(client)
      try await echo(client, 5)
      try await echo(client, 7)
      try await client.acknowledge(ping)
      #expect(try await client.next() == .goAway(last: 7, code: Code.noError))
      try await client.send(FrameConnection.frame(0, 1, 1))
      #expect(try await client.status(of: 1) == 0)
      #expect(try await client.next() == .closed)
    }
  }

  @Test("A client that acknowledges no ping is told the end all the same")
  func silentClient() async throws {
    try await drain { _, client in
      try await client.request(1, FrameConnection.call("Echo"), [1], end: false)
    } _: { _, client in
      _ = try await expectAnnouncement(client)
      #expect(try await client.next() == .goAway(last: 1, code: Code.noError))
      try await client.send(FrameConnection.frame(0, 1, 1))
      #expect(try await client.status(of: 1) == 0)
      #expect(try await client.next() == .closed)
    }
  }

  @Test("Streams beyond the end are refused, and what belongs to them is ignored")
  func late() async throws {
    try await drain { _, client in
      try await client.request(1, FrameConnection.call("Echo"), [1], end: false)
    } _: { _, client in
      try await client.acknowledge(try await expectAnnouncement(client))
      #expect(try await client.next() == .goAway(last: 1, code: Code.noError))
      for stream in [3, 5] {
        try await client.request(stream, FrameConnection.call("Echo"), [1], end: false)
        #expect(try await client.next() == .reset(stream: stream, code: Code.refusedStream))
        try await client.send(FrameConnection.message(stream, [1], end: true))
      }
      // One whose frames all come at once.
      try await client.request(7, FrameConnection.call("Echo"), [1])
      #expect(try await client.next() == .reset(stream: 7, code: Code.refusedStream))
      try await client.send(FrameConnection.frame(0, 1, 1))
      #expect(try await client.status(of: 1) == 0)
      #expect(try await client.next() == .closed)
    }
  }

  @Test("An answer that is half read goes out whole, with new calls beside it")
  func halfReadAnswer() async throws {
    try await drain { _, client in
      // Much more than the windows let through.
      try await client.openWindows(0, by: 1 << 20)
      try await client.request(1, FrameConnection.call("Large"), [])
      guard case .headers(1, _, false) = try await client.next() else { throw DeadlinePassed() }
    } _: { _, client in
      var bytes = 0
      var frames: [FrameConnection.Frame] = []
      try await client.request(3, FrameConnection.call("Echo"), [1])
      while true {
        let frame = try await client.next()
        switch frame {
        case .data(1, let piece, let end):
          bytes += piece.readableBytes
          #expect(!end)
          try? await client.openWindows(1, by: UInt32(max(1, piece.readableBytes)))
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

  @Test("Conversations end with UNAVAILABLE, also such as begin after the announcement")
  func conversations() async throws {
    try await drain { _, client in
      try await client.request(1, FrameConnection.call("Converse"), [1], end: false)
      _ = try await client.frames { if case .data(1, _, _) = $0 { true } else { false } }
    } _: { _, client in
      let ping = try await expectAnnouncement(client)
      #expect(try await client.status(of: 1) == 14)
      try await client.request(3, FrameConnection.call("Converse"), [1], end: false)
      #expect(try await client.status(of: 3) == 14)
      try await client.acknowledge(ping)
      _ = try await client.frames { if case .goAway(3, Code.noError) = $0 { true } else { false } }
      // The server may have given up waiting for that.
      try? await client.send(FrameConnection.frame(0, 1, 1) + FrameConnection.frame(0, 1, 3))
      #expect(try await client.frames { _ in false }.last == .closed)
    }
  }

  @Test("A connection on which nothing happens is told and closed")
  func idle() async throws {
    try await drain { _, client in
      try await echo(client, 1)
    } _: { _, client in
      try await client.acknowledge(try await expectAnnouncement(client))
      #expect(try await client.next() == .goAway(last: 1, code: Code.noError))
      #expect(try await client.next() == .closed)
    }
  }
}
