// The pipeline of one HTTP/2 connection: frames, streams, budgets against floods, and a graceful end.
//
// Invariants: the peer's pings are answered, and never punished while it asks and is answered; a peer that floods resets
// or control frames loses its connection and nothing else; on drain the peer gets GOAWAY and its open streams may finish.

import Logging
import NIOCore
import NIOHTTP2

enum HTTP2Connection {
  /// Installs the handlers at the end of an active channel's pipeline, on its event loop.
  static func install(
    on channel: any Channel, limits: HTTP2Limits, log: Logger,
    streams: @escaping @Sendable (any Channel) throws -> Void
  ) throws {
    let lifetime = NIOHTTP2ServerConnectionManagementHandler(
      eventLoop: channel.eventLoop,
      configuration: .init(
        maxIdleTime: limits.idleTimeout, maxAge: nil, maxGraceTime: .seconds(8),
        keepalive: .init(pingInterval: limits.keepAliveInterval, ackTimeout: limits.keepAliveTimeout)))
    let pipeline = channel.pipeline.syncOperations
    try pipeline.addHandler(
      SilentPeerHandler(
        allowed: .nanoseconds(limits.keepAliveInterval.nanoseconds + 2 * limits.keepAliveTimeout.nanoseconds))
    )
    try pipeline.addHandler(HTTP2FloodHandler(limits, log))
    _ = try pipeline.configureHTTP2Pipeline(
      mode: .server,
      connectionConfiguration: connection(limits),
      streamConfiguration: stream(limits),
      streamDelegate: lifetime.http2StreamDelegate
    ) { stream in
      stream.eventLoop.makeCompletedFuture { try streams(stream) }
    }
    try pipeline.addHandler(lifetime)
    try pipeline.addHandler(ConnectionErrorHandler())
    // NIOHTTP2Handler activates itself when it joins; what follows it must be told.
    try pipeline.context(handlerType: NIOHTTP2Handler.self).fireChannelActive()
  }

  private static func connection(_ limits: HTTP2Limits) -> NIOHTTP2Handler.ConnectionConfiguration {
    var configuration = NIOHTTP2Handler.ConnectionConfiguration()
    configuration.initialSettings = [
      HTTP2Setting(parameter: .maxConcurrentStreams, value: limits.maximumConcurrentStreams),
      HTTP2Setting(parameter: .maxHeaderListSize, value: limits.maximumHeaderListSize),
      HTTP2Setting(parameter: .initialWindowSize, value: limits.streamWindow),
    ]
    configuration.targetWindowSize = limits.connectionWindow
    configuration.maximumRecentlyResetStreams = 200
    // A connection may be old: the rate below says more than the sum.
    configuration.maximumConnectionGlitches = .max
    // `HTTP2FloodHandler` has counted these, and by what they are answered with.
    configuration.controlFrameRateLimit.maximumCount = uncounted
    configuration.controlFrameRateLimit.windowLength = .nanoseconds(1)
    return configuration
  }

  private static func stream(_ limits: HTTP2Limits) -> NIOHTTP2Handler.StreamConfiguration {
    var configuration = NIOHTTP2Handler.StreamConfiguration()
    configuration.targetWindowSize = limits.streamWindow
    configuration.outboundBufferSizeHighWatermark = limits.outboundHighWatermark
    configuration.outboundBufferSizeLowWatermark = limits.outboundLowWatermark
    configuration.streamResetFrameRateLimit.maximumCount = uncounted
    configuration.streamResetFrameRateLimit.windowLength = .nanoseconds(1)
    configuration.streamErrorRateLimit.maximumCount = limits.maximumStreamErrors
    return configuration
  }

  /// More frames than can come within a nanosecond.
  private static let uncounted = 64
}

/// Closes a connection whose framing is broken. The HTTP/2 handler has sent GOAWAY with the reason by then; errors
/// of single streams do not come this way.
private final class ConnectionErrorHandler: ChannelInboundHandler {
  typealias InboundIn = HTTP2Frame

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if error is NIOHTTP2Errors.StreamError { return }
    context.channel.cutOff()
  }
}
