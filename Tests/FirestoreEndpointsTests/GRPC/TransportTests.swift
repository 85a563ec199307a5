// Tests gRPC over real sockets with a small echo service: valid, invalid, slow, disconnecting and abusive
// clients.

import GRPCFraming
import NIOCore
import NIOHPACK
import NIOHTTP2
import Testing

@testable import EndpointFixture
@testable import Ports

@Suite("gRPC transport", .timeLimit(.minutes(10)))
struct TransportTests {
  private func framed(_ bytes: [UInt8]) -> ByteBuffer {
    var buffer = ByteBuffer()
    buffer.writeGRPCMessage(bytes: bytes)
    return buffer
  }

  private func withEcho(
    _ limits: PortLimits = PortLimits(), window: Int = 1 << 20,
    _ body: (EchoPort, GRPCTestClient) async throws -> Void
  ) async throws {
    let echo = try await EchoPort.start(limits: limits)
    let client = try await echo.connect(window: window)
    do {
      try await body(echo, client)
    } catch {
      await client.close()
      await echo.stop()
      throw error
    }
    await client.close()
    await echo.stop()
  }

  private func open(_ client: GRPCTestClient, _ method: String, timeout: GRPCTimeout? = nil) async throws
    -> GRPCTestCall
  {
    try await client.open(method, service: EchoPort.service, timeout: timeout)
  }

  /// Expects that the connection still serves calls.
  private func expectEcho(_ client: GRPCTestClient) async throws {
    let call = try await open(client, "Echo")
    try await call.send(raw: framed([1, 2, 3]), endStream: true)
    guard case .metadata = try await call.next() else { throw DeadlinePassed() }
    #expect(try await call.next() == .message(ByteBuffer(bytes: [1, 2, 3])))
    #expect(try await call.status() == .ok)
  }

  @Test("A unary call returns metadata, a message and OK")
  func unary() async throws {
    try await withEcho { _, client in try await expectEcho(client) }
  }

  @Test("A message of several megabytes passes flow control in both directions")
  func largeMessages() async throws {
    try await withEcho { _, client in
      let bytes = (0..<(5 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31) }
      let call = try await open(client, "Echo")
      try await call.send(raw: framed(bytes), endStream: true)
      guard case .metadata = try await call.next() else { throw DeadlinePassed() }
      guard case .message(let response) = try await call.next() else { throw DeadlinePassed() }
      #expect(response == ByteBuffer(bytes: bytes))
      #expect(try await call.status() == .ok)
    }
  }

