import Endpoints
import NIOCore
import NIOHTTP1
import NIOHTTP2
import NIOPosix
import RealtimeEngine
import RealtimeModel
import Testing

@Suite("Realtime Database over HTTP/2", .timeLimit(.minutes(1)))
struct RealtimeHTTP2Tests {
  /// What a stream gets, part by part.
  private final class Parts: ChannelInboundHandler, Sendable {
    typealias InboundIn = HTTPClientResponsePart
    let continuation: AsyncStream<String>.Continuation

    init(_ continuation: AsyncStream<String>.Continuation) { self.continuation = continuation }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      switch unwrapInboundIn(data) {
      case .head(let head): continuation.yield("\(head.status.code)")
      case .body(let bytes): continuation.yield(String(buffer: bytes))
      case .end: continuation.finish()
      }
    }

    func channelInactive(context: ChannelHandlerContext) { continuation.finish() }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
  }

  private struct Connection {
    let channel: any Channel
    let multiplexer: NIOHTTP2Handler.StreamMultiplexer

    static func open(_ server: RealtimeTestServer) async throws -> Connection {
      let (channel, multiplexer) = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        .connect(host: "127.0.0.1", port: server.port.port) { channel in
          channel.eventLoop.makeCompletedFuture {
            let multiplexer = try channel.pipeline.syncOperations.configureHTTP2Pipeline(
              mode: .client, connectionConfiguration: .init(), streamConfiguration: .init()
            ) { $0.eventLoop.makeSucceededVoidFuture() }
            return (channel, multiplexer)
          }
        }
      return Connection(channel: channel, multiplexer: multiplexer)
    }

    func request(
      _ method: HTTPMethod, _ target: String, body: String? = nil, headers: HTTPHeaders = [:]
    ) async throws -> (stream: any Channel, parts: AsyncStream<String>) {
      let (parts, continuation) = AsyncStream<String>.makeStream()
      let stream = try await multiplexer.createStreamChannel { stream in
        stream.eventLoop.makeCompletedFuture {
          try stream.pipeline.syncOperations.addHandler(
            HTTP2FramePayloadToHTTP1ClientCodec(httpProtocol: .http))
          try stream.pipeline.syncOperations.addHandler(Parts(continuation))
        }
      }.get()
      var headers = headers
      headers.add(name: "host", value: "localhost")
      if let body { headers.add(name: "content-length", value: String(body.utf8.count)) }
      let head = HTTPRequestHead(version: .http1_1, method: method, uri: target, headers: headers)
      stream.write(HTTPClientRequestPart.head(head), promise: nil)
      if let body {
        stream.write(HTTPClientRequestPart.body(.byteBuffer(ByteBuffer(string: body))), promise: nil)
      }
      try await stream.writeAndFlush(HTTPClientRequestPart.end(nil)).get()
      return (stream, parts)
    }
  }

  @Test("many requests share a connection, event streams too")
  func requests() async throws {
    try await RealtimeTestServer.run { server in
      let connection = try await Connection.open(server)
      let events = try await connection.request(.GET, "/a.json", headers: ["accept": "text/event-stream"])
      var iterator = events.parts.makeAsyncIterator()
      #expect(await iterator.next() == "200")
      #expect(await iterator.next() == "event: put\ndata: {\"path\":\"/\",\"data\":null}\n\n")
      for index in 0..<5 {
        let written = try await connection.request(.PUT, "/a.json", body: "\(index)")
        var answer: [String] = []
        for await part in written.parts { answer.append(part) }
        #expect(answer == ["200", "\(index)"])
        #expect(await iterator.next() == "event: put\ndata: {\"path\":\"/\",\"data\":\(index)}\n\n")
      }
      let upgrade = try await connection.request(.GET, "/.ws?v=5")
      for await part in upgrade.parts.prefix(1) { #expect(part == "400") }
      try await connection.channel.close().get()
    }
  }
}
