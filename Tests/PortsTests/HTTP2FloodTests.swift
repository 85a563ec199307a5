// Tests abusive clients over HTTP/2: the server closes their connections, and serves the other connections. Clients that
// send the same frames in normal use keep their connections.

import GRPCFraming
import NIOCore
import NIOHTTP2
import Testing

@testable import EndpointFixture
@testable import Ports

@Suite("Abusive clients over HTTP/2", .timeLimit(.minutes(5)))
struct HTTP2FloodTests {
  private func withEcho(
    maximumResets: Int = 50, tls: Bool = false, _ body: (EchoPort) async throws -> Void
  ) async throws {
    var limits = PortLimits()
    limits.http2.maximumResetsPerSecond = maximumResets
    let files = try TestCertificate.write()
    let echo = try await EchoPort.start(
      limits: limits, tls: tls ? try PortTLS(certificateFile: files.certificate, keyFile: files.key) : nil)
    do {
      try await body(echo)
    } catch {
      await echo.stop()
      throw error
    }
    await echo.stop()
  }

  private static let call = "/\(EchoPort.service)/Hang"
  /// The payload of a GOAWAY frame with the largest stream number and ENHANCE_YOUR_CALM.
  private static let enhanceYourCalm: [UInt8] = [0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0xb]

  /// Whether a frame of the server ends stream 1: trailers, HEADERS with END_STREAM.
  private static func endsStream(_ bytes: [UInt8]) -> Bool {
    var index = 0
    while index + 9 <= bytes.count {
      let length = bytes[index..<index + 3].reduce(0) { $0 << 8 | Int($1) }
      if bytes[index + 3] == 1, bytes[index + 4] & 1 == 1 { return true }
      index += 9 + length
    }
    return false
  }

  /// The bytes that arrive until the connection is closed.
  private func bytes(of connection: RawConnection) async throws -> [UInt8] {
    var all: [UInt8] = []
    while case .bytes(let bytes) = try await connection.next() { all += Array(bytes.readableBytesView) }
    return all
  }

  /// Expects that the server closes a connection that sends `frames`, and answers a call over another connection.
  private func expectEnd(_ echo: EchoPort, _ frames: [UInt8]) async throws {
    let other = try await echo.connect()
    let client = try await RawConnection.connect(port: echo.port.port)
    // The connection may close while the frames are still being written.
    try? await client.send(RawFrames.opening + frames)
    let received = try await bytes(of: client)
    #expect(received.contains(Self.enhanceYourCalm))
    try await expectEcho(other)
    await other.close()
  }

  private func expectEcho(_ client: GRPCTestClient) async throws {
    let call = try await client.open("Echo", service: EchoPort.service)
    var message = ByteBuffer()
    message.writeGRPCMessage(bytes: [1, 2, 3])
    try await call.send(raw: message, endStream: true)
    #expect(try await call.status() == .ok)
  }

  private func streams(_ count: Int, _ make: (UInt32) -> [UInt8]) -> [UInt8] {
    (0..<count).flatMap { make(UInt32(2 * $0 + 1)) }
  }

  @Test("A client that opens and resets streams loses its connection")
  func rapidReset() async throws {
    try await withEcho { echo in
      try await expectEnd(echo, streams(400) { RawFrames.head(Self.call, stream: $0) + RawFrames.reset($0) })
    }
  }

  @Test("A client that sends SETTINGS frames without end loses its connection")
  func settings() async throws {
    try await withEcho { echo in
      let settings = RawFrames.frame(type: 4, stream: 0, [0, 4, 0, 1, 0, 0])
      try await expectEnd(echo, (0..<600).flatMap { _ in settings })
    }
  }

  @Test(
    "PRIORITY, PING, WINDOW_UPDATE and unknown frames cost little and end no connection",
    arguments: [2, 6, 8, 0x42] as [UInt8])
  func cheapFrames(type: UInt8) async throws {
    try await withEcho { echo in
      let payload: [UInt8] =
        switch type {
        case 2: [0, 0, 0, 3, 1]
        case 6: [1, 2, 3, 4, 5, 6, 7, 8]
        case 8: [0, 0, 0, 1]
        default: []
        }
      let frame = RawFrames.frame(type: type, stream: type == 6 ? 0 : 1, payload)
      let client = try await RawConnection.connect(port: echo.port.port)
      let message: [UInt8] = [0, 0, 0, 0, 0]
      try await client.send(
        RawFrames.opening + RawFrames.head("/\(EchoPort.service)/Echo", stream: 1)
          + (0..<10_000).flatMap { _ in frame } + RawFrames.frame(type: 0, flags: 1, stream: 1, message))
      var received: [UInt8] = []
      while !Self.endsStream(received) {
        guard case .bytes(let bytes) = try await client.next() else {
          Issue.record("the connection ended")
          break
        }
        received += Array(bytes.readableBytesView)
      }
      #expect(!received.contains(Self.enhanceYourCalm))
      await client.close()
    }
  }

