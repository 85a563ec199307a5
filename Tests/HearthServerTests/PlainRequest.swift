// Plain requests: HTTP requests over TCP without TLS, also on connections that never read their responses.

import NIOCore
import NIOPosix

enum PlainRequest {
  private final class Collector: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private var received = ""
    private let done: EventLoopPromise<String>
    private let begun: EventLoopPromise<Void>?

    init(_ done: EventLoopPromise<String>, begun: EventLoopPromise<Void>? = nil) {
      self.done = done
      self.begun = begun
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      received += String(buffer: unwrapInboundIn(data))
      begun?.succeed()
    }

    func channelInactive(context: ChannelHandlerContext) {
      begun?.fail(ChannelError.eof)
      done.succeed(received)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
  }

  /// Sends a request on a new connection.
  /// - Parameter headers: further headers, each `Name: value`.
  /// - Returns: the bytes received until the connection ends; empty if it is refused.
  static func send(
    _ port: Int, _ request: String, _ body: String = "", headers: [String] = []
  ) async throws -> String {
    let done = MultiThreadedEventLoopGroup.singleton.next().makePromise(of: String.self)
    do {
      let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        .channelInitializer { channel in
          channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandler(Collector(done))
          }
        }
        .connect(host: "127.0.0.1", port: port).get()
      let lines = ["\(request) HTTP/1.1", "Host: localhost", "Connection: close"] + headers
      let head = lines.map { $0 + "\r\n" }.joined()
      channel.writeAndFlush(
        ByteBuffer(string: "\(head)Content-Length: \(body.utf8.count)\r\n\r\n\(body)"), promise: nil)
    } catch {
      done.succeed("")
    }
    return try await done.futureResult.get()
  }

  /// Opens a connection.
  /// - Returns: the channel, a future of the first received bytes, and a future of all bytes received until its end.
  static func connect(
    _ port: Int
  ) async throws -> (channel: any Channel, begun: EventLoopFuture<Void>, received: EventLoopFuture<String>) {
    let loop = MultiThreadedEventLoopGroup.singleton.next()
    let done = loop.makePromise(of: String.self)
    let begun = loop.makePromise(of: Void.self)
    do {
      let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        .channelInitializer { channel in
          channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandler(Collector(done, begun: begun))
          }
        }
        .connect(host: "127.0.0.1", port: port).get()
      return (channel, begun.futureResult, done.futureResult)
    } catch {
      begun.fail(error)
      done.fail(error)
      throw error
    }
  }

  /// Opens a connection, sends bytes, and never reads.
  static func sendWithoutReading(_ port: Int, _ bytes: [UInt8]) async throws -> any Channel {
    let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .channelOption(.autoRead, value: false)
      .connect(host: "127.0.0.1", port: port).get()
    channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil)
    return channel
  }

  /// Whether a port accepts a new connection.
  static func isAccepting(_ port: Int) async -> Bool {
    let channel = try? await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .connect(host: "127.0.0.1", port: port).get()
    channel?.close(promise: nil)
    return channel != nil
  }

  /// The bytes that open a WebSocket of the Realtime Database and send these data messages.
  static func webSocketBytes(_ messages: [String]) -> [UInt8] {
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
