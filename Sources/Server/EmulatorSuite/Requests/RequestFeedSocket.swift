// Serves the feed of decisions to the emulator's web interface, as a WebSocket at `/requests` of the Firestore port.
//
// Invariant: the messages that a client has not read take a bounded number of bytes. Beyond it the server closes the
// connection. The client can connect again and receives the last records.

import Crypto
import FirestoreEndpoints
import JSON
import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import NIOWebSocket
import Ports
import SecurityRules

/// One WebSocket with the feed of decisions; confined to its event loop.
final class RequestFeedSocket: ChannelInboundHandler {
  typealias InboundIn = WebSocketFrame
  typealias OutboundOut = ByteBuffer

  /// The maximum size of a frame from a client, which only sends control frames.
  private static let maximumFrameBytes = 1 << 10
  /// The maximum bytes of messages that the client has not received.
  private static let maximumQueuedBytes = 32 << 20

  private let feed: RequestFeed
  private var subscription: Int?
  private var isClosing = false

  private init(_ feed: RequestFeed) { self.feed = feed }

  /// Upgrades the connection of a request.
  static func open(_ request: HTTPRequest, _ responder: HTTPResponder, _ feed: RequestFeed) {
    let headers = request.head.headers
    guard request.head.method == .GET, headers.first(name: "sec-websocket-version") == "13",
      let key = headers.first(name: "sec-websocket-key"), key.utf8.count == 24,
      headers[canonicalForm: "upgrade"].contains(where: { $0.lowercased() == "websocket" })
    else {
      return responder.respond(.text(.badRequest, "This address is for WebSockets of version 13.\n"))
    }
    responder.onLoop { exchange in
      guard !exchange.isHTTP2 else {
        return exchange.respond(.text(.badRequest, "WebSockets are served over HTTP/1.1 only.\n"))
      }
      exchange.endWithPeer()
      exchange.upgrade([
        "upgrade": "websocket", "connection": "upgrade", "sec-websocket-accept": accept(key),
      ]) { pipeline in
        try pipeline.replaceHTTP1(
          by: WebSocketFrameDecoder(maxFrameSize: maximumFrameBytes), RequestFeedSocket(feed)
        ) {}
      }
    }
  }

  /// The proof that the server speaks WebSocket (RFC 6455, section 4.2.2).
  private static func accept(_ key: String) -> String {
    Base64.encode(Insecure.SHA1.hash(data: Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)))
  }

  func handlerAdded(context: ChannelHandlerContext) {
    let channel = context.channel
    let queued = NIOLockedValueBox(0)
    subscription = feed.subscribe { message in
      let isQueued = queued.withLockedValue { queued in
        guard queued + message.count <= Self.maximumQueuedBytes else { return false }
        queued += message.count
        return true
      }
      // The feed calls this with its lock held, so the message is written later.
      channel.eventLoop.execute {
        guard isQueued else { return channel.close(promise: nil) }
        var frame = channel.allocator.buffer(capacity: message.count + 10)
        frame.writeTextFrameHeader(length: message.count)
        frame.writeBytes(message)
        channel.writeAndFlush(frame).whenComplete { _ in queued.withLockedValue { $0 -= message.count } }
      }
    }
  }

  func handlerRemoved(context: ChannelHandlerContext) { unsubscribe() }

  func channelInactive(context: ChannelHandlerContext) {
    unsubscribe()
    context.fireChannelInactive()
  }

  private func unsubscribe() {
    if let subscription { feed.unsubscribe(subscription) }
    subscription = nil
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let frame = unwrapInboundIn(data)
    guard !isClosing else { return }
    guard frame.maskKey != nil else { return close(context, code: 1002) }
    switch frame.opcode {
    case .ping:
      let data = frame.unmaskedData
      var pong = context.channel.allocator.buffer(capacity: data.readableBytes + 2)
      pong.writeInteger(0x8A as UInt8)
      pong.writeInteger(UInt8(data.readableBytes))
      pong.writeImmutableBuffer(data)
      context.writeAndFlush(wrapOutboundOut(pong), promise: nil)
    case .connectionClose: close(context, code: 1000)
    // The feed has no messages from clients.
    default: break
    }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if event is ChannelShouldQuiesceEvent { close(context, code: 1001) }
    context.fireUserInboundEventTriggered(event)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { close(context, code: 1002) }

  private func close(_ context: ChannelHandlerContext, code: UInt16) {
    guard !isClosing else { return }
    isClosing = true
    unsubscribe()
    var frame = context.channel.allocator.buffer(capacity: 4)
    frame.writeInteger(0x88 as UInt8)
    frame.writeInteger(2 as UInt8)
    frame.writeInteger(code)
    let channel = context.channel
    let written = context.eventLoop.makePromise(of: Void.self)
    context.writeAndFlush(wrapOutboundOut(frame), promise: written)
    written.futureResult.whenComplete { _ in channel.close(promise: nil) }
  }
}

extension ByteBuffer {
  /// Writes the header of an unmasked text frame that is a complete message (RFC 6455, section 5.2).
  fileprivate mutating func writeTextFrameHeader(length: Int) {
    writeInteger(0x81 as UInt8)
    switch length {
    case ..<126: writeInteger(UInt8(length))
    case ..<65_536:
      writeInteger(126 as UInt8)
      writeInteger(UInt16(length))
    default:
      writeInteger(127 as UInt8)
      writeInteger(UInt64(length))
    }
  }
}
