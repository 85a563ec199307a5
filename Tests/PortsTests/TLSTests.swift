// Tests a port under TLS: gRPC with ALPN, plain HTTP without it, and unusable files.

import Foundation
import GRPCFraming
import HearthServer
import NIOCore
import NIOPosix
import NIOSSL
import Testing

@testable import EndpointFixture
@testable import Ports

@Suite("A port under TLS", .timeLimit(.minutes(10)))
struct TLSTests {
  private func start() async throws -> EchoPort {
    let files = try TestCertificate.write()
    return try await EchoPort.start(tls: try PortTLS(certificateFile: files.certificate, keyFile: files.key))
  }

  @Test("gRPC works under TLS, with and without ALPN", arguments: [["h2"], []])
  func grpc(protocols: [String]) async throws {
    let echo = try await start()
    let client = try await GRPCTestClient.connect(
      port: echo.port.port, tls: try TestCertificate.clientContext(protocols: protocols))
    let call = try await client.open("Echo", service: EchoPort.service)
    var message = ByteBuffer()
    message.writeGRPCMessage(bytes: [UInt8](repeating: 5, count: 100_000))
    try await call.send(raw: message, endStream: true)
    #expect(try await call.status() == .ok)
    await client.close()
    await echo.stop()
  }

  @Test("HTTP/1.1 works on the same port under TLS")
  func http1() async throws {
    let echo = try await start()
    let mailbox = Mailbox<ByteBuffer>(MultiThreadedEventLoopGroup.singleton.next())
    let context = try TestCertificate.clientContext(protocols: ["http/1.1"])
    let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(
            NIOSSLClientHandler(context: context, serverHostname: "localhost"))
          try channel.pipeline.syncOperations.addHandler(Receiver(mailbox))
        }
      }
      .connect(host: "127.0.0.1", port: echo.port.port).get()
    try await channel.writeAndFlush(ByteBuffer(string: "GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
    #expect(String(buffer: try await mailbox.next()).hasPrefix("HTTP/1.1 200 OK"))
    try await channel.close().get()
    await echo.stop()
  }

  @Test("A request without TLS on a TLS port gets no response, and other connections continue")
  func clearText() async throws {
    let echo = try await start()
    let clear = try await RawConnection.connect(port: echo.port.port)
    try await clear.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(!(try await clear.textUntilClose()).contains("HTTP"))
    let client = try await GRPCTestClient.connect(
      port: echo.port.port, tls: try TestCertificate.clientContext(protocols: ["h2"]))
    let call = try await client.open("Fail", service: EchoPort.service)
    var message = ByteBuffer()
    message.writeGRPCMessage(bytes: [UInt8]())
    try await call.send(raw: message, endStream: true)
    #expect(try await call.status().code == .failedPrecondition)
    await client.close()
    await echo.stop()
  }

  @Test(
    "A client that does not read, idle or during a request, delays shutdown by one second at most",
    arguments: [false, true])
  func stalledClient(isIdle: Bool) async throws {
    let files = try TestCertificate.write()
    var configuration = HearthConfiguration.forTesting()
    configuration.tls = .init(certificate: files.certificate, key: files.key)
    configuration.drainSeconds = isIdle ? 5 : 1
    let server = HearthServer(configuration)
    try await server.start()
    let client = try await RawConnection.connect(
      port: try #require(server.databasePort),
      tls: try TestCertificate.clientContext(protocols: ["http/1.1"]))
    let request = "/a.json?ns=demo HTTP/1.1\r\nHost: localhost\r\n"
    if isIdle {
      try await client.send("GET \(request)\r\n")
      #expect(try await client.text(until: "null").contains("200 OK"))
    } else {
      try await client.send("PUT \(request)Content-Length: 100\r\n\r\n\"abc")
    }
    try await client.stopReading()
    let began = ContinuousClock.now
    await server.stop()
    #expect(ContinuousClock.now - began < .seconds(4))
    await client.close()
  }

  @Test("Certificate and key files that are missing or not PEM are rejected, and the error names the file")
  func unusableFiles() throws {
    let files = try TestCertificate.write()
    for (certificate, key, named) in [
      ("/nowhere.pem", files.key, "/nowhere.pem"), (files.certificate, "/nowhere.pem", "/nowhere.pem"),
      (files.certificate, files.certificate, files.certificate),
    ] {
      let error = #expect(throws: PortError.self) {
        try PortTLS(certificateFile: certificate, keyFile: key)
      }
      #expect(error?.reason == .tls)
      #expect(error?.description.contains(named) == true)
    }
  }

  private final class Receiver: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private let mailbox: Mailbox<ByteBuffer>

    init(_ mailbox: Mailbox<ByteBuffer>) { self.mailbox = mailbox }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { mailbox.put(unwrapInboundIn(data)) }
  }
}
