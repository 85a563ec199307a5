// How an HTTP/2 connection ends. Gracefully: GOAWAY with the largest number announces the end; streams that come until
// the client has answered a ping, or a second later, are served as ever; GOAWAY with the last of them follows, and the
// connection closes when they have ended. Over an error of the connection: with GOAWAY and the reason. Errors of single
// streams have reset their streams by then, and are no matter of the connection's.
//
// Neither GOAWAY of a graceful end passes through NIO's handler: behind any of them it refuses every new stream, and takes
// the body of a stream that it refused for an error of the connection.

import NIOCore
import NIOHTTP2

/// Stands between the handler that makes frames and the one that decides when the connection ends.
final class HTTP2EndHandler: ChannelDuplexHandler {
  typealias InboundIn = HTTP2Frame
  typealias InboundOut = HTTP2Frame
  typealias OutboundIn = HTTP2Frame
  typealias OutboundOut = HTTP2Frame

  /// How long the answer to the announcement is waited for.
  private static let roundTrip = TimeAmount.seconds(1)
  /// How long the streams may take that are open at the end, and what was written to go out.
  private static let grace = TimeAmount.seconds(8)

  private let wire: HTTP2Wire
  private let streams: HTTP2Streams
  private var hasAnnounced = false
  private var isClosing = false
  /// Whether the close that comes is that of the whole channel, and not that of a connection whose streams have ended.
  fileprivate var isCut = false
  private var announcement: Scheduled<Void>?
  private var cut: Scheduled<Void>?

  init(_ wire: HTTP2Wire, _ streams: HTTP2Streams) {
    self.wire = wire
    self.streams = streams
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    announcement?.cancel()
    cut?.cancel()
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    switch unwrapOutboundIn(data).payload {
    case .goAway(let last, let code, _):
      hasAnnounced = true
      wire.goAway(last, code)
      if last != .maxID { takeNoMore(context) }
      promise?.succeed()
    case .ping(let ping, ack: false) where hasAnnounced && announcement == nil:
      context.write(data, promise: promise)
      awaitAnswer(ping, context)
    default: context.write(data, promise: promise)
    }
  }

  /// Who answers no ping is told the end all the same.
  private func awaitAnswer(_ ping: HTTP2PingData, _ context: ChannelHandlerContext) {
    let bound = NIOLoopBound((handler: self, context: context), eventLoop: context.eventLoop)
    announcement = context.eventLoop.scheduleTask(in: Self.roundTrip) {
      let (handler, context) = bound.value
      guard !handler.streams.takesNoMore else { return }
      let answer = HTTP2Frame(streamID: .rootStream, payload: .ping(ping, ack: true))
      context.fireChannelRead(handler.wrapInboundOut(answer))
      context.fireChannelReadComplete()
    }
  }

  private func takeNoMore(_ context: ChannelHandlerContext) {
    streams.takesNoMore = true
    let channel = context.channel
    cut = context.eventLoop.scheduleTask(in: Self.grace) { channel.close(promise: nil) }
  }

  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    guard mode == .all, !isCut, streams.takesNoMore else {
      return context.close(mode: mode, promise: promise)
    }
    if let promise { context.channel.closeFuture.cascade(to: promise) }
    // A stream may have come since and be about to be refused; its end closes the connection.
    guard !isClosing, streams.open == 0 else { return }
    isClosing = true
    context.flush()
    wire.finish(within: Self.grace)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if let code = wire.lastGoAway {
      // Of a peer that floods nothing more is read.
      wire.fail(reading: code != UInt32(HTTP2ErrorCode.enhanceYourCalm.networkCode))
    } else if error is NIOHTTP2Errors.StreamError {
      return
    } else if error is NIOHTTP2Errors.UnableToSerializeFrame || !(error is any NIOHTTP2Error) {
      context.close(promise: nil)
    }
  }
}

/// Last in the pipeline: what closes the channel from here closes it at once.
final class HTTP2CutHandler: ChannelOutboundHandler {
  typealias OutboundIn = HTTP2Frame

  private let end: HTTP2EndHandler

  init(_ end: HTTP2EndHandler) { self.end = end }

  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    if mode == .all { end.isCut = true }
    context.close(mode: mode, promise: promise)
  }
}
