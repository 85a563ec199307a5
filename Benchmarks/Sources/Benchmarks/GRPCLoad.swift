// A gRPC client that does nothing but load: one connection a client, unary calls over NIOHTTP2, the answer's
// first message kept only when somebody asks for it.

import NIOCore
import NIOHPACK
import NIOHTTP2
import NIOPosix

/// One unary call's answer: the gRPC status and the first message's bytes.
struct UnaryAnswer: Sendable {
  var status: Int
  var message: ByteBuffer
}

/// A connection that issues unary calls, some number at a time.
final class GRPCConnection: Sendable {
  private let channel: any Channel
  private let multiplexer: NIOHTTP2Handler.StreamMultiplexer

  private init(channel: any Channel, multiplexer: NIOHTTP2Handler.StreamMultiplexer) {
    self.channel = channel
    self.multiplexer = multiplexer
  }

  var eventLoop: any EventLoop { channel.eventLoop }

  static func connect(port: Int, on group: any EventLoopGroup) async throws -> GRPCConnection {
    let (channel, multiplexer) = try await ClientBootstrap(group: group)
      .channelOption(.socketOption(.tcp_nodelay), value: 1)
      .connect(host: "127.0.0.1", port: port) { channel in
        channel.eventLoop.makeCompletedFuture {
          var connection = NIOHTTP2Handler.ConnectionConfiguration()
          connection.initialSettings += [.init(parameter: .initialWindowSize, value: 1 << 20)]
          let handler = NIOHTTP2Handler(
            mode: .client, eventLoop: channel.eventLoop, connectionConfiguration: connection,
            streamConfiguration: .init(), inboundStreamInitializer: { $0.eventLoop.makeSucceededVoidFuture() }
          )
          try channel.pipeline.syncOperations.addHandler(handler)
          return (channel, try handler.syncMultiplexer())
        }
      }
    return GRPCConnection(channel: channel, multiplexer: multiplexer)
  }

  /// Sends one request; must be called on the connection's event loop for speed, works from anywhere.
  func call(path: String, body: ByteBuffer) -> EventLoopFuture<UnaryAnswer> {
    let promise = channel.eventLoop.makePromise(of: UnaryAnswer.self)
    let opened = multiplexer.createStreamChannel { stream in
      stream.eventLoop.makeCompletedFuture {
        try stream.pipeline.syncOperations.addHandler(UnaryCall(path: path, body: body, promise: promise))
      }
    }
    opened.cascadeFailure(to: promise)
    return promise.futureResult
  }

  func close() async { try? await channel.close() }
}

/// The stream's handler: sends headers and one length-prefixed message, gathers the answer.
private final class UnaryCall: ChannelInboundHandler {
  typealias InboundIn = HTTP2Frame.FramePayload
  typealias OutboundOut = HTTP2Frame.FramePayload

  private let path: String
  private let body: ByteBuffer
  private let promise: EventLoopPromise<UnaryAnswer>
  private var message = ByteBuffer()
  private var status = -1

  init(path: String, body: ByteBuffer, promise: EventLoopPromise<UnaryAnswer>) {
    self.path = path
    self.body = body
    self.promise = promise
  }

  func channelActive(context: ChannelHandlerContext) {
    let headers: HPACKHeaders = [
      ":method": "POST", ":scheme": "http", ":path": path, ":authority": "127.0.0.1",
      "content-type": "application/grpc", "te": "trailers",
      "google-cloud-resource-prefix": "projects/bench/databases/(default)",
    ]
    context.write(wrapOutboundOut(.headers(.init(headers: headers))), promise: nil)
    context.writeAndFlush(
      wrapOutboundOut(.data(.init(data: .byteBuffer(body), endStream: true))), promise: nil)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .headers(let frame):
      if let text = frame.headers.first(name: "grpc-status"), let code = Int(text) { status = code }
    case .data(let frame):
      if case .byteBuffer(var bytes) = frame.data { message.writeBuffer(&bytes) }
    default:
      break
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    message.moveReaderIndex(forwardBy: min(5, message.readableBytes))
    promise.succeed(UnaryAnswer(status: status, message: message))
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    promise.fail(error)
    context.close(promise: nil)
  }
}

/// Prefixes a message as gRPC does: not compressed, then its length.
func framed(_ message: [UInt8]) -> ByteBuffer {
  var buffer = ByteBuffer()
  buffer.reserveCapacity(message.count + 5)
  buffer.writeInteger(UInt8(0))
  buffer.writeInteger(UInt32(message.count))
  buffer.writeBytes(message)
  return buffer
}
