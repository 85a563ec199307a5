// An HTTP/1.1 client that sends a body in chunks as the server accepts it, and counts the response's bytes.

import NIOCore
import NIOHTTP1
import NIOPosix

enum HTTPTransfer {
  /// Sends a PUT with a body.
  /// - Returns: the status.
  static func put(
    _ uri: String, port: Int, on group: any EventLoopGroup, pieces: some Sequence<ByteBuffer>
  ) async throws -> Int {
    let (channel, answer) = try await connect(port, group)
    var head = head(.PUT, uri, port)
    head.headers.add(name: "Transfer-Encoding", value: "chunked")
    channel.write(HTTPClientRequestPart.head(head), promise: nil)
    for piece in pieces {
      try await channel.writeAndFlush(HTTPClientRequestPart.body(.byteBuffer(piece))).get()
    }
    channel.writeAndFlush(HTTPClientRequestPart.end(nil), promise: nil)
    return try await answer.get().status
  }

  /// Sends a GET.
  /// - Returns: the status, and the number of bytes of the body.
  static func get(
    _ uri: String, port: Int, on group: any EventLoopGroup
  ) async throws -> (status: Int, bytes: Int) {
    let (channel, answer) = try await connect(port, group)
    channel.write(HTTPClientRequestPart.head(head(.GET, uri, port)), promise: nil)
    channel.writeAndFlush(HTTPClientRequestPart.end(nil), promise: nil)
    return try await answer.get()
  }

  private static func head(_ method: HTTPMethod, _ uri: String, _ port: Int) -> HTTPRequestHead {
    HTTPRequestHead(
      version: .http1_1, method: method, uri: uri,
      headers: ["Host": "127.0.0.1:\(port)", "Authorization": "Bearer owner", "Connection": "close"])
  }

  private static func connect(
    _ port: Int, _ group: any EventLoopGroup
  ) async throws -> (any Channel, EventLoopFuture<(status: Int, bytes: Int)>) {
    let loop = group.any()
    let promise = loop.makePromise(of: (status: Int, bytes: Int).self)
    let channel = try await ClientBootstrap(group: loop)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHTTPClientHandlers()
          try channel.pipeline.syncOperations.addHandler(AnswerCounter(promise))
        }
      }
      .connect(host: "127.0.0.1", port: port).get()
    return (channel, promise.futureResult)
  }
}

private final class AnswerCounter: ChannelInboundHandler {
  typealias InboundIn = HTTPClientResponsePart

  private let promise: EventLoopPromise<(status: Int, bytes: Int)>
  private var status = 0
  private var bytes = 0

  init(_ promise: EventLoopPromise<(status: Int, bytes: Int)>) { self.promise = promise }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head): status = Int(head.status.code)
    case .body(let piece): bytes += piece.readableBytes
    case .end:
      promise.succeed((status, bytes))
      context.close(promise: nil)
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    promise.fail(BenchmarkFailure("the connection ended before the answer, after \(bytes) bytes of it"))
  }
}
