// The references: servers with minimal work on the same library, in their own processes (`Benchmarks
// bare-http2`, `bare-streams`, `bare-websocket`, `bare-echo`). They print their port.

import FirestoreProtobuf
import NIOCore
import NIOHPACK
import NIOHTTP1
import NIOHTTP2
import NIOPosix
import NIOWebSocket
import SwiftProtobuf

/// Responds to every unary call with the same GetDocument result. It decodes the request and encodes the response as
/// real protobuf messages. With `Mode.stream` it responds to the first message of a stream and keeps the stream open.
enum BareHTTP2Server {
  enum Mode {
    case document
    case stream
  }

  static func run(_ mode: Mode) async throws {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let document = BenchmarkDocument.message(name: BenchmarkDocument.name("bare"))
    let channel = try await ServerBootstrap(group: group)
      .serverChannelOption(.backlog, value: 1024)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .childChannelOption(.socketOption(.tcp_nodelay), value: 1)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          var connection = NIOHTTP2Handler.ConnectionConfiguration()
          connection.initialSettings = [HTTP2Setting(parameter: .maxConcurrentStreams, value: 1000)]
          let handler = NIOHTTP2Handler(
            mode: .server, eventLoop: channel.eventLoop, connectionConfiguration: connection,
            streamConfiguration: .init(),
            inboundStreamInitializer: { stream in
              stream.eventLoop.makeCompletedFuture {
                switch mode {
                case .document:
                  try stream.pipeline.syncOperations.addHandler(BareUnaryHandler(document: document))
                case .stream: try stream.pipeline.syncOperations.addHandler(BareStreamHandler())
                }
              }
            })
          try channel.pipeline.syncOperations.addHandler(handler)
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    announce(channel)
    try await channel.closeFuture.get()
  }
}

private final class BareUnaryHandler: ChannelInboundHandler {
  typealias InboundIn = HTTP2Frame.FramePayload
  typealias OutboundOut = HTTP2Frame.FramePayload

  private let document: Google_Firestore_V1_Document
  private var request = ByteBuffer()

  init(document: Google_Firestore_V1_Document) { self.document = document }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard case .data(let frame) = unwrapInboundIn(data) else { return }
    if case .byteBuffer(var bytes) = frame.data { request.writeBuffer(&bytes) }
    guard frame.endStream, request.readableBytes >= 5 else { return }
    request.moveReaderIndex(forwardBy: 5)
    guard
      (try? Google_Firestore_V1_GetDocumentRequest(serializedBytes: Array(request.readableBytesView))) != nil,
      let bytes: [UInt8] = try? document.serializedBytes()
    else { return context.close(promise: nil) }
    context.write(
      wrapOutboundOut(.headers(.init(headers: [":status": "200", "content-type": "application/grpc"]))),
      promise: nil)
    context.write(wrapOutboundOut(.data(.init(data: .byteBuffer(framed(bytes))))), promise: nil)
    context.writeAndFlush(
      wrapOutboundOut(.headers(.init(headers: ["grpc-status": "0"], endStream: true))), promise: nil)
  }
}

/// Responds to the first message of a Listen stream with a CURRENT target, stores nothing, and keeps the stream
/// open.
private final class BareStreamHandler: ChannelInboundHandler {
  typealias InboundIn = HTTP2Frame.FramePayload
  typealias OutboundOut = HTTP2Frame.FramePayload

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard case .data = unwrapInboundIn(data) else { return }
    context.write(
      wrapOutboundOut(.headers(.init(headers: [":status": "200", "content-type": "application/grpc"]))),
      promise: nil)
    context.writeAndFlush(
      wrapOutboundOut(.data(.init(data: .byteBuffer(framed([0x12, 0x02, 0x08, 0x03]))))), promise: nil)
  }
}

/// Broadcasts each received text frame, encoded once, to every connection including the sender; or echoes it.
enum BareWebSocketServer {
  enum Mode {
    case broadcast
    case echo
  }

  static func run(_ mode: Mode) async throws {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let loop = group.next()
    let hub = NIOLoopBoundBox.makeBoxSendingValue(BroadcastHub(), eventLoop: loop)
    let upgrader = NIOWebSocketServerUpgrader(
      maxFrameSize: 1 << 20,
      shouldUpgrade: { channel, _ in channel.eventLoop.makeSucceededFuture([:]) },
      upgradePipelineHandler: { channel, _ in
        channel.eventLoop.makeCompletedFuture {
          switch mode {
          case .broadcast: try channel.pipeline.syncOperations.addHandler(BroadcastHandler(hub: hub.value))
          case .echo: try channel.pipeline.syncOperations.addHandler(EchoHandler())
          }
        }
      })
    let channel = try await ServerBootstrap(group: loop)
      .serverChannelOption(.backlog, value: 4096)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .childChannelOption(.socketOption(.tcp_nodelay), value: 1)
      .childChannelInitializer { channel in
        channel.pipeline.configureHTTPServerPipeline(
          withServerUpgrade: (upgraders: [upgrader], completionHandler: { _ in }))
      }
      .bind(host: "127.0.0.1", port: 0).get()
    announce(channel)
    try await channel.closeFuture.get()
  }
}

/// The open connections of the bare broadcast, all on one event loop. It stores the contexts of their frame
/// encoders, so that encoded bytes can be written past them.
private final class BroadcastHub {
  var encoders: [ObjectIdentifier: ChannelHandlerContext] = [:]
}

private final class BroadcastHandler: ChannelInboundHandler {
  typealias InboundIn = WebSocketFrame

  private let hub: BroadcastHub
  init(hub: BroadcastHub) { self.hub = hub }

  func handlerAdded(context: ChannelHandlerContext) {
    hub.encoders[ObjectIdentifier(context.channel)] = try? context.pipeline.syncOperations.context(
      handlerType: WebSocketFrameEncoder.self)
  }

  func channelInactive(context: ChannelHandlerContext) {
    hub.encoders[ObjectIdentifier(context.channel)] = nil
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let frame = unwrapInboundIn(data)
    guard frame.opcode == .text else { return }
    // Encodes the frame once, as the fastest possible server does: all connections share one buffer with header and
    // payload.
    var payload = frame.unmaskedData
    var bytes = context.channel.allocator.buffer(capacity: payload.readableBytes + 4)
    bytes.writeInteger(UInt8(0x81))
    if payload.readableBytes < 126 {
      bytes.writeInteger(UInt8(payload.readableBytes))
    } else {
      bytes.writeInteger(UInt8(126))
      bytes.writeInteger(UInt16(truncatingIfNeeded: payload.readableBytes))
    }
    bytes.writeBuffer(&payload)
    for encoder in hub.encoders.values { encoder.writeAndFlush(NIOAny(bytes), promise: nil) }
  }
}

/// Echoes each text frame.
private final class EchoHandler: ChannelInboundHandler {
  typealias InboundIn = WebSocketFrame
  typealias OutboundOut = WebSocketFrame

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let frame = unwrapInboundIn(data)
    guard frame.opcode == .text else { return }
    context.write(
      wrapOutboundOut(WebSocketFrame(fin: true, opcode: .text, data: frame.unmaskedData)), promise: nil)
  }

  func channelReadComplete(context: ChannelHandlerContext) { context.flush() }
}

private func announce(_ channel: any Channel) {
  printLine("port \(channel.localAddress?.port ?? 0)")
}
