// Tests responses with invalid headers: the client receives them without these headers, over both versions
// of HTTP.

import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import Testing

@testable import EndpointFixture
@testable import Ports

@Suite("Response headers", .timeLimit(.minutes(10)))
struct ResponseHeaderTests {
  private static let headers: HTTPHeaders = [
    "x-good": "tab\tand \u{e9}", "x-cr": "a\rb", "x-lf": "a\nb: c", "x-nul": "a\u{0}b", "x-del": "\u{7F}",
    "x bad": "1", "": "1", "x-n\u{e9}": "1", "x-end": "a ", "X-Upper": "2", "x-empty": "",
  ]

  /// Answers every request with these headers.
  private final class ResponseHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      guard case .end = unwrapInboundIn(data) else { return }
      let head = HTTPResponseHead(version: .http1_1, status: .ok, headers: ResponseHeaderTests.headers)
      context.write(wrapOutboundOut(.head(head)), promise: nil)
      context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: "whole")))), promise: nil)
      context.writeAndFlush(wrapOutboundOut(.end(["x-trailer": "a\r\nb"])), promise: nil)
    }
  }

  @Test("A header that cannot be encoded is omitted, and the response is complete")
  func invalidHeader() async throws {
    let limits = PortLimits()
    let protocols = PortProtocols(
      http1: { channel in
        try channel.pipeline.syncOperations.addHTTP1Server(limits)
        try channel.pipeline.syncOperations.addHandler(ResponseHandler())
      },
      http2: { _ in
        { stream in
          try stream.pipeline.syncOperations.addHTTP1Translation(limits)
          try stream.pipeline.syncOperations.addHandler(ResponseHandler())
        }
      })
    let port = try await ListeningPort.bind(
      host: "127.0.0.1", port: 0, protocols: protocols, limits: limits,
      group: MultiThreadedEventLoopGroup.singleton,
      log: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    let client = try await HTTP2Client.open(port.port)
    for _ in 0..<2 {
      let response = try await client.request(.GET, "/").response()
      #expect(response.status == "200" && response.body == "whole")
    }
    await client.close()
    let raw = try await RawConnection.connect(port: port.port)
    try await raw.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    let text = try await raw.text(until: "whole")
    let lines = text.lowercased().split(separator: "\r\n").map(String.init)
    #expect(lines.contains("x-good: tab\tand \u{e9}") && lines.contains("x-upper: 2"), "\(lines)")
    for name in ["x-cr", "x-lf", "b: c", "x-nul", "x-del", "x bad", "x-n", "x-end"] {
      #expect(!lines.contains { $0.hasPrefix(name) }, "\(name)")
    }
    await port.drain(grace: .milliseconds(100))
  }
}
