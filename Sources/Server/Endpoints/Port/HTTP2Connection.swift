// The pipeline of one HTTP/2 connection: frames, streams, budgets against floods, and a graceful end.
//
// Invariants: the peer's pings are answered, and never punished while it asks and is answered; a peer that floods resets
// or control frames loses its connection and nothing else; on drain the peer gets GOAWAY and its open streams may finish;
// what is wrong with one stream ends that stream alone. Except for field blocks, which change HPACK's tables for all
// streams and so cannot be passed over. A header list is unpacked, and refused by its stream, up to four times what a
// client is told; one beyond that, one that cannot be decoded, and trailers of a stream that was reset, by either side,
// end the connection. RFC 9113 (5.1) wants the last to be unpacked and dropped; NIOHTTP2's state machine takes every
// HEADERS frame of a client's stream that is not open for the beginning of a new one, finds its number too small and
// fails the connection (`ReceivingHeadersState.receiveHeaders`, `ConnectionStreamState.reserveClientStreamID`), before it
// looks at the streams that were reset. Nothing beneath it can help: a block that is left out is missing from its tables,
// which are its own, and given to any other stream it would be that stream's.

import Logging
import NIOCore
import NIOHTTP2

enum HTTP2Connection {
  /// Installs the handlers at the end of an active channel's pipeline, on its event loop.
  static func install(
    on channel: any Channel, limits port: PortLimits, log: Logger,
    streams: @escaping @Sendable (any Channel) throws -> Void
  ) throws {
    let limits = port.http2
    let lifetime = NIOHTTP2ServerConnectionManagementHandler(
      eventLoop: channel.eventLoop,
      configuration: .init(
        maxIdleTime: limits.idleTimeout, maxAge: nil, maxGraceTime: nil,
        keepalive: .init(pingInterval: limits.keepAliveInterval, ackTimeout: limits.keepAliveTimeout)))
    let pipeline = channel.pipeline.syncOperations
    try pipeline.addHandler(
      SilentPeerHandler(
        allowed: .nanoseconds(limits.keepAliveInterval.nanoseconds + 2 * limits.keepAliveTimeout.nanoseconds))
    )
    try pipeline.addHandler(HTTP2FloodHandler(limits, log))
    let wire = HTTP2Wire(port)
    let open = HTTP2Streams(limits, wire)
    let admission = NIOLoopBound(open, eventLoop: channel.eventLoop)
    try pipeline.addHandler(wire)
    _ = try pipeline.configureHTTP2Pipeline(
      mode: .server,
      connectionConfiguration: connection(limits),
      streamConfiguration: stream(limits),
      streamDelegate: HTTP2StreamCounter(streams: admission, lifetime: lifetime.http2StreamDelegate)
    ) { stream in
      stream.eventLoop.makeCompletedFuture {
        guard admission.value.admit() else {
          return try stream.pipeline.syncOperations.addHandler(RefusedStreamHandler())
        }
        try streams(stream)
      }
    }
    let end = HTTP2EndHandler(wire, open)
    try pipeline.addHandler(end)
    try pipeline.addHandler(lifetime)
    try pipeline.addHandler(HTTP2CutHandler(end))
    // NIOHTTP2Handler activates itself when it joins; what follows it must be told.
    try pipeline.context(handlerType: NIOHTTP2Handler.self).fireChannelActive()
  }

  private static func connection(_ limits: HTTP2Limits) -> NIOHTTP2Handler.ConnectionConfiguration {
    var configuration = NIOHTTP2Handler.ConnectionConfiguration()
    configuration.initialSettings = [
      // `HTTP2Wire` tells the client the true limits. `HTTP2Streams` keeps the first, and every stream the second.
      HTTP2Setting(parameter: .maxConcurrentStreams, value: Int(Int32.max)),
      HTTP2Setting(
        parameter: .maxHeaderListSize,
        value: max(limits.maximumHeaderListSize, limits.largestHeaderListSize)),
      HTTP2Setting(parameter: .initialWindowSize, value: limits.streamWindow),
    ]
    configuration.targetWindowSize = limits.connectionWindow
    configuration.maximumSequentialContinuationFrames = limits.maximumContinuations
    configuration.maximumRecentlyResetStreams = 500
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
