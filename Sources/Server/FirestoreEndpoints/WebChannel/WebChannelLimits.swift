// WebChannel limits: the number of sessions, their memory and their timeouts.
//
// A client sends messages in POST requests. The server sends numbered messages (arrays) in the response to a GET request,
// the back channel. A noop is an array without content that keeps the back channel alive.

package import NIOCore

/// Limits of the WebChannel sessions of one port.
package struct WebChannelLimits: Sendable {
  /// Maximum number of open sessions. A handshake above it is rejected with status 503.
  package var maximumSessions = 20_000
  /// Maximum bytes that all sessions buffer together. Above it, sessions without a back channel end, longest idle first.
  /// If that is not enough, the session that exceeded the limit ends.
  package var maximumHeldBytes = 512 << 20
  /// Maximum body of one POST in bytes: up to ten batches of writes, percent-encoded.
  package var maximumRequestBody = 32 << 20
  /// Maximum number of messages in one POST, the same as in the official client.
  package var maximumMessages = 1_000
  /// Maximum distance of a message number from the lowest number that has not arrived.
  package var maximumGap = 10_000
  /// Maximum bytes of messages that one session queues for its stream. Above it the stream ends with
  /// RESOURCE_EXHAUSTED.
  package var maximumPendingBytes = 32 << 20
  /// Bytes of unacknowledged arrays above which the stream stops sending.
  package var maximumUnacknowledgedBytes = 1 << 20
  /// Bytes after which a back channel ends, so that the client's next request acknowledges them.
  ///
  /// At most half of `maximumUnacknowledgedBytes`. Otherwise a stream could wait for an acknowledgement that the client does
  /// not send.
  package var maximumBackChannelBytes = 512 << 10
  /// Maximum lifetime of a streaming back channel.
  package var maximumBackChannelLifetime: TimeAmount = .seconds(60)
  /// Maximum lifetime of a streaming back channel over HTTP/1.1, where it occupies a connection.
  ///
  /// A browser opens `browserConnections` connections per host, so a page with as many streams gets no other response until a back
  /// channel ends. Clients report that they are offline after ten seconds (docs/decisions/0038).
  package var maximumConnectionHold: TimeAmount = .seconds(20)
  /// Maximum lifetime of a back channel over HTTP/1.1, streaming or polling, that may occupy the last connection of a browser,
  /// because back channels of this port may occupy all others for `maximumConnectionHold`.
  package var maximumLastConnectionHold: TimeAmount = .seconds(20)
  /// The time without a frame after which a back channel sends a noop. Clients disconnect after 1.5 times this interval.
  package var keepAlive: TimeAmount = .seconds(30)
  /// The time after which a session without a back channel and without requests ends.
  package var idleTimeout: TimeAmount = .minutes(2)
  /// The time that a session waits for the client's acknowledgement after its stream has ended.
  package var endAcknowledgementTimeout: TimeAmount = .seconds(30)
  /// The time between the two parts of the test response by which old clients detect proxies that buffer responses.
  package var proxyTestPause: TimeAmount = .seconds(2)

  /// Creates the default limits.
  package init() {}

  /// The number of connections over HTTP/1.1 that browsers open to one host.
  static let browserConnections = 6

  /// The limits of an emulator. Its clients are mostly the pages of one browser, without TLS and therefore over HTTP/1.1.
  package static var emulator: WebChannelLimits {
    var limits = WebChannelLimits()
    limits.maximumLastConnectionHold = .milliseconds(250)
    return limits
  }
}
