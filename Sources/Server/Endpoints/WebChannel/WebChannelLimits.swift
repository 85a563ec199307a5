// Every limit of WebChannel in one place: sessions, what they may hold, and their times.

public import NIOCore

/// What the WebChannel sessions of one port may hold, and for how long.
public struct WebChannelLimits: Sendable {
  /// Sessions at once; a handshake beyond them is refused with 503.
  public var maximumSessions = 20_000
  /// Bytes that all sessions may hold together: beyond them sessions without a back channel are ended, the longest idle
  /// ones first, then the one that would hold more.
  public var maximumHeldBytes = 512 << 20
  /// The largest body of one POST: ten batches of writes may come in one, percent-encoded.
  public var maximumRequestBody = 32 << 20
  /// Messages in one POST; genuine clients send at most so many.
  public var maximumMessages = 1_000
  /// How far a message's number may be ahead of the first that is missing.
  public var maximumGap = 10_000
  /// Bytes of messages that one session may hold until its stream takes them; beyond them it ends.
  public var maximumWaitingBytes = 32 << 20
  /// Bytes of answers that the client has not acknowledged, beyond which the stream waits with more.
  public var maximumRetainedBytes = 1 << 20
  /// Bytes after which a back channel is ended, so that the client's next one acknowledges them. At most half of
  /// `maximumRetainedBytes`, or a stream would wait for an acknowledgement that nothing asks for.
  public var backChannelBytes = 512 << 10
  /// How long a streaming back channel lasts.
  public var backChannelLife: TimeAmount = .seconds(60)
  /// How long a back channel may be silent. Clients give it up after one and a half times as long.
  public var keepAlive: TimeAmount = .seconds(30)
  /// How long a session lives without a request and without a back channel.
  public var idleTimeout: TimeAmount = .minutes(2)
  /// How long a session whose stream has ended waits for its client to hear of it.
  public var farewellTimeout: TimeAmount = .seconds(30)
  /// The time between the two parts of the answer that tells old clients whether a proxy withholds the first.
  public var proxyTestPause: TimeAmount = .seconds(2)

  /// The defaults.
  public init() {}
}
