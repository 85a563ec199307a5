// Peers that flood a connection of HTTP/2: they are told to calm down and cut off, and nobody else is; and clients that
// do the same things because they use what they ask for, who are not.

import GRPCFraming
import NIOCore
import NIOHTTP2
import Testing

@testable import Endpoints

@Suite("Floods over HTTP/2", .timeLimit(.minutes(5)))
struct HTTP2FloodTests {
  /// Time brings nothing, so that a slow machine forgives no more than a fast one.
  private func withEcho(
    credit: Int, maximum: Int? = nil, tls: Bool = false, _ body: (EchoPort) async throws -> Void
  ) async throws {
    var limits = PortLimits()
    limits.http2.credit = PeerCreditLimits(initial: credit, perSecond: 0, maximum: maximum ?? credit)
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
  private static let enhanceYourCalm: [UInt8] = [0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0xb]

  /// Everything that comes until the connection is closed.
  private func bytes(of connection: RawConnection) async throws -> [UInt8] {
    var all: [UInt8] = []
    while case .bytes(let bytes) = try await connection.next() { all += Array(bytes.readableBytesView) }
    return all
  }

  /// Sends a flood, sees how it ends, and that a call over another connection is answered.
  private func expectEnd(_ echo: EchoPort, _ flood: [UInt8]) async throws {
    let other = try await echo.connect()
    let flooder = try await RawConnection.connect(port: echo.port.port)
    // The connection may go while the flood is still being written.
    try? await flooder.send(RawFrames.opening + flood)
    let answer = try await bytes(of: flooder)
    #expect(answer.contains(Self.enhanceYourCalm))
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

  @Test("streams opened and reset: cut off")
  func rapidReset() async throws {
    try await withEcho(credit: 1_000) { echo in
      try await expectEnd(echo, streams(101) { RawFrames.head(Self.call, stream: $0) + RawFrames.reset($0) })
    }
  }

  @Test("what asks for nothing: cut off", arguments: [2, 4, 6, 8, 0x42] as [UInt8])
  func controlFrames(type: UInt8) async throws {
    try await withEcho(credit: 500) { echo in
      let payload: [UInt8] =
        switch type {
        case 2: [0, 0, 0, 3, 1]
        case 6: [1, 2, 3, 4, 5, 6, 7, 8]
        case 8: [0, 0, 0, 1]
        default: []
        }
      let frame = RawFrames.frame(type: type, stream: [4, 6].contains(type) ? 0 : 1, payload)
      let flood = RawFrames.head(Self.call, stream: 1) + (0..<501).flatMap { _ in frame }
      try await expectEnd(echo, flood)
    }
  }

  @Test("a window opened by a byte at a time does not pay for itself")
  func dribble() async throws {
    try await withEcho(credit: 100) { echo in
      let flooder = try await RawConnection.connect(port: echo.port.port)
      // No stream has a window of its own accord.
      let settings = RawFrames.frame(type: 4, stream: 0, [0, 4, 0, 0, 0, 0])
      try await flooder.send(RawFrames.preface + settings)
      let message: [UInt8] = [0, 0, 0, 0, 0]
      try await flooder.send(
        RawFrames.head("/\(EchoPort.service)/Flood", stream: 1)
          + RawFrames.frame(type: 0, flags: 1, stream: 1, message))
      for _ in 0..<120 { try? await flooder.send(RawFrames.window(1, stream: 1)) }
      #expect(try await bytes(of: flooder).contains(Self.enhanceYourCalm))
    }
  }

  @Test(
    "calls under way on a connection that is cut off are cancelled, also under TLS", arguments: [false, true])
  func cancelled(tls: Bool) async throws {
    try await withEcho(credit: 100, tls: tls) { echo in
      let flooder = try await RawConnection.connect(
        port: echo.port.port, tls: tls ? try TestCertificate.clientContext(protocols: ["h2"]) : nil)
      try await flooder.send(
        RawFrames.opening + RawFrames.head(Self.call, stream: 1)
          + RawFrames.frame(type: 0, flags: 1, stream: 1, [0, 0, 0, 0, 0]))
      #expect(try await echo.events.next() == .started("Hang"))
      try? await flooder.send((0..<101).flatMap { _ in RawFrames.ping })
      #expect(try await bytes(of: flooder).contains(Self.enhanceYourCalm))
      #expect(try await echo.events.next() == .cancelled("Hang"))
      #expect(try await eventually { echo.port.connectionCount == 0 })
    }
  }

  @Test("a call that is taken back with its request is not carried out", arguments: ["Read", "Flood"])
  func takenBack(method: String) async throws {
    try await withEcho(credit: 1_000) { echo in
      let client = try await RawConnection.connect(port: echo.port.port)
      let call = { (stream: UInt32, isTakenBack: Bool) in
        RawFrames.head("/\(EchoPort.service)/\(method)", stream: stream)
          + RawFrames.frame(type: 0, flags: 1, stream: stream, [0, 0, 0, 0, 0])
          + (isTakenBack ? RawFrames.reset(stream) : [])
      }
      // In one small piece, so that the server has read the resets before it could begin any call.
      let flood = RawFrames.opening + (0..<4).flatMap { call(UInt32(2 * $0 + 1), true) }
      #expect(flood.count < 1 << 10)
      try await client.send(flood)
      try await client.send(call(9, false))
      let first = method == "Read" ? EchoEvent.started("Read") : .sent(1)
      #expect(try await echo.events.next() == first)
      let other = try await echo.connect()
      try await expectEcho(other)
      // Calls begin in order: none of those before it had begun, nor has any since.
      #expect(!echo.events.takeAll().contains(first))
      await other.close()
      await client.close()
    }
  }

  @Test("a connection that is lost while calls wait for their turn begins none of them")
  func lost() async throws {
    try await withEcho(credit: 10_000) { echo in
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

  @Test("a client that is answered may reset and ping as often as it is")
  func answered() async throws {
    try await withEcho(credit: 60) { echo in
      let client = try await echo.connect()
      for index in 0..<100 {
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

@Suite("Frames and credit of HTTP/2")
struct HTTP2FrameScannerTests {
  @Test("frames are found however their bytes are cut")
  func cuts() {
    let bytes =
      RawFrames.opening + RawFrames.head("/a/b", stream: 1) + RawFrames.ping
      + RawFrames.frame(type: 0, flags: 1, stream: 1, [UInt8](repeating: 9, count: 70_000))
      + RawFrames.reset(1)
    for size in [1, 2, 5, 7, 9, 13, 1_000, 16_384, bytes.count] {
      var scanner = HTTP2FrameScanner(skipping: HTTP2FrameScanner.preface)
      var found: [HTTP2FrameStart] = []
      var rest = ByteBuffer(bytes: bytes)
      while let piece = rest.readSlice(length: min(size, rest.readableBytes)), piece.readableBytes > 0 {
        scanner.scan(piece.readableBytesView) { found.append($0) }
      }
      #expect(found.map(\.type) == [4, 1, 6, 0, 3], "in pieces of \(size)")
      #expect(found.map(\.flags) == [0, 4, 0, 1, 0])
      #expect(found.map(\.length).suffix(3) == [8, 70_000, 4])
    }
  }

  @Test("credit comes back with time up to the first amount, and by earning up to the most")
  func credit() {
    let start = NIODeadline.uptimeNanoseconds(1)
    var credit = PeerCredit(PeerCreditLimits(initial: 10, perSecond: 4, maximum: 20), at: start)
    credit.charge(11)
    #expect(credit.isSpent)
    // Too short for one, and not lost for that.
    credit.fill(at: start + .milliseconds(200))
    #expect(credit.isSpent)
    credit.fill(at: start + .milliseconds(260))
    #expect(!credit.isSpent)
    credit.charge(1)
    credit.pass(to: start + .hours(1))
    credit.fill(at: start + .hours(1) + .milliseconds(1))
    #expect(credit.isSpent)
    credit.fill(at: start + .hours(10_000))
    credit.charge(10)
    #expect(!credit.isSpent)
    credit.earn(1_000)
    credit.charge(20)
    #expect(!credit.isSpent)
    credit.charge(1)
    #expect(credit.isSpent)
  }
}
