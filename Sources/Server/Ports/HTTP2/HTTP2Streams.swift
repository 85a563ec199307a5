// Counts the open streams of one HTTP/2 connection, and refuses streams beyond the announced limit or after the last GOAWAY.
//
// A refused stream is reset with REFUSED_STREAM, which lets the client retry it, and the connection continues. A client
// that opens too many such streams loses its connection.

import NIOCore
import NIOHTTP2

/// The open streams of one connection. Confined to its event loop.
final class HTTP2Streams {
  private(set) var openCount = 0
  /// Whether the last GOAWAY was sent, which names the last stream that is served.
  var refusesNewStreams = false
  private let limits: HTTP2Limits
  private let wire: HTTP2Wire
  private var refusals: RateLimit

  init(_ limits: HTTP2Limits, _ wire: HTTP2Wire) {
    self.limits = limits
    self.wire = wire
    refusals = RateLimit(limits.maximumRefusedStreams, per: .seconds(30))
  }

  /// Returns whether a stream that opens may be served. Counts a refused stream.
  func admit() -> Bool {
    if !refusesNewStreams, openCount < limits.maximumConcurrentStreams { return true }
    if !refusals.allows() { wire.failForAbuse() }
    return false
  }

  fileprivate func created() { openCount += 1 }

  fileprivate func closed() { openCount -= 1 }
}

/// Counts a connection's streams, and reports them to the handler that ends idle connections.
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

/// Resets a refused stream. It is the only handler in the stream's pipeline.
final class RefusedStreamHandler: ChannelInboundHandler {
  typealias InboundIn = HTTP2Frame.FramePayload
  typealias OutboundOut = HTTP2Frame.FramePayload

  func channelActive(context: ChannelHandlerContext) {
    context.writeAndFlush(wrapOutboundOut(.rstStream(.refusedStream)), promise: nil)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {}

  func errorCaught(context: ChannelHandlerContext, error: any Error) {}
}