  @Test("Many concurrent calls on one connection are answered")
  func concurrentCalls() async throws {
    try await withEcho { _, client in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<200 { group.addTask { try await self.expectEcho(client) } }
        try await group.waitForAll()
      }
    }
  }

  @Test(
    "A method's status reaches the client with its text; an unexpected error is INTERNAL without details")
  func statuses() async throws {
    try await withEcho { _, client in
      let failing = try await open(client, "Fail")
      try await failing.send(raw: framed([]), endStream: true)
      #expect(try await failing.status() == GRPCStatus(.failedPrecondition, "Käse 100%"))
      let crashing = try await open(client, "Crash")
      try await crashing.send(raw: framed([]), endStream: true)
      let status = try await crashing.status()
      #expect(status.code == .internal)
      #expect(!status.message.contains("DeadlinePassed"))
      try await expectEcho(client)
    }
  }

  @Test("An unknown method and an unknown service are UNIMPLEMENTED, with their names")
  func unknownMethods() async throws {
    try await withEcho { _, client in
      let method = try await (try await open(client, "Nothing")).status()
      #expect(method.code == .unimplemented)
      #expect(method.message.contains("Nothing"))
      let service = try await (try await client.open("Echo", service: "test.Other")).status()
      #expect(service.code == .unimplemented)
      #expect(service.message.contains("test.Other"))
      try await expectEcho(client)
    }
  }

  @Test("Invalid framing ends only its stream")
  func brokenFraming() async throws {
    try await withEcho { _, client in
      for (bytes, code) in [
        ([9, 0, 0, 0, 0], .internal), ([1, 0, 0, 0, 0], .internal), ([0, 0, 0, 0, 9, 1], .internal),
        ([], .internal), ([0, 0, 0, 0, 0, 0, 0, 0, 0, 0], .internal),
      ] as [([UInt8], GRPCStatus.Code)] {
        let call = try await open(client, "Echo")
        try await call.send(raw: ByteBuffer(bytes: bytes), endStream: true)
        #expect(try await call.status().code == code, "\(bytes)")
      }
      try await expectEcho(client)
    }
  }

  @Test("A message above the limit is rejected with the service's error when its length is known")
  func oversized() async throws {
    try await withEcho { _, client in
      let call = try await open(client, "Echo")
      try await call.send(raw: ByteBuffer(bytes: [0, 0x7f, 0xff, 0xff, 0xff]))
      let status = try await call.status()
      #expect(status == GRPCStatus(.invalidArgument, "2147483647 bytes"))
      try await expectEcho(client)
    }
  }

  @Test("Incomplete requests of one connection share a memory limit")
  func requestBudget() async throws {
    var limits = PortLimits()
    limits.http2.maximumBufferedRequestBytes = 100_000
    try await withEcho(limits) { _, client in
      var prefix = ByteBuffer()
      prefix.writeGRPCPrefix(length: 90_000)
      prefix.writeRepeatingByte(0, count: 60_000)
      let first = try await open(client, "Echo")
      try await first.send(raw: prefix)
      let second = try await open(client, "Echo")
      try await second.send(raw: prefix)
      #expect(try await second.status().code == .resourceExhausted)
      try await first.send(raw: ByteBuffer(repeating: 0, count: 30_000), endStream: true)
      #expect(try await first.status() == .ok)
      try await expectEcho(client)
    }
  }

  @Test("grpc-timeout ends the call with DEADLINE_EXCEEDED and cancels its work")
  func deadline() async throws {
    try await withEcho { echo, client in
      let call = try await open(client, "Hang", timeout: GRPCTimeout(nanoseconds: 3_000_000_000))
      try await call.send(raw: framed([]), endStream: true)
      #expect(try await call.status().code == .deadlineExceeded)
      #expect(try await echo.events.next() == .started("Hang"))
      #expect(try await echo.events.next() == .cancelled("Hang"))
    }
  }

  @Test("A call whose deadline has passed when it arrives never starts")
  func expiredDeadline() async throws {
    try await withEcho { echo, client in
      let call = try await open(client, "Hang", timeout: GRPCTimeout(nanoseconds: 0))
      try await call.send(raw: framed([]), endStream: true)
      #expect(try await call.status().code == .deadlineExceeded)
      let next = try await open(client, "Hang", timeout: GRPCTimeout(nanoseconds: 300_000_000))
      try await next.send(raw: framed([]), endStream: true)
      #expect(try await next.status().code == .deadlineExceeded)
      // The first recorded event is that of the second call, so the first call never started.
      #expect(try await echo.events.next() == .started("Hang"))
      #expect(try await echo.events.next() == .cancelled("Hang"))
    }
  }

  @Test("A deadline also ends an incomplete request")
  func deadlineOfIncompleteRequest() async throws {
    try await withEcho { _, client in
      let call = try await open(client, "Echo", timeout: GRPCTimeout(nanoseconds: 50_000_000))
      try await call.send(raw: ByteBuffer(bytes: [0, 0, 0]))
      #expect(try await call.status().code == .deadlineExceeded)
    }
  }

  @Test("An incomplete request is cancelled after a timeout, and its connection continues")
  func slowRequest() async throws {
    var limits = PortLimits()
    limits.http2.requestTimeout = .seconds(2)
    try await withEcho(limits) { _, client in
      let call = try await open(client, "Echo")
      try await call.send(raw: ByteBuffer(bytes: [0, 0, 0]))
      #expect(try await call.status().code == .deadlineExceeded)
      try await expectEcho(client)
    }
  }

  @Test("A half-open connection, whose peer answers no ping, is closed")
  func halfOpen() async throws {
    var limits = PortLimits()
    limits.http2.keepAliveInterval = .seconds(2)
    limits.http2.keepAliveTimeout = .seconds(2)
    try await withEcho(limits) { echo, client in
      let dead = try await RawConnection.connect(port: echo.port.port)
      // The client sends the preface and an empty SETTINGS frame, and then nothing.
      try await dead.send(Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + [0, 0, 0, 4, 0, 0, 0, 0, 0])
      _ = try await dead.textUntilClose()
      try await expectEcho(client)
    }
  }

  @Test("Invalid HTTP/2 frames end only their connection")
  func brokenFrames() async throws {
    try await withEcho { echo, client in
      let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
      for frame in [
        [0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0], [0, 0, 4, 1, 4, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff],
        [0, 0, 0, 0, 0, 0, 0, 0, 1], [0, 0, 1, 4, 0, 0, 0, 0, 0, 7],
      ] as [[UInt8]] {
        let broken = try await RawConnection.connect(port: echo.port.port)
        try await broken.send(preface + [0, 0, 0, 4, 0, 0, 0, 0, 0] + frame)
        _ = try await broken.textUntilClose()
      }
      try await expectEcho(client)
    }
  }

  @Test("RST_STREAM and a lost connection cancel the call's work")
  func cancellation() async throws {
    try await withEcho { echo, client in
      let call = try await open(client, "Hang")
      try await call.send(raw: framed([]), endStream: true)
      #expect(try await echo.events.next() == .started("Hang"))
      try await call.reset()
      #expect(try await echo.events.next() == .cancelled("Hang"))
      try await expectEcho(client)

      let closing = try await echo.connect()
      let other = try await open(closing, "Hang")
      try await other.send(raw: framed([]), endStream: true)
      #expect(try await echo.events.next() == .started("Hang"))
      await closing.close()
      #expect(try await echo.events.next() == .cancelled("Hang"))
    }
  }

  @Test("A writer waits for a client that does not read, and is cancelled when the client disconnects")
  func backPressure() async throws {
    try await withEcho(window: 64 << 10) { echo, client in
      let call = try await open(client, "Flood")
      // The client does not read from the stream: its window stays closed.
      try await call.channel.setOption(.autoRead, value: false).get()
      try await call.send(raw: framed([]), endStream: true)
      guard case .sent(var sent) = try await echo.events.next() else { throw DeadlinePassed() }
      _ = try await standstill(of: {
        for case .sent(let count) in echo.events.removeAll() { sent = count }
        return sent
      }) { try await expectEcho(client) }
      // The writer waits after the window of 64 KiB, the bytes up to the high watermark, and one more message.
      #expect(sent > 0)
      #expect(sent * (16 << 10) < 512 << 10)
      try await call.reset()
      #expect(try await echo.events.next() == .cancelled("Flood"))
    }
  }

  @Test("A bidirectional stream continues until the client half-closes, then ends OK")
  func duplexStream() async throws {
    try await withEcho { echo, client in
      let call = try await open(client, "Converse")
      for byte in UInt8(1)...5 {
        try await call.send(raw: framed([byte]))
        var event = try await call.next()
        if case .metadata = event { event = try await call.next() }
        #expect(event == .message(ByteBuffer(bytes: [byte])))
      }
      try await call.halfClose()
      #expect(try await call.status() == .ok)
      #expect(try await echo.events.next() == .ended("Converse"))
    }
  }

  @Test("Requests that are not gRPC get plain HTTP responses on the same connection")
  func plainHTTPOverHTTP2() async throws {
    try await withEcho { _, client in
      let headers: HPACKHeaders = [
        ":method": "GET", ":scheme": "http", ":path": "/v1/projects/p/databases/d/documents/c/d",
        ":authority": "localhost",
      ]
      let call = try await client.open(headers: headers, endStream: true)
      let status = try await call.status()
      #expect(status.code == .unknown)  // gRPC has no code for HTTP 501.
      #expect(status.message.contains("501"))
      try await expectEcho(client)
    }
  }

  @Test(
    "A gRPC request with another method than POST is answered, and its connection continues",
    arguments: [true, false])
  func wrongMethod(endStream: Bool) async throws {
    try await withEcho { _, client in
      let headers: HPACKHeaders = [
        ":method": "GET", ":scheme": "http", ":path": "/test.Echo/Unary", ":authority": "localhost",
        "content-type": "application/grpc", "te": "trailers",
      ]
      let status = try await client.open(headers: headers, endStream: endStream).status()
      #expect(status.message.contains("POST"), "\(status)")
      try await expectEcho(client)
    }
  }

  @Test("A drain ends bidirectional streams with UNAVAILABLE, lets calls finish, and closes the connection")
  func drain() async throws {
    let echo = try await EchoPort.start()
    let client = try await echo.connect()
    let duplexStream = try await open(client, "Converse")
    try await duplexStream.send(raw: framed([1]))
    guard case .metadata = try await duplexStream.next() else { throw DeadlinePassed() }
    let call = try await open(client, "Echo")
    try await call.send(raw: ByteBuffer(bytes: [0, 0, 0]))
    // A response on the same connection shows that the call has arrived.
    try await expectEcho(client)
    async let stopped: Void = echo.port.drain(grace: .seconds(60))
    #expect(try await duplexStream.status().code == .unavailable)
    try await call.send(raw: ByteBuffer(bytes: [0, 1, 7]), endStream: true)
    guard case .metadata = try await call.next() else { throw DeadlinePassed() }
    #expect(try await call.next() == .message(ByteBuffer(bytes: [7])))
    #expect(try await call.status() == .ok)
    await stopped
    #expect(echo.port.connectionCount == 0)
    try await client.channel.closeFuture.get()
  }

  @Test("Hundreds of keep-alive pings are answered")
  func pings() async throws {
    try await withEcho { _, client in
      for index in 0..<500 {
        try await client.channel.writeAndFlush(
          HTTP2Frame(
            streamID: .rootStream, payload: .ping(HTTP2PingData(withInteger: UInt64(index)), ack: false)))
      }
      try await expectEcho(client)
    }
  }
}
