// Every limit of a listening port in one place: connections, times, and the budgets that bound what one peer
// can make the server hold or do.

public import NIOCore

/// What one listening port allows.
public struct PortLimits: Sendable {
  /// Open connections at once; one more is closed as soon as it is accepted.
  public var maximumConnections = 15_000
  /// What all ports that share it may hold together: the files and sockets a process may open are one number. Nil for
  /// as many as each port's own limit says.
  public var connections: ConnectionBudget?
  /// How long a new connection may take to finish TLS and show which protocol it speaks.
  public var handshakeTimeout: TimeAmount = .seconds(10)
  /// How long an HTTP/1.1 connection may take until its next request's head is complete.
  public var requestHeadTimeout: TimeAmount = .seconds(75)
  /// How long a request's body may take once its head is complete, over HTTP/1.1 and on a stream of HTTP/2.
  public var requestBodyTimeout: TimeAmount = .seconds(60)
  /// Bytes of a body that earn it a second beyond that time: a large body may take long, but not forever.
  public var requestBodyRate = 64 << 10
  /// How long a peer may read nothing of an answer to REST that waits for it, before the connection or stream is closed.
  public var answerTimeout: TimeAmount = .seconds(60)
  /// How long a peer that is told off while it sends has to read that, before the connection is closed.
  public var lingerTimeout: TimeAmount = .seconds(2)
  /// The largest HTTP/1.1 request body, in bytes.
  public var maximumRequestBody = 10 << 20
  /// The bytes that all connections together may hold of requests and unread answers. Ports that are given the same share
  /// it; without that each has a gibibyte of its own. `HearthServer` gives its ports a quarter of the machine's memory.
  public var memory = MemoryBudget(limit: 1 << 30)
  /// Bytes of these that one connection may hold without taking from that budget.
  public var freeBytes = 64 << 10
  /// The HTTP/2 part.
  public var http2 = HTTP2Limits()
  /// The WebChannel part.
  public var webChannel = WebChannelLimits()

  /// The defaults.
  public init() {}
}

/// What one HTTP/2 connection allows.
public struct HTTP2Limits: Sendable {
  /// Streams open at once; the peer is told so in SETTINGS.
  public var maximumConcurrentStreams = 1_000
  /// Streams beyond that within 30 seconds, each of which is refused, before the connection is ended.
  public var maximumRefusals = 1_000
  /// A request's headers after decompression, in bytes: room for a long token. A request with more is refused.
  public var maximumHeaderListSize = 64 << 10
  /// Bytes of headers, packed or not, beyond which the connection is ended. What they change in the tables of the
  /// connection would have to be kept up with whatever their size.
  public var largestHeaderListSize = 256 << 10
  /// Frames in which one header list may come, beside the first.
  public var maximumContinuations = 16
  /// Bytes the peer may send ahead on one stream, and on the connection as a whole.
  public var streamWindow = 256 << 10
  /// Bytes the peer may send ahead on the connection as a whole.
  public var connectionWindow = 1 << 20
  /// Bytes queued towards the peer on one stream above which its writers wait.
  public var outboundHighWatermark = 64 << 10
  /// Bytes queued towards the peer below which waiting writers go on.
  public var outboundLowWatermark = 16 << 10
  /// Bytes of incomplete messages that all streams of a connection may hold together.
  public var maximumBufferedRequestBytes = 64 << 20
  /// Bytes of answers to calls with one answer that a connection may hold until its peer takes them. A call starts only
  /// while there is room for its answer; until then it waits. A streaming call has its watermarks instead.
  public var maximumQueuedAnswerBytes = 32 << 20
  /// How much of that a call under way takes up before its answer is known: the largest document, with its frame.
  public var expectedAnswerBytes = 1_100_000
  /// What a gRPC stream takes up while it is open, about: its objects, and output that is not worth counting by itself.
  public var streamBytes = 16 << 10
  /// Calls of REST with large answers under way at once on a connection; more of them wait. Each holds some megabytes.
  public var maximumReadingCalls = 16
  /// How long answers may be queued without any of them going out whole, before the connection is closed.
  public var unreadAnswerTimeout: TimeAmount = .minutes(5)
  /// The largest message in either direction, in bytes.
  public var maximumMessageSize = 17 << 20
  /// How long the request of a method that takes one message may be on its way.
  public var requestTimeout: TimeAmount = .seconds(60)
  /// What may be sent that asks for nothing or takes back what was asked: a reset or settings cost ten, a ping, a window
  /// update or a frame of no known type one; an answer brings ten for its head and up to ten for a piece of its body.
  /// A peer beyond it is cut off. Genuine clients reset as many answered streams at once as may be open, and some ping
  /// with each answer to measure bandwidth: they must never see GOAWAY for it.
  public var credit = PeerCreditLimits(initial: 2_000, perSecond: 500, maximum: 12_000)
  /// Frames within 30 seconds that break the rules of their stream alone, before the connection is ended.
  public var maximumStreamErrors = 200
  /// How long a connection without streams is kept.
  public var idleTimeout: TimeAmount = .minutes(10)
  /// After how long a silence the peer is asked by PING whether it is still there.
  public var keepAliveInterval: TimeAmount = .seconds(120)
  /// How long the answer to that PING may take.
  public var keepAliveTimeout: TimeAmount = .seconds(20)

  /// The defaults.
  public init() {}
}