  @Test(
    "The end of an abusive client's connection cancels its calls, also under TLS", arguments: [false, true])
  func cancelled(tls: Bool) async throws {
    try await withEcho(tls: tls) { echo in
      let client = try await RawConnection.connect(
        port: echo.port.port, tls: tls ? try TestCertificate.clientContext(protocols: ["h2"]) : nil)
      try await client.send(
        RawFrames.opening + RawFrames.head(Self.call, stream: 1)
          + RawFrames.frame(type: 0, flags: 1, stream: 1, [0, 0, 0, 0, 0]))
      #expect(try await echo.events.next() == .started("Hang"))
      var resets: [UInt8] = []
      for index in 1...400 {
        let stream = UInt32(2 * index + 1)
        resets += RawFrames.head("/\(EchoPort.service)/Echo", stream: stream)
        resets += RawFrames.reset(stream)
      }
      try? await client.send(resets)
      #expect(try await bytes(of: client).contains(Self.enhanceYourCalm))
      #expect(try await echo.events.next() == .cancelled("Hang"))
      #expect(try await eventually { echo.port.connectionCount == 0 })
    }
  }

  @Test("A call never runs if its request and its reset arrive together", arguments: ["Read", "Flood"])
  func resetBeforeStart(method: String) async throws {
    try await withEcho { echo in
      let client = try await RawConnection.connect(port: echo.port.port)
      let call = { (stream: UInt32, isReset: Bool) in
        RawFrames.head("/\(EchoPort.service)/\(method)", stream: stream)
          + RawFrames.frame(type: 0, flags: 1, stream: stream, [0, 0, 0, 0, 0])
          + (isReset ? RawFrames.reset(stream) : [])
      }
      // All frames arrive in one small packet, so the server reads the resets before it can start any call.
      let frames = RawFrames.opening + (0..<4).flatMap { call(UInt32(2 * $0 + 1), true) }
      #expect(frames.count < 1 << 10)
      try await client.send(frames)
      try await client.send(call(9, false))
      let first = method == "Read" ? EchoEvent.started("Read") : .sent(1)
      #expect(try await echo.events.next() == first)
      let other = try await echo.connect()
      try await expectEcho(other)
      // Calls start in order, and the first event was that of the call without a reset. So no reset call started before
      // that call, and this check shows that none started after it.
      #expect(!echo.events.removeAll().contains(first))
      await other.close()
      await client.close()
    }
  }

  @Test("If a connection is reset right after its calls, none of the calls keeps running")
  func resetConnections() async throws {
    try await withEcho { echo in
      let calls = streams(300) {
        RawFrames.head("/\(EchoPort.service)/Read", stream: $0)
          + RawFrames.frame(type: 0, flags: 1, stream: $0, [0, 0, 0, 0, 0])
      }
      for _ in 0..<20 {
        let client = try await RawConnection.connect(port: echo.port.port)
        try? await client.send(RawFrames.opening + calls)
        try? await client.reset()
      }
      #expect(try await eventually { echo.port.connectionCount == 0 })
      let other = try await echo.connect()
      try await expectEcho(other)
      await other.close()
    }
  }

  @Test("A client may reset streams that were answered, and send a PING for each response")
  func answered() async throws {
    try await withEcho(maximumResets: PortLimits().http2.maximumResetsPerSecond) { echo in
      let client = try await echo.connect()
      for index in 0..<300 {
        let call = try await client.open("Flood", service: EchoPort.service)
        var message = ByteBuffer()
        message.writeGRPCMessage(bytes: [])
        try await call.send(raw: message, endStream: true)
        while true { if case .message = try await call.next() { break } }
        try await call.reset()
        let ping = HTTP2Frame.FramePayload.ping(HTTP2PingData(withInteger: UInt64(index)), ack: false)
        try await client.channel.writeAndFlush(HTTP2Frame(streamID: .rootStream, payload: ping))
      }
      try await expectEcho(client)
      await client.close()
    }
  }
}
