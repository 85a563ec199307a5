// Requests over plain TCP, and connections that never read what they asked for.

import NIOCore
import NIOPosix

enum PlainRequest {
  private final class Collector: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private var text = ""
    private let done: EventLoopPromise<String>

    init(_ done: EventLoopPromise<String>) { self.done = done }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      text += String(buffer: unwrapInboundIn(data))
    }

    func channelInactive(context: ChannelHandlerContext) { done.succeed(text) }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
  }

  /// Sends a request on a connection of its own; everything that comes back until its end, nothing if it is refused.
  static func answer(_ port: Int, _ request: String, _ body: String = "") async throws -> String {
    let done = MultiThreadedEventLoopGroup.singleton.next().makePromise(of: String.self)
    do {
      let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        .channelInitializer { channel in
          channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandler(Collector(done))
          }
        }
        .connect(host: "127.0.0.1", port: port).get()
      let head = "\(request) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
      channel.writeAndFlush(
        ByteBuffer(string: "\(head)Content-Length: \(body.utf8.count)\r\n\r\n\(body)"), promise: nil)
    } catch {
      done.succeed("")
    }
    return try await done.futureResult.get()
  }

  /// Opens a connection; what comes back until its end is in the future.
  static func connection(_ port: Int) async throws -> (channel: any Channel, answers: EventLoopFuture<String>)
  {
    let done = MultiThreadedEventLoopGroup.singleton.next().makePromise(of: String.self)
    do {
      let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        .channelInitializer { channel in
          channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandler(Collector(done))
          }
        }
        .connect(host: "127.0.0.1", port: port).get()
      return (channel, done.futureResult)
    } catch {
      done.fail(error)
      throw error
    }
  }

  /// Opens a connection, sends bytes, and never reads.
  static func deaf(_ port: Int, _ bytes: [UInt8]) async throws -> any Channel {
    let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .channelOption(.autoRead, value: false)
      .connect(host: "127.0.0.1", port: port).get()
    channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil)
    return channel
  }

  /// The bytes that open a WebSocket of the Realtime Database and send these data messages.
  static func socket(_ messages: [String]) -> [UInt8] {
    var bytes = Array(
      ("GET /.ws?v=5&ns=demo HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n").utf8)
    for message in messages {
      let payload = Array("{\"t\":\"d\",\"d\":\(message)}".utf8)
      bytes +=
        [0x81, 0x80 | 126, UInt8(payload.count >> 8), UInt8(payload.count & 255), 0, 0, 0, 0] + payload
    }
    return bytes
  }
}
