// A gRPC load generator: one connection for each client, unary calls over NIOHTTP2 that collect their
// responses, and streams that deliver their messages.

import NIOConcurrencyHelpers
import NIOCore
import NIOHPACK
import NIOHTTP2
import NIOPosix

/// The response to one call: the gRPC status, and the framed messages.
struct UnaryResponse: Sendable {
  /// Negative if there was no status.
  var status: Int
  var text = ""
  var body: ByteBuffer

  /// The message of a measurement that fails.
  var failure: String {
    status < 0 ? "no answer, the connection is gone" : "status \(status)\(text.isEmpty ? "" : ": " + text)"
  }
}

/// A connection that issues a number of concurrent calls, and keeps streams open.
final class GRPCConnection: Sendable {
  private let channel: any Channel
  private let multiplexer: NIOHTTP2Handler.StreamMultiplexer
  private let isClosing = NIOLockedValueBox(false)

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
          // A server may end all streams of a connection at once, each with RST_STREAM.
          var streams = NIOHTTP2Handler.StreamConfiguration()
          streams.streamResetFrameRateLimit.maximumCount = 10_000
          let handler = NIOHTTP2Handler(
            mode: .client, eventLoop: channel.eventLoop, connectionConfiguration: connection,
            streamConfiguration: streams, inboundStreamInitializer: { $0.eventLoop.makeSucceededVoidFuture() }
          )
          try channel.pipeline.syncOperations.addHandler(handler)
          return (channel, try handler.syncMultiplexer())
        }
      }
    return GRPCConnection(channel: channel, multiplexer: multiplexer)
  }

  /// Sends one request. Call it on the connection's event loop for speed; it works from any thread.
  func call(path: String, body: ByteBuffer, token: String? = nil) -> EventLoopFuture<UnaryResponse> {
    let promise = channel.eventLoop.makePromise(of: UnaryResponse.self)
    let opened = multiplexer.createStreamChannel { stream in
      stream.eventLoop.makeCompletedFuture {
        try stream.pipeline.syncOperations.addHandler(
          UnaryCall(path: path, body: body, token: token, promise: promise))
      }
    }
    opened.cascadeFailure(to: promise)
    return promise.futureResult
  }

  /// Opens a stream for any number of messages. `onEnd` receives the result if the server ends the stream.
  /// - Parameter token: the credential of the stream; nil for none.
  func open(
    path: String, token: String? = nil, onMessage: @escaping @Sendable (ByteBuffer) -> Void,
    onEnd: @escaping @Sendable (String) -> Void
  ) async throws -> GRPCStream {
    let isClosing = isClosing
    let stream = try await multiplexer.createStreamChannel { stream in
      stream.eventLoop.makeCompletedFuture {
        try stream.pipeline.syncOperations.addHandler(
          StreamedCall(
            path: path, token: token, onMessage: onMessage,
            onEnd: { failure in if !isClosing.withLockedValue({ $0 }) { onEnd(failure) } }))
      }
    }.get()
    return GRPCStream(channel: stream)
  }

  func close() async {
    isClosing.withLockedValue { $0 = true }
    try? await channel.close()
  }
}

/// An open stream.
struct GRPCStream: Sendable {
  fileprivate let channel: any Channel

  /// Sends a framed message.
  func send(_ message: ByteBuffer) {
    channel.writeAndFlush(HTTP2Frame.FramePayload.data(.init(data: .byteBuffer(message))), promise: nil)
  }
}

func requestHeaders(_ path: String, token: String? = nil) -> HPACKHeaders {
  var headers: HPACKHeaders = [
    ":method": "POST", ":scheme": "http", ":path": path, ":authority": "127.0.0.1",
    "content-type": "application/grpc", "te": "trailers",
    "google-cloud-resource-prefix": BenchmarkDocument.database,
  ]
  if let token { headers.add(name: "authorization", value: "Bearer " + token) }
  return headers
}

/// The handler of a unary call: sends headers and one length-prefixed message, collects the response.
private final class UnaryCall: ChannelInboundHandler {
  typealias InboundIn = HTTP2Frame.FramePayload
  typealias OutboundOut = HTTP2Frame.FramePayload

  private let path: String
  private let body: ByteBuffer
  private let token: String?
  private let promise: EventLoopPromise<UnaryResponse>
  private var answer = UnaryResponse(status: -1, body: ByteBuffer())

  init(path: String, body: ByteBuffer, token: String?, promise: EventLoopPromise<UnaryResponse>) {
    self.path = path
    self.body = body
    self.token = token
    self.promise = promise
  }

  func channelActive(context: ChannelHandlerContext) {
    context.write(wrapOutboundOut(.headers(.init(headers: requestHeaders(path, token: token)))), promise: nil)
    context.writeAndFlush(
      wrapOutboundOut(.data(.init(data: .byteBuffer(body), endStream: true))), promise: nil)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .headers(let frame):
      if let text = frame.headers.first(name: "grpc-status"), let code = Int(text) {
        answer.status = code
        answer.text = frame.headers.first(name: "grpc-message") ?? ""
      }
    case .data(let frame):
      if case .byteBuffer(var bytes) = frame.data { answer.body.writeBuffer(&bytes) }
    default:
      break
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    promise.succeed(answer)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    promise.fail(error)
    context.close(promise: nil)
  }
}

/// The handler of a stream: sends headers, delivers messages.
private final class StreamedCall: ChannelInboundHandler {
  typealias InboundIn = HTTP2Frame.FramePayload
  typealias OutboundOut = HTTP2Frame.FramePayload

  private let path: String
  private let token: String?
  private let onMessage: @Sendable (ByteBuffer) -> Void
  private let onEnd: @Sendable (String) -> Void
  private var received = ByteBuffer()
  private var end = "no status"

  init(
    path: String, token: String?, onMessage: @escaping @Sendable (ByteBuffer) -> Void,
    onEnd: @escaping @Sendable (String) -> Void
  ) {
    self.path = path
    self.token = token
    self.onMessage = onMessage
    self.onEnd = onEnd
  }

  func channelActive(context: ChannelHandlerContext) {
    context.writeAndFlush(
      wrapOutboundOut(.headers(.init(headers: requestHeaders(path, token: token)))), promise: nil)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .headers(let frame):
      if let status = frame.headers.first(name: "grpc-status") {
        end = "status \(status): \(frame.headers.first(name: "grpc-message") ?? "")"
      }
    case .data(let frame):
      guard case .byteBuffer(var bytes) = frame.data else { return }
      received.writeBuffer(&bytes)
      while let message = received.readGRPCMessage() { onMessage(message) }
      if received.readableBytes == 0 { received = ByteBuffer() }
    default: break
    }
  }

  func channelInactive(context: ChannelHandlerContext) { onEnd(end) }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    end = "\(error)"
    context.close(promise: nil)
  }
}

extension ByteBuffer {
  /// The next complete message, without its frame header.
  mutating func readGRPCMessage() -> ByteBuffer? {
    guard let length = getInteger(at: readerIndex + 1, as: UInt32.self), readableBytes >= 5 + Int(length)
    else {
      return nil
    }
    moveReaderIndex(forwardBy: 5)
    return readSlice(length: Int(length))
  }
}

/// Adds gRPC's frame header to a message: not compressed, then its length.
func framed(_ message: [UInt8]) -> ByteBuffer {
  var buffer = ByteBuffer()
  buffer.reserveCapacity(message.count + 5)
  buffer.writeInteger(UInt8(0))
  buffer.writeInteger(UInt32(message.count))
  buffer.writeBytes(message)
  return buffer
}
