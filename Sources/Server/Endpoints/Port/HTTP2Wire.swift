// The bytes of one HTTP/2 connection, beneath the handler that makes frames of them. What that handler would take too
// strictly goes past it here: GOAWAY, behind which it would hold any frame of a new stream against the connection; the
// number of streams that may be open and the size of a header list, which it makes errors of the connection; the client's
// acknowledgement of them; frames that break the rules of one stream (`HTTP2Leniency`).
//
// Invariants: behind the end of the connection nothing is handed on, whoever ended it; the last frames are given time to arrive, since a
// connection that is closed over unread bytes is reset, and a reset destroys what the peer has not read.

import NIOCore
import NIOHTTP2

final class HTTP2Wire: ChannelDuplexHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// How long the peer's end is waited for once everything was sent.
  private static let linger = TimeAmount.seconds(1)
  private static let goAwayBytes = 17
  /// SETTINGS_MAX_CONCURRENT_STREAMS and SETTINGS_MAX_HEADER_LIST_SIZE.
  private static let streamsSetting = UInt16(3)
  private static let headersSetting = UInt16(6)

  private enum Phase {
    case open
    /// Everything is sent, then the peer's end is awaited.
    case finishing
    /// As far as the handlers behind know, the connection is gone.
    case broken
  }

  /// What the client is told in place of what the handler behind knows.
  private let announced: [UInt16: Int]
  private var hasAnnounced = false
  /// For a header list that is on its way.
  private let memory: MemoryReservation
  private var opening: HTTP2Opening
  private var leniency = HTTP2Leniency()
  /// What was left out of the connection's window is given back in pieces of this size.
  private let windowPiece: Int
  private var phase = Phase.open
  private var readsNoMore = false
  private var closing: Scheduled<Void>?
  private var context: ChannelHandlerContext?
  /// The code of the GOAWAY that was written last, if that was the last write.
  private(set) var lastGoAway: UInt32?

  init(_ port: PortLimits) {
    let limits = port.http2
    announced = [
      Self.streamsSetting: limits.maximumConcurrentStreams, Self.headersSetting: limits.maximumHeaderListSize,
    ]
    // The connection's allowance belongs to its requests. Here one frame is free: the handler behind keeps as much of any
    // other frame, too, and a small request that comes in two pieces needs no room then.
    memory = MemoryReservation(port, allowance: HTTP2Leniency.largestFrame)
    opening = HTTP2Opening(limits)
    windowPiece = max(1, limits.connectionWindow / 32)
  }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  func handlerRemoved(context: ChannelHandlerContext) {
    closing?.cancel()
    self.context = nil
  }

  // MARK: From the socket

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    // What waited when the connection was lost: a stream of it can be neither opened nor answered any more.
    guard case .open = phase, context.channel.isActive else { return }
    var bytes = unwrapInboundIn(data)
    if !opening.isOver { bytes = opening.pass(bytes) }
    let passed = leniency.pass(bytes)
    if let given = leniency.giveBack(atLeast: windowPiece) { giveBack(given, context) }
    if leniency.fieldBlockBytes != memory.held,
      !memory.resize(from: memory.held, to: leniency.fieldBlockBytes)
    {
      goAway(.maxID, .enhanceYourCalm)
      return fail(reading: false)
    }
    if passed.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(passed)) }
  }

  /// Opens the connection's window by what the handler behind never saw, and so does not give back.
  private func giveBack(_ bytes: Int, _ context: ChannelHandlerContext) {
    var frame = context.channel.allocator.buffer(capacity: 13)
    frame.writeInteger(UInt32(4) << 8 | 8)
    frame.writeInteger(UInt8(0))
    frame.writeInteger(UInt32(0))
    frame.writeInteger(UInt32(clamping: bytes))
    context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) {
    closing?.cancel()
    if case .broken = phase { return }
    context.fireChannelInactive()
  }

  // MARK: From the frames' handler

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    guard case .open = phase else { return promise?.fail(ChannelError.outputClosed) ?? () }
    let bytes = unwrapOutboundIn(data)
    lastGoAway = bytes.readableBytes == Self.goAwayBytes ? Self.goAwayCode(bytes) : nil
    if hasAnnounced { return context.write(data, promise: promise) }
    hasAnnounced = true
    context.write(wrapOutboundOut(Self.settings(bytes, with: announced)), promise: promise)
  }

  func read(context: ChannelHandlerContext) {
    if !readsNoMore { context.read() }
  }

  // MARK: The end

  /// Tells the client the last stream that is served, past the frames' handler.
  func goAway(_ last: HTTP2StreamID, _ code: HTTP2ErrorCode) {
    guard case .open = phase, let context else { return }
    var frame = context.channel.allocator.buffer(capacity: Self.goAwayBytes)
    frame.writeInteger(UInt32(8) << 8 | 7)
    frame.writeInteger(UInt8(0))
    frame.writeInteger(UInt32(0))
    frame.writeInteger(UInt32(truncatingIfNeeded: Int(last)))
    frame.writeInteger(UInt32(code.networkCode))
    context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
  }

  /// Closes the connection once all that was written has gone out and the peer has ended its side, or has not in time.
  func finish(within time: TimeAmount) {
    guard case .open = phase, let context else { return }
    phase = .finishing
    end(context, within: time)
  }

  /// Ends a connection that is broken, of which only the reason still goes out.
  /// - Parameter reading: whether the peer's end is worth waiting for.
  func fail(reading: Bool) {
    guard case .open = phase, let context else { return }
    phase = .broken
    readsNoMore = !reading
    end(context, within: Self.linger)
    // Not now: the frames' handler may be in the middle of what came.
    let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
    context.eventLoop.execute { bound.value.context?.fireChannelInactive() }
  }

  private func end(_ context: ChannelHandlerContext, within time: TimeAmount) {
    close(in: time, context)
    context.flush()
    let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
    let ended = context.eventLoop.makePromise(of: Void.self)
    ended.futureResult.whenComplete { result in
      guard let context = bound.value.context else { return }
      bound.value.close(in: (try? result.get()) == nil ? .zero : Self.linger, context)
    }
    context.close(mode: .output, promise: ended)
  }

  private func close(in time: TimeAmount, _ context: ChannelHandlerContext) {
    closing?.cancel()
    let channel = context.channel
    closing = context.eventLoop.scheduleTask(in: time) { channel.close(promise: nil) }
  }

  // MARK: Frames

  private static func goAwayCode(_ frame: ByteBuffer) -> UInt32? {
    let start = frame.readerIndex
    guard frame.getInteger(at: start, as: UInt32.self) == 8 << 8 | 7 else { return nil }
    return frame.getInteger(at: start + 13)
  }

  /// The first frame of the server, with other values in it.
  private static func settings(_ frame: ByteBuffer, with values: [UInt16: Int]) -> ByteBuffer {
    var frame = frame
    for index in stride(from: frame.readerIndex + 9, to: frame.writerIndex, by: 6) {
      guard let setting = frame.getInteger(at: index, as: UInt16.self), let value = values[setting] else {
        continue
      }
      frame.setInteger(UInt32(clamping: value), at: index + 2)
    }
    return frame
  }
}
