// Ends HTTP/2 connections, gracefully or after an error.
//
// Graceful end:
//   1. GOAWAY with the maximum stream number announces the end. Streams are served until the client has answered a PING, or
//      for one second.
//   2. GOAWAY with the number of the last stream follows. Later streams are refused.
//   3. The connection closes when the open streams have ended.
//
// Error of the connection: GOAWAY with the reason. When NIOHTTP2 reports an error of one stream, it has already reset
// that stream, so nothing else is done.
//
// The GOAWAY frames of a graceful end bypass NIOHTTP2. After NIOHTTP2 has sent GOAWAY, it refuses every new stream, and
// treats the body of a refused stream as an error of the connection.

import NIOCore
import NIOHTTP2

/// Sends GOAWAY and closes the connection. Sits between NIOHTTP2Handler and the handler that decides when to end.
final class HTTP2EndHandler: ChannelDuplexHandler {
  typealias InboundIn = HTTP2Frame
  typealias InboundOut = HTTP2Frame
  typealias OutboundIn = HTTP2Frame
  typealias OutboundOut = HTTP2Frame

  /// The maximum wait for the client's answer to the PING after the announcement.
  private static let pingTimeout = TimeAmount.seconds(1)
  /// The time in which the open streams have to end, and in which the client has to read the last bytes.
  private static let grace = TimeAmount.seconds(8)

  private let wire: HTTP2Wire
  private let streams: HTTP2Streams
  private var hasAnnounced = false
  private var isClosing = false
  /// Whether the channel must close immediately. A close by NIOHTTP2's management handler, after the last stream, lets
  /// the client read the last bytes instead.
  fileprivate var isForced = false
  private var pingDeadline: Scheduled<Void>?
  private var closeDeadline: Scheduled<Void>?

  init(_ wire: HTTP2Wire, _ streams: HTTP2Streams) {
    self.wire = wire
    self.streams = streams
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    pingDeadline?.cancel()
    closeDeadline?.cancel()
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    switch unwrapOutboundIn(data).payload {
    case .goAway(let last, let code, _):
      hasAnnounced = true
      wire.goAway(last, code)
      if last != .maxID { refuseNewStreams(context) }
      promise?.succeed()
    case .ping(let ping, ack: false) where hasAnnounced && pingDeadline == nil:
      context.write(data, promise: promise)
      startPingTimeout(ping, context)
    default: context.write(data, promise: promise)
    }
  }

  /// Continues the end after a timeout, as if the client had answered the PING.
  private func startPingTimeout(_ ping: HTTP2PingData, _ context: ChannelHandlerContext) {
    let bound = NIOLoopBound((handler: self, context: context), eventLoop: context.eventLoop)
    pingDeadline = context.eventLoop.scheduleTask(in: Self.pingTimeout) {
      let (handler, context) = bound.value
      guard !handler.streams.refusesNewStreams else { return }
      let acknowledgement = HTTP2Frame(streamID: .rootStream, payload: .ping(ping, ack: true))
      context.fireChannelRead(handler.wrapInboundOut(acknowledgement))
      context.fireChannelReadComplete()
    }
  }

  private func refuseNewStreams(_ context: ChannelHandlerContext) {
    streams.refusesNewStreams = true
    let channel = context.channel
    closeDeadline = context.eventLoop.scheduleTask(in: Self.grace) { channel.close(promise: nil) }
  }

  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    guard mode == .all, !isForced, streams.refusesNewStreams else {
      return context.close(mode: mode, promise: promise)
    }
    if let promise { context.channel.closeFuture.cascade(to: promise) }
    // A stream that opened after the last GOAWAY is open until it is refused. The connection closes when that stream
    // has ended.
    guard !isClosing, streams.openCount == 0 else { return }
    isClosing = true
    context.flush()
    wire.finish(within: Self.grace)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if let code = wire.lastGoAway {
      // Nothing more is read from an abusive client.
      wire.fail(reading: code != UInt32(HTTP2ErrorCode.enhanceYourCalm.networkCode))
    } else if error is NIOHTTP2Errors.StreamError {
      return
    } else if error is NIOHTTP2Errors.UnableToSerializeFrame || !(error is any NIOHTTP2Error) {
      context.close(promise: nil)
    }
  }
}

/// Marks a close of the channel as immediate. It is the last handler, where a close of the channel begins. A close by
/// an earlier handler, such as the management handler, does not pass it.
final class HTTP2CloseHandler: ChannelOutboundHandler {
  typealias OutboundIn = HTTP2Frame

  private let end: HTTP2EndHandler

  init(_ end: HTTP2EndHandler) { self.end = end }

  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    if mode == .all { end.isForced = true }
    context.close(mode: mode, promise: promise)
  }
}
