// The streams that one HTTP/2 connection has open, and those that are refused: more than the client was told it may have,
// and such as come behind the end of the connection. A refused stream is reset, which tells the client that nothing was
// done for it, and its connection goes on; a client that opens them without end loses the connection.

import NIOCore
import NIOHTTP2

/// Confined to the connection's event loop.
final class HTTP2Streams {
  private static let period = TimeAmount.seconds(30)

  private(set) var open = 0
  /// Whether the client was told the last stream that is served.
  var takesNoMore = false
  private let limits: HTTP2Limits
  private let wire: HTTP2Wire
  private var refusals = 0
  private var periodEnds = NIODeadline.uptimeNanoseconds(0)

  init(_ limits: HTTP2Limits, _ wire: HTTP2Wire) {
    self.limits = limits
    self.wire = wire
  }

  /// Whether a stream that opens may be served. One that may not is counted as refused.
  func admit() -> Bool {
    if !takesNoMore, open < limits.maximumConcurrentStreams { return true }
    let now = NIODeadline.now()
    if now >= periodEnds { (refusals, periodEnds) = (0, now + Self.period) }
    refusals += 1
    if refusals > limits.maximumRefusals {
      wire.goAway(.maxID, .enhanceYourCalm)
      wire.fail(reading: false)
    }
    return false
  }

  fileprivate func created() { open += 1 }

  fileprivate func closed() { open -= 1 }
}

/// Counts a connection's streams, and tells its lifetime of them.
struct HTTP2StreamCounter: NIOHTTP2StreamDelegate {
  let streams: NIOLoopBound<HTTP2Streams>
  let lifetime: NIOHTTP2ServerConnectionManagementHandler.HTTP2StreamDelegate

  func streamCreated(_ id: HTTP2StreamID, channel: any Channel) {
    streams.value.created()
    lifetime.streamCreated(id, channel: channel)
  }

  func streamClosed(_ id: HTTP2StreamID, channel: any Channel) {
    streams.value.closed()
    lifetime.streamClosed(id, channel: channel)
  }
}

/// The whole pipeline of a stream that is refused.
final class RefusedStreamHandler: ChannelInboundHandler {
  typealias InboundIn = HTTP2Frame.FramePayload
  typealias OutboundOut = HTTP2Frame.FramePayload

  func channelActive(context: ChannelHandlerContext) {
    context.writeAndFlush(wrapOutboundOut(.rstStream(.refusedStream)), promise: nil)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {}

  func errorCaught(context: ChannelHandlerContext, error: any Error) {}
}
