// Converts WebSocket frames to messages and messages to frames, on the event loop. It also sends keep-alives:
// `0` after 45 s without traffic, and a ping after 45 s without input, which the server must pong.
//
// Invariant: the frames of one message are written contiguously.

import NIOCore
import NIOWebSocket
import RealtimeModel
import RealtimeWire

/// Receives, sends and monitors the messages of one WebSocket.
final class MessageHandler: ChannelInboundHandler {
  typealias InboundIn = WebSocketFrame
  typealias OutboundOut = WebSocketFrame

  /// The maximum number of bytes of a message. The protocol cannot announce a larger one.
  static let maximumMessageBytes = 170 << 20
  /// The time in which nothing was sent or received, after which a keep-alive is sent.
  static let keepAliveInterval = TimeAmount.seconds(45)
  /// The time without any input from the server after which the connection counts as lost.
  static let silenceTimeout = TimeAmount.seconds(90)

  private let events: TransportEvents
  private var assembler = MessageAssembler(maximumBytes: MessageHandler.maximumMessageBytes)
  private var context: ChannelHandlerContext?
  private var lastReceived = NIODeadline.now()
  private var lastSent = NIODeadline.now()
  private var timer: Scheduled<Void>?
  private var hasReceivedMessage = false
  private let opened = NIODeadline.now()

  init(events: TransportEvents) {
    self.events = events
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    lastReceived = .now()
    schedule(in: Transport.handshakeTimeout)
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    timer?.cancel()
    self.context = nil
  }

  // MARK: Receiving

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let frame = unwrapInboundIn(data)
    lastReceived = .now()
    switch frame.opcode {
    case .text: received(frame.unmaskedData)
    case .ping:
      var pong = WebSocketFrame(fin: true, opcode: .pong, maskKey: .random(), data: frame.unmaskedData)
      pong.maskKey = .random()
      context.writeAndFlush(wrapOutboundOut(pong), promise: nil)
    case .connectionClose: events.closed("The server closed the connection")
    default: break
    }
  }

  private func received(_ buffer: ByteBuffer) {
    buffer.withUnsafeReadableBytes { bytes in
      switch assembler.receive(bytes) {
      case .nothing: break
      case .message: deliver(bytes)
      case .assembled(let message): message.withUnsafeBytes { deliver($0) }
      case .oversized:
        events.closed("The server sent a message of more than \(MessageHandler.maximumMessageBytes) bytes")
      }
    }
  }

  private func deliver(_ bytes: UnsafeRawBufferPointer) {
    do {
      let message = try ServerMessage(json: bytes)
      hasReceivedMessage = true
      events.received(message)
    } catch {
      events.closed("The server sent an invalid message: \(error)")
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    events.closed(nil)
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    events.closed("\(error)")
  }

  // MARK: Sending

  /// Sends a message, split into frames.
  func send(_ message: [UInt8]) {
    guard let context else { return }
    message.withUnsafeBytes { bytes in
      guard let pieces = MessageSplitter.frames(of: bytes) else {
        return events.closed("A message of \(message.count) bytes is more than the protocol can carry")
      }
      if pieces.count > 1 { write(Array("\(pieces.count)".utf8)[...], to: context) }
      for piece in pieces { write(message[piece], to: context) }
    }
    context.flush()
    lastSent = .now()
  }

  private func write(_ bytes: ArraySlice<UInt8>, to context: ChannelHandlerContext) {
    let data = context.channel.allocator.buffer(bytes: bytes)
    let frame = WebSocketFrame(fin: true, opcode: .text, maskKey: .random(), data: data)
    context.write(wrapOutboundOut(frame), promise: nil)
  }

  // MARK: Keep-alives and timeouts

  private func schedule(in delay: TimeAmount) {
    guard let context else { return }
    timer?.cancel()
    timer = context.eventLoop.assumeIsolated().scheduleTask(in: delay) { [weak self] in self?.check() }
  }

  private func check() {
    let now = NIODeadline.now()
    if !hasReceivedMessage, now - opened >= Transport.handshakeTimeout {
      return events.closed("The server did not send its hello in time")
    }
    if now - lastReceived >= MessageHandler.silenceTimeout {
      return events.closed("The server stopped responding")
    }
    if now - max(lastReceived, lastSent) >= MessageHandler.keepAliveInterval {
      send(Array("0".utf8))
    }
    if now - lastReceived >= MessageHandler.keepAliveInterval { send(ClientMessage.control(.ping).json()) }
    schedule(in: .seconds(15))
  }
}
