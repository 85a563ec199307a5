// WebSocket load generators: many listeners that count messages, and one writer.

import NIOCore
import NIOHTTP1
import NIOPosix
import NIOWebSocket

/// One WebSocket connection: sends strings, and counts or delivers received text frames.
final class WebSocketConnection: Sendable {
  let channel: any Channel
  private init(channel: any Channel) { self.channel = channel }

  static func connect(
    port: Int, path: String, on group: any EventLoopGroup,
    onText: @escaping @Sendable (ByteBuffer, any Channel) -> Void
  ) async throws -> WebSocketConnection {
    let upgraded = group.any().makePromise(of: (any Channel).self)
    let channel = try await ClientBootstrap(group: group)
      .channelOption(.socketOption(.tcp_nodelay), value: 1)
      .channelInitializer { channel in
        let upgrader = NIOWebSocketClientUpgrader(maxFrameSize: 1 << 20) { channel, _ in
          channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandler(TextReceiver(onText: onText))
            upgraded.succeed(channel)
          }
        }
        return channel.pipeline.addHTTPClientHandlers(
          leftOverBytesStrategy: .forwardBytes,
          withClientUpgrade: (upgraders: [upgrader], completionHandler: { _ in }))
      }
      .connect(host: "127.0.0.1", port: port).get()
    var head = HTTPRequestHead(version: .http1_1, method: .GET, uri: path)
    head.headers.add(name: "Host", value: "127.0.0.1:\(port)")
    head.headers.add(name: "Content-Length", value: "0")
    channel.write(HTTPClientRequestPart.head(head), promise: nil)
    channel.writeAndFlush(HTTPClientRequestPart.end(nil), promise: nil)
    channel.closeFuture.whenComplete { _ in upgraded.fail(BenchmarkFailure("closed before the upgrade")) }
    return WebSocketConnection(channel: try await upgraded.futureResult.get())
  }

  func send(_ string: String) {
    var bytes = channel.allocator.buffer(capacity: string.utf8.count)
    bytes.writeString(string)
    channel.writeAndFlush(
      WebSocketFrame(fin: true, opcode: .text, maskKey: .random(), data: bytes), promise: nil)
  }

  func close() { channel.close(promise: nil) }
}

private final class TextReceiver: ChannelInboundHandler {
  typealias InboundIn = WebSocketFrame
  typealias OutboundOut = WebSocketFrame

  private let onText: @Sendable (ByteBuffer, any Channel) -> Void
  init(onText: @escaping @Sendable (ByteBuffer, any Channel) -> Void) { self.onText = onText }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let frame = unwrapInboundIn(data)
    switch frame.opcode {
    case .text:
      onText(frame.data, context.channel)
    case .ping:
      context.writeAndFlush(
        wrapOutboundOut(WebSocketFrame(fin: true, opcode: .pong, maskKey: .random(), data: frame.data)),
        promise: nil)
    default:
      break
    }
  }
}

enum WebSocketFrameFactory {
  /// A masked text frame, as required of clients.
  static func text(_ bytes: ByteBuffer) -> WebSocketFrame {
    WebSocketFrame(fin: true, opcode: .text, maskKey: .random(), data: bytes)
  }
}

/// Closes connections and waits until they are closed: the next measurement needs their file descriptors.
func close(_ connections: [WebSocketConnection]) async {
  for connection in connections { connection.close() }
  for connection in connections { try? await connection.channel.closeFuture.get() }
}

extension ByteBuffer {
  /// Whether the readable bytes contain `string`.
  func contains(_ string: String) -> Bool {
    let needle = Array(string.utf8)
    return withUnsafeReadableBytes { bytes in
      guard bytes.count >= needle.count, let first = needle.first else { return false }
      for start in 0...(bytes.count - needle.count) where bytes[start] == first {
        if (1..<needle.count).allSatisfy({ bytes[start + $0] == needle[$0] }) { return true }
      }
      return false
    }
  }
}
