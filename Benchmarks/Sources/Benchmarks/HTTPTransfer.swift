// An HTTP/1.1 client that sends a body in chunks as the server accepts it, and counts the response's bytes.

import NIOCore
import NIOHTTP1
import NIOPosix

enum HTTPTransfer {
  /// Sends a PUT or PATCH with a body.
  /// - Parameter isOwner: whether the emulator's owner sends it.
  /// - Returns: the status.
  static func put(
    _ uri: String, port: Int, on group: any EventLoopGroup, pieces: some Sequence<ByteBuffer>,
    isOwner: Bool = true, isPatch: Bool = false
  ) async throws -> Int {
    let (channel, answer) = try await connect(port, group)
    var head = head(isPatch ? .PATCH : .PUT, uri, port)
    if !isOwner { head.headers.remove(name: "Authorization") }
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
    let result = try await answer.get()
    return (result.status, result.bytes)
  }

  /// Sends a POST with a JSON body and without credentials.
  /// - Returns: the status, and the first 64 KiB of the body.
  static func post(
    _ uri: String, port: Int, on group: any EventLoopGroup, json: String
  ) async throws -> (status: Int, text: String) {
    let (channel, answer) = try await connect(port, group)
    var head = HTTPRequestHead(version: .http1_1, method: .POST, uri: uri)
    head.headers = [
      "Host": "127.0.0.1:\(port)", "Content-Type": "application/json", "Content-Length": "\(json.utf8.count)",
      "Connection": "close",
    ]
    channel.write(HTTPClientRequestPart.head(head), promise: nil)
    channel.write(HTTPClientRequestPart.body(.byteBuffer(ByteBuffer(string: json))), promise: nil)
    channel.writeAndFlush(HTTPClientRequestPart.end(nil), promise: nil)
    let result = try await answer.get()
    return (result.status, result.text)
  }

  private static func head(_ method: HTTPMethod, _ uri: String, _ port: Int) -> HTTPRequestHead {
    HTTPRequestHead(
      version: .http1_1, method: method, uri: uri,
      headers: ["Host": "127.0.0.1:\(port)", "Authorization": "Bearer owner", "Connection": "close"])
  }

  private typealias Answer = (status: Int, bytes: Int, text: String)

  private static func connect(
    _ port: Int, _ group: any EventLoopGroup
  ) async throws -> (any Channel, EventLoopFuture<Answer>) {
    let loop = group.any()
    let promise = loop.makePromise(of: Answer.self)
    let channel = try await ClientBootstrap(group: loop)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHTTPClientHandlers()
          try channel.pipeline.syncOperations.addHandler(ResponseCollector(promise))
        }
      }
      .connect(host: "127.0.0.1", port: port).get()
    return (channel, promise.futureResult)
  }
}

private final class ResponseCollector: ChannelInboundHandler {
  typealias InboundIn = HTTPClientResponsePart

  private static let maximumText = 64 << 10

  private let promise: EventLoopPromise<(status: Int, bytes: Int, text: String)>
  private var status = 0
  private var bytes = 0
  private var text = ByteBuffer()

  init(_ promise: EventLoopPromise<(status: Int, bytes: Int, text: String)>) { self.promise = promise }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head): status = Int(head.status.code)
    case .body(let piece):
      bytes += piece.readableBytes
      if bytes <= Self.maximumText { text.writeImmutableBuffer(piece) }
    case .end:
      promise.succeed((status, bytes, String(buffer: text)))
      context.close(promise: nil)
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    promise.fail(BenchmarkFailure("the connection ended before the answer, after \(bytes) bytes of it"))
  }
}
