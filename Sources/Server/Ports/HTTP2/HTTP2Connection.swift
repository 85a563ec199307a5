// Builds the pipeline of one HTTP/2 connection: frames, streams, limits against abuse, and a graceful end.
//
// Invariants
//   1. The server answers PING frames. Their number is not limited while the client reads the answers.
//   2. A client that sends too many resets or control frames loses its connection. Other connections are not affected.
//   3. During a drain the client receives GOAWAY, and its open streams may finish.
//   4. An error of one stream ends that stream only. Field blocks are the exception, as described below.
//
// A field block changes the HPACK tables that all streams share, so it has to be decoded. A header list up to four times the
// announced limit is decoded and rejected by its stream. The connection ends after
//   - a larger header list,
//   - a field block that cannot be decoded,
//   - trailers of a stream that either side has reset.
//
// RFC 9113 (5.1) requires the server to decode such trailers and ignore them. NIOHTTP2 treats every HEADERS frame of a
// stream that is not open as the beginning of a new stream. It rejects the stream's number as too small and fails the
// connection (`ReceivingHeadersState.receiveHeaders`, `ConnectionStreamState.reserveClientStreamID`), before it checks
// the reset streams. Handlers before NIOHTTP2 cannot prevent this: its tables would lack a dropped block, and would
// assign the block to another stream if the stream's number were changed.

import Logging
import NIOCore
import NIOHTTP2

/// Installs the handlers of HTTP/2 connections.
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
        timeout: .nanoseconds(limits.keepAliveInterval.nanoseconds + 2 * limits.keepAliveTimeout.nanoseconds))
    )
    let wire = HTTP2Wire(port)
    let openStreams = HTTP2Streams(limits, wire)
    let boundStreams = NIOLoopBound(openStreams, eventLoop: channel.eventLoop)
    try pipeline.addHandler(wire)
    _ = try pipeline.configureHTTP2Pipeline(
      mode: .server,
      connectionConfiguration: connection(limits),
      streamConfiguration: stream(limits),
      streamDelegate: HTTP2StreamCounter(streams: boundStreams, lifetime: lifetime.http2StreamDelegate)
    ) { stream in
      stream.eventLoop.makeCompletedFuture {
        guard boundStreams.value.admit() else {
          return try stream.pipeline.syncOperations.addHandler(RefusedStreamHandler())
        }
        try streams(stream)
      }
    }
    let end = HTTP2EndHandler(wire, openStreams)
    try pipeline.addHandler(end)
    try pipeline.addHandler(lifetime)
    try pipeline.addHandler(HTTP2CloseHandler(end))
    // NIOHTTP2Handler activates itself when it is added. The handlers after it still need the event `channelActive`.
    try pipeline.context(handlerType: NIOHTTP2Handler.self).fireChannelActive()
  }

  private static func connection(_ limits: HTTP2Limits) -> NIOHTTP2Handler.ConnectionConfiguration {
    var configuration = NIOHTTP2Handler.ConnectionConfiguration()
    configuration.initialSettings = [
      // `HTTP2Wire` announces the actual limits. `HTTP2Streams` enforces the limit of streams. `HeaderListLimit` and
      // the gRPC handler enforce the limit of header lists.
      HTTP2Setting(parameter: .maxConcurrentStreams, value: Int(Int32.max)),
      HTTP2Setting(
        parameter: .maxHeaderListSize,
        value: max(limits.maximumHeaderListSize, limits.maximumAcceptedHeaderListSize)),
      HTTP2Setting(parameter: .initialWindowSize, value: limits.streamWindow),
    ]
    configuration.targetWindowSize = limits.connectionWindow
    configuration.maximumSequentialContinuationFrames = limits.maximumContinuationFrames
    configuration.maximumBufferedControlFrames = limits.maximumQueuedControlFrames
    configuration.maximumRecentlyResetStreams = 500
    // This limit counts the stream errors over the lifetime of a connection, and connections may be old.
    // `maximumStreamErrors` limits the rate of stream errors instead.
    configuration.maximumConnectionGlitches = .max
    // Clients that measure bandwidth send a PING for each response, so PING frames are not limited.
    configuration.controlFrameRateLimit.maximumCount = unlimitedFrameCount
    configuration.controlFrameRateLimit.windowLength = .nanoseconds(1)
    return configuration
  }

  private static func stream(_ limits: HTTP2Limits) -> NIOHTTP2Handler.StreamConfiguration {
    var configuration = NIOHTTP2Handler.StreamConfiguration()
    configuration.targetWindowSize = limits.streamWindow
    configuration.outboundBufferSizeHighWatermark = limits.outboundHighWatermark
    configuration.outboundBufferSizeLowWatermark = limits.outboundLowWatermark
    configuration.streamResetFrameRateLimit.maximumCount = limits.maximumResetsPerSecond
    configuration.streamResetFrameRateLimit.windowLength = .seconds(1)
    configuration.streamErrorRateLimit.maximumCount = limits.maximumStreamErrors
    return configuration
  }

  /// A frame count that is never reached, since the rate's period is one nanosecond.
  private static let unlimitedFrameCount = 64
}
