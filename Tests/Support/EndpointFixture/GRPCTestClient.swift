// A gRPC test client: this project's gRPC framing over NIOHTTP2. It can also send raw bytes and invalid
// frames, reset streams, and stop reading.

import GRPCFraming
import NIOCore
import NIOHPACK
import NIOHTTP2
import NIOSSL
import Ports
import SwiftProtobuf
import Testing

final class GRPCTestClient: Sendable {
  let channel: any Channel
  private let multiplexer: NIOHTTP2Handler.StreamMultiplexer
  private let scheme: String

  private init(_ channel: any Channel, _ multiplexer: NIOHTTP2Handler.StreamMultiplexer, scheme: String) {
    self.channel = channel
    self.multiplexer = multiplexer
    self.scheme = scheme
  }

  /// - Parameters:
  ///   - local: the address of this end of the connection.
  ///   - window: the flow-control window of each stream in bytes; a small one tests backpressure.
  static func connect(
    port: Int, from local: SocketAddress? = nil, tls: NIOSSLContext? = nil, window: Int = 1 << 20
  ) async throws -> GRPCTestClient {
    let (channel, multiplexer) = try await HTTP2Connection.open(port, from: local, tls: tls, window: window)
    return GRPCTestClient(channel, multiplexer, scheme: tls == nil ? "http" : "https")
  }

  func close() async {
    try? await channel.close().get()
  }

  /// Opens a call and sends its headers immediately.
  func open(
    _ method: String, service: String = "google.firestore.v1.Firestore", metadata: [(String, String)] = [],
    timeout: GRPCTimeout? = nil
  ) async throws -> GRPCTestCall {
    try await open(
      headers: GRPCClientStream.requestHeaders(
        path: "/\(service)/\(method)", authority: "localhost", scheme: scheme, timeout: timeout,
        metadata: metadata))
  }

  func open(headers: HPACKHeaders, endStream: Bool = false) async throws -> GRPCTestCall {
    let mailbox = Mailbox<GRPCClientStream.Event>(channel.eventLoop)
    let promise = channel.eventLoop.makePromise(of: (any Channel).self)
    multiplexer.createStreamChannel(promise: promise) { stream in
      stream.eventLoop.makeCompletedFuture {
        try stream.pipeline.syncOperations.addHandler(GRPCTestHandler(mailbox))
      }
    }
    let stream = try await promise.futureResult.get()
    try await stream.writeAndFlush(
      HTTP2Frame.FramePayload.headers(.init(headers: headers, endStream: endStream)))
    return GRPCTestCall(stream, mailbox)
  }

  /// The metadata of the emulator's owner.
  static let administrator = [("authorization", "Bearer owner")]

  /// Sends one request and returns its response.
  /// - Throws: the call's status, unless it is OK.
  func unary<Response: Message>(
    _ method: String, _ request: some Message, metadata: [(String, String)] = [],
    as response: Response.Type = Response.self
  ) async throws -> Response {
    let messages = try await stream(method, request, metadata: metadata, as: Response.self)
    return try #require(messages.first)
  }

  /// Sends one request and returns every response.
  func stream<Response: Message>(
    _ method: String, _ request: some Message, metadata: [(String, String)] = [],
    as response: Response.Type = Response.self
  ) async throws -> [Response] {
    let call = try await open(method, metadata: metadata)
    // A send error is ignored: the server may respond and close the stream before the request is sent
    // completely.
    try? await call.send(request, endStream: true)
    var messages: [Response] = []
    while true {
      switch try await call.next() {
      case .metadata: break
      case .message(let bytes): messages.append(try Response(serializedBytes: Array(bytes.readableBytesView)))
      case .end(let status, _):
        guard status.code == .ok else { throw status }
        return messages
      }
    }
  }
}

final class GRPCTestCall: Sendable {
  let channel: any Channel
  private let mailbox: Mailbox<GRPCClientStream.Event>

  init(_ channel: any Channel, _ mailbox: Mailbox<GRPCClientStream.Event>) {
    self.channel = channel
    self.mailbox = mailbox
  }

  func send(_ message: some Message, endStream: Bool = false) async throws {
    var buffer = ByteBuffer()
    let bytes: [UInt8] = try message.serializedBytes()
    buffer.writeGRPCMessage(bytes: bytes)
    try await send(raw: buffer, endStream: endStream)
  }

  func send(raw bytes: ByteBuffer, endStream: Bool = false) async throws {
    try await channel.writeAndFlush(
      HTTP2Frame.FramePayload.data(.init(data: .byteBuffer(bytes), endStream: endStream)))
  }

  func halfClose() async throws {
    try await send(raw: ByteBuffer(), endStream: true)
  }

  func reset() async throws {
    try await channel.writeAndFlush(HTTP2Frame.FramePayload.rstStream(.cancel))
  }

  func next(within deadline: TimeAmount = .seconds(60)) async throws -> GRPCClientStream.Event {
    try await mailbox.next(within: deadline)
  }

  /// Whether an event has arrived that the test has not read.
  var hasUnreadEvents: Bool { !mailbox.isEmpty }

  /// Returns the next message, decoded, and skips the initial metadata.
  /// - Throws: the call's status if the call ends first.
  func message<Response: Message>(
    as type: Response.Type = Response.self, within deadline: TimeAmount = .seconds(60)
  ) async throws -> Response {
    while true {
      switch try await next(within: deadline) {
      case .metadata: continue
      case .message(let bytes): return try Response(serializedBytes: Array(bytes.readableBytesView))
      case .end(let status, _): throw status
      }
    }
  }

  /// Returns the status of the call, and skips the messages before it.
  func status(within deadline: TimeAmount = .seconds(60)) async throws -> GRPCStatus {
    while true {
      if case .end(let status, _) = try await next(within: deadline) { return status }
    }
  }
}

private final class GRPCTestHandler: ChannelInboundHandler {
  typealias InboundIn = HTTP2Frame.FramePayload

  private let mailbox: Mailbox<GRPCClientStream.Event>
  private var stream = GRPCClientStream()

  init(_ mailbox: Mailbox<GRPCClientStream.Event>) {
    self.mailbox = mailbox
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .headers(let block): stream.receive(headers: block.headers, endStream: block.endStream)
    case .data(let block):
      if case .byteBuffer(let bytes) = block.data { stream.receive(data: bytes, endStream: block.endStream) }
    case .rstStream(let code): stream.receiveReset(http2Code: UInt32(code.networkCode))
    default: break
    }
    drain()
  }

  func channelInactive(context: ChannelHandlerContext) {
    stream.receiveConnectionLoss("The connection is gone.")
    drain()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if let closed = error as? NIOHTTP2Errors.StreamClosed {
      stream.receiveReset(http2Code: UInt32(closed.errorCode.networkCode))
      drain()
    }
  }

  private func drain() {
    while let event = stream.next() { mailbox.put(event) }
  }
}
