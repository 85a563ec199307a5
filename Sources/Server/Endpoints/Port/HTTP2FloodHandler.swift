// Slows down an HTTP/2 connection whose peer floods it with resets, pings, settings and the like, then ends it, before
// any of what is too much is decoded: a frame that is not looked into costs next to nothing, a stream that is opened and
// taken back does. Without the pauses a peer that connects anew whenever it is cut off would keep an event loop busy.

import Logging
import NIOCore

/// Sits before the HTTP/2 handler and counts the frames of both directions.
final class HTTP2FloodHandler: ChannelDuplexHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// Between two reads from a peer whose credit is low. Each is a turn of about a millisecond.
  private static let pause = TimeAmount.milliseconds(20)
  private static let reason = "too many resets, pings or settings for what was asked and answered"

  private var incoming = HTTP2FrameScanner(skipping: HTTP2FrameScanner.preface)
  private var outgoing = HTTP2FrameScanner()
  private var credit: PeerCredit
  private var isOver = false
  private var heldRead: Scheduled<Void>?
  private let log: Logger

  init(_ limits: HTTP2Limits, _ log: Logger) {
    credit = PeerCredit(limits.credit, at: .now())
    self.log = log
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !isOver else { return }
    credit.fill(at: .now())
    incoming.scan(unwrapInboundIn(data).readableBytesView) { credit.charge($0.cost) }
    if credit.isSpent { return end(context) }
    context.fireChannelRead(data)
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    outgoing.scan(unwrapOutboundIn(data).readableBytesView) { credit.earn($0.gain) }
    context.write(data, promise: promise)
  }

  func read(context: ChannelHandlerContext) {
    guard credit.isLow else { return context.read() }
    guard heldRead == nil else { return }
    heldRead = context.eventLoop.assumeIsolated().scheduleTask(in: Self.pause) {
      self.heldRead = nil
      // Not for the time it was made to wait: it would be slowed down for ever and never cut off.
      self.credit.pass(to: .now())
      context.read()
    }
  }

  func handlerRemoved(context: ChannelHandlerContext) { heldRead?.cancel() }

  private func end(_ context: ChannelHandlerContext) {
    isOver = true
    log.info("connection cut off: \(Self.reason)")
    context.writeAndFlush(wrapOutboundOut(Self.goAway(context.channel.allocator)), promise: nil)
    context.channel.cutOff()
  }

  /// ENHANCE_YOUR_CALM with the reason. Any stream may have been served: a client that took one for not served would
  /// ask again for what was done already.
  private static func goAway(_ allocator: ByteBufferAllocator) -> ByteBuffer {
    let length = 8 + reason.utf8.count
    var frame = allocator.buffer(capacity: 9 + length)
    frame.writeInteger(UInt32(length) << 8 | 7)
    frame.writeInteger(UInt8(0))
    frame.writeInteger(UInt32(0))
    frame.writeInteger(UInt32(0x7fff_ffff))
    frame.writeInteger(UInt32(0xb))
    frame.writeString(reason)
    return frame
  }
}

extension HTTP2FrameStart {
  /// What a reset costs, and the head of an answer brings: a stream that was answered may be taken back.
  private static let stream = 10
  /// Bytes of an answer that bring one. Fewer bring none, lest a window opened by a byte at a time pays for itself.
  private static let bytesForOne = 32

  /// What the peer is charged for it.
  fileprivate var cost: Int {
    switch type {
    // DATA, HEADERS and CONTINUATION. Empty pieces of a body have a limit of their own, and so do the pieces of a header
    // block; all else of requests is bounded by what they may hold.
    case 0, 1, 9: 0
    // RST_STREAM; SETTINGS, which may change the window of every open stream.
    case 3, 4: Self.stream
    // PING, PRIORITY, WINDOW_UPDATE, and all that is not known.
    default: 1
    }
  }

  /// What the peer earns when it is the server's.
  fileprivate var gain: Int {
    switch type {
    case 0: min(Self.stream, length / Self.bytesForOne)
    case 1: Self.stream
    default: 0
    }
  }
}
