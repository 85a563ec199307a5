// An HTTP/2 client that reports every part of a response. It can send a request in parts, or only a part of
// it.

import NIOCore
import NIOHTTP1
import NIOHTTP2
import NIOSSL
import Ports

struct HTTP2Client {
  /// The stream of one request.
  struct Exchange {
    let stream: any Channel
    /// The parts of the response as strings: the status, the chunks of the body, and finally `end`, or
    /// `reset` if the stream was reset.
    let parts: Mailbox<String>

    func send(_ body: String, end: Bool = false) async throws {
      try await stream.writeAndFlush(HTTPClientRequestPart.body(.byteBuffer(ByteBuffer(string: body)))).get()
      if end { try await stream.writeAndFlush(HTTPClientRequestPart.end(nil)).get() }
    }

    func next() async throws -> String { try await parts.next() }

    /// Waits for the status and the complete body. A reset after the end of the response is ignored.
    func response() async throws -> (status: String, body: String) {
      let status = try await next()
      var body = ""
      while case let part = try await next(), part != "end" {
        if part == "reset" { throw DeadlinePassed() }
        body += part
      }
      return (status, body)
    }
  }

  private final class PartCollector: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart
    let parts: Mailbox<String>
    private var isReset = false

    init(_ parts: Mailbox<String>) { self.parts = parts }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      switch unwrapInboundIn(data) {
      case .head(let head): parts.put("\(head.status.code)")
      case .body(let bytes): parts.put(String(buffer: bytes))
      case .end: parts.put("end")
      }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
      if let closed = error as? NIOHTTP2Errors.StreamClosed, closed.errorCode != .noError { isReset = true }
      context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) { if isReset { parts.put("reset") } }
  }

  let channel: any Channel
  let multiplexer: NIOHTTP2Handler.StreamMultiplexer

  /// - Parameter window: the initial window of a stream, in bytes.
  static func open(_ port: Int, tls: NIOSSLContext? = nil, window: Int = 1 << 16) async throws -> HTTP2Client
  {
    let (channel, multiplexer) = try await HTTP2Connection.open(port, tls: tls, window: window)
    return HTTP2Client(channel: channel, multiplexer: multiplexer)
  }

  /// Sends a request's head and its body, if there is one.
  func request(
    _ method: HTTPMethod, _ target: String, body: String? = nil, headers: HTTPHeaders = [:], end: Bool = true
  ) async throws -> Exchange {
    let parts = Mailbox<String>(channel.eventLoop)
    let stream = try await multiplexer.createStreamChannel { stream in
      stream.eventLoop.makeCompletedFuture {
        try stream.pipeline.syncOperations.addHandler(
          HTTP2FramePayloadToHTTP1ClientCodec(httpProtocol: .http))
        try stream.pipeline.syncOperations.addHandler(PartCollector(parts))
      }
    }.get()
    var headers = headers
    headers.add(name: "host", value: "localhost")
    let head = HTTPRequestHead(version: .http1_1, method: method, uri: target, headers: headers)
    try await stream.writeAndFlush(HTTPClientRequestPart.head(head)).get()
    let exchange = Exchange(stream: stream, parts: parts)
    if let body { try await exchange.send(body) }
    if end { try await stream.writeAndFlush(HTTPClientRequestPart.end(nil)).get() }
    return exchange
  }

  func close() async { try? await channel.close().get() }
}
