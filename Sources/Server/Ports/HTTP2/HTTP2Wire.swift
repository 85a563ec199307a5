// Processes the bytes of one HTTP/2 connection between the socket and NIOHTTP2, where NIOHTTP2 is stricter than the protocol:
//
//   - GOAWAY bypasses NIOHTTP2, which would treat frames of new streams as errors of the connection after it has sent
//     GOAWAY;
//   - the SETTINGS frame announces other limits of streams and header lists than NIOHTTP2 enforces;
//   - the client's acknowledgement of the settings is replaced (`HTTP2SettingsExchange`);
//   - frames that break the rules of one stream are filtered (`HTTP2FrameFilter`).
//
// Invariants
//   1. After either side has ended the connection, no bytes pass.
//   2. The last frames have time to arrive. The kernel resets a connection that is closed with unread input, and a reset
//      destroys the bytes that the client has not read.

import NIOCore
import NIOHTTP2

/// Adapts the bytes of one connection in both directions, and ends it.
final class HTTP2Wire: ChannelDuplexHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// The maximum wait for the client's close after everything was sent.
  private static let lingerTimeout = TimeAmount.seconds(1)
  private static let goAwayBytes = 17
  /// SETTINGS_MAX_CONCURRENT_STREAMS and SETTINGS_MAX_HEADER_LIST_SIZE.
  private static let streamsSetting = UInt16(3)
  private static let headersSetting = UInt16(6)

  private enum Phase {
    case open
    /// The remaining bytes are sent, then the client's close is awaited.
    case finishing
    /// NIOHTTP2 and the handlers after it consider the connection closed.
    case broken
  }

  /// The settings that the client receives instead of NIOHTTP2's settings.
  private let announcedSettings: [UInt16: Int]
  private var hasSentSettings = false
  /// The memory of an incomplete header list.
  private let memory: MemoryReservation
  private var settingsExchange: HTTP2SettingsExchange
  private var frameFilter = HTTP2FrameFilter()
  /// Each SETTINGS frame may change the window of every open stream.
  private var settingsLimit: RateLimit
  /// The minimum credit, in bytes, for which a WINDOW_UPDATE is sent.
  private let windowIncrement: Int
  private var phase = Phase.open
  private var isReadingStopped = false
  private var closing: Scheduled<Void>?
  private var context: ChannelHandlerContext?
  /// The code of the GOAWAY in the last write; nil if the last write was another frame.
  private(set) var lastGoAway: UInt32?

  init(_ port: PortLimits) {
    let limits = port.http2
    announcedSettings = [
      Self.streamsSetting: limits.maximumConcurrentStreams, Self.headersSetting: limits.maximumHeaderListSize,
    ]
    // This reservation is only for header lists. Its allowance, the bytes that need no memory of the shared budget, is one
    // frame, because NIOHTTP2 buffers one frame of any type without a reservation. A small request that arrives in two
    // parts therefore needs no memory of the budget.
    memory = MemoryReservation(port, allowance: HTTP2FrameFilter.maximumFrameBytes)
    settingsExchange = HTTP2SettingsExchange(limits)
    settingsLimit = RateLimit(limits.maximumSettingsPerSecond, per: .seconds(1))
    windowIncrement = max(1, limits.connectionWindow / 32)
  }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  func handlerRemoved(context: ChannelHandlerContext) {
    closing?.cancel()
    self.context = nil
  }

  // MARK: From the socket

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    // Bytes that were queued when the connection was lost are dropped: the server can no longer answer their requests.
    guard case .open = phase, context.channel.isActive else { return }
    var bytes = unwrapInboundIn(data)
    if !settingsExchange.isOver { bytes = settingsExchange.filter(bytes) }
    let passed = frameFilter.filter(bytes)
    if let credit = frameFilter.useWindowCredit(atLeast: windowIncrement) {
      sendWindowUpdate(credit, context)
    }
    if frameFilter.fieldBlockBytes != memory.held,
      !memory.resize(from: memory.held, to: frameFilter.fieldBlockBytes)
    {
      return failForAbuse()
    }
    let settingsCount = frameFilter.resetSettingsCount()
    guard settingsCount == 0 || settingsLimit.allows(settingsCount) else { return failForAbuse() }
    if passed.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(passed)) }
  }

  /// Extends the connection's window by bytes that NIOHTTP2 did not receive, and therefore does not credit.
  private func sendWindowUpdate(_ bytes: Int, _ context: ChannelHandlerContext) {
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

  // MARK: From NIOHTTP2

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    guard case .open = phase else { return promise?.fail(ChannelError.outputClosed) ?? () }
    var bytes = unwrapOutboundIn(data)
    lastGoAway = bytes.readableBytes == Self.goAwayBytes ? Self.goAwayCode(bytes) : nil
    if lastGoAway == UInt32(HTTP2ErrorCode.enhanceYourCalm.networkCode) {
      // NIOHTTP2 writes 0 as the last stream, which lets a client retry calls that were executed. The maximum prevents
      // that.
      bytes.setInteger(UInt32(0x7fff_ffff), at: bytes.readerIndex + 9)
    }
    if hasSentSettings { return context.write(wrapOutboundOut(bytes), promise: promise) }
    hasSentSettings = true
    context.write(wrapOutboundOut(Self.settings(bytes, with: announcedSettings)), promise: promise)
  }

  func read(context: ChannelHandlerContext) {
    if !isReadingStopped { context.read() }
  }

  // MARK: The end

  /// Sends GOAWAY with the number of the last stream that is served. It bypasses NIOHTTP2.
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

  /// Closes the connection when the client has read everything and has closed its side, or after `time`.
  func finish(within time: TimeAmount) {
    guard case .open = phase, let context else { return }
    phase = .finishing
    end(context, within: time)
  }

  /// Ends the connection of an abusive client.
  func failForAbuse() {
    goAway(.maxID, .enhanceYourCalm)
    fail(reading: false)
  }

  /// Ends a connection after an error. Only the written reason is still sent.
  /// - Parameter reading: whether to read until the client closes its side.
  func fail(reading: Bool) {
    guard case .open = phase, let context else { return }
    phase = .broken
    isReadingStopped = !reading
    end(context, within: Self.lingerTimeout)
    // The event is fired in a later task, since NIOHTTP2 may be processing a read now.
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
      bound.value.close(in: (try? result.get()) == nil ? .zero : Self.lingerTimeout, context)
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

  /// Replaces the values in the server's first frame, SETTINGS.
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
