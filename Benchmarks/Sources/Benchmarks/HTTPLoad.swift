// An HTTP/1.1 load generator: connections with one POST in flight each.

import NIOCore
import NIOHTTP1
import NIOPosix

/// A connection that repeats POST requests until its tally is stopped.
struct HTTPLoad: Sendable {
  private let channel: any Channel

  /// Connects and sends the first request.
  /// - Parameter bodies: the JSON bodies, which are sent in order. Without `repeats`, each is sent once.
  static func start(
    port: Int, on group: any EventLoopGroup, path: String, bodies: [String], repeats: Bool, tally: UnaryTally
  ) async throws -> HTTPLoad {
    let channel = try await ClientBootstrap(group: group)
      .channelOption(.socketOption(.tcp_nodelay), value: 1)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHTTPClientHandlers()
          try channel.pipeline.syncOperations.addHandler(
            HTTPLoadHandler(host: "127.0.0.1:\(port)", path, bodies, repeats, tally))
        }
      }
      .connect(host: "127.0.0.1", port: port).get()
    return HTTPLoad(channel: channel)
  }

  func close() async { try? await channel.close() }
}

private final class HTTPLoadHandler: ChannelInboundHandler {
  typealias InboundIn = HTTPClientResponsePart
  typealias OutboundOut = HTTPClientRequestPart

  private let host: String
  private let path: String
  private let bodies: [String]
  private let repeats: Bool
  private let tally: UnaryTally
  private var sent = 0
  private var status = 0
  private var text = ByteBuffer()

  init(host: String, _ path: String, _ bodies: [String], _ repeats: Bool, _ tally: UnaryTally) {
    self.host = host
    self.path = path
    self.bodies = bodies
    self.repeats = repeats
    self.tally = tally
  }

  func channelActive(context: ChannelHandlerContext) { send(context) }

  private func send(_ context: ChannelHandlerContext) {
    guard !tally.stopped, repeats || sent < bodies.count else { return }
    let body = ByteBuffer(string: bodies[sent % bodies.count])
    sent += 1
    let head = HTTPRequestHead(
      version: .http1_1, method: .POST, uri: path,
      headers: [
        "host": host, "content-type": "application/json", "content-length": String(body.readableBytes),
      ])
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head):
      status = Int(head.status.code)
      text = ByteBuffer()
    case .body(var bytes): text.writeBuffer(&bytes)
    case .end:
      if status == 200 { tally.done.add() } else { tally.fail("status \(status): \(String(buffer: text))") }
      send(context)
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    if !tally.stopped { tally.fail("no answer, the connection is gone") }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
