// The limits of a listening port: connections, timeouts, and the memory and work that one client can cause.

package import NIOCore

/// The limits of one listening port.
package struct PortLimits: Sendable {
  /// Maximum number of open connections. A further one closes as soon as it is accepted.
  package var maximumConnections = 15_000
  /// The connections that all ports of the process may hold together, since they share its limit of open files. Nil if only
  /// the limit of each port applies.
  package var connections: ConnectionBudget?
  /// The time in which a new connection has to finish TLS and send the bytes that reveal its protocol.
  package var handshakeTimeout: TimeAmount = .seconds(10)
  /// The time in which the next request head of an HTTP/1.1 connection has to be complete.
  package var requestHeadTimeout: TimeAmount = .seconds(75)
  /// The time in which a request's body has to be complete after its head, for HTTP/1.1 and HTTP/2.
  package var requestBodyTimeout: TimeAmount = .seconds(60)
  /// The number of body bytes that extend `requestBodyTimeout` by one second, so that a large body has time if it
  /// arrives at this rate.
  package var requestBodyRate = 64 << 10
  /// The time in which a client has to read a part of a REST response, before the connection or stream is closed.
  package var responseTimeout: TimeAmount = .seconds(60)
  /// The time in which a client that is still sending may read an error, before the connection is closed.
  package var lingerTimeout: TimeAmount = .seconds(2)
  /// Maximum bytes of an HTTP/1.1 request body.
  package var maximumRequestBody = 10 << 20
  /// The bytes of requests and unread responses that all connections may hold together. Ports with the same budget share it.
  /// By default each port has 1 GiB. `HearthServer` gives its ports a quarter of the machine's memory.
  package var memory = MemoryBudget(limit: 1 << 30)
  /// The bytes that each connection may hold without a reservation in `memory`.
  package var allowanceBytes = 64 << 10
  /// Maximum bytes read from one connection per tick of its event loop.
  package var maximumReadBytes = 16 << 10
  /// The hosts and web pages whose requests the port serves.
  package var origins = RequestOriginPolicy.any
  /// The limits of HTTP/2 connections.
  package var http2 = HTTP2Limits()

  /// Creates the default limits.
  package init() {}
}

/// The limits of one HTTP/2 connection.
package struct HTTP2Limits: Sendable {
  /// Maximum number of open streams, announced in SETTINGS.
  package var maximumConcurrentStreams = 1_000
  /// Maximum number of refused streams beyond that limit in 30 seconds, before the connection is ended.
  package var maximumRefusedStreams = 1_000
  /// Maximum bytes of a request's decompressed headers, announced in SETTINGS. It has room for a long token. A request with
  /// larger headers is rejected.
  package var maximumHeaderListSize = 64 << 10
  /// Maximum bytes of compressed or decompressed headers, before the connection is ended. Smaller headers have to be
  /// decoded even if their request is rejected, since they change the connection's HPACK tables.
  package var maximumAcceptedHeaderListSize = 256 << 10
  /// Maximum number of CONTINUATION frames of one header list.
  package var maximumContinuationFrames = 16
  /// The flow-control window of a stream, in bytes.
  package var streamWindow = 256 << 10
  /// The flow-control window of the connection, in bytes.
  package var connectionWindow = 1 << 20
  /// The queued outbound bytes of a stream at which its writers wait.
  package var outboundHighWatermark = 64 << 10
  /// The queued outbound bytes of a stream at which waiting writers resume.
  package var outboundLowWatermark = 16 << 10
  /// Maximum bytes of incomplete messages over all streams of the connection.
  package var maximumBufferedRequestBytes = 64 << 20
  /// Maximum bytes of unread unary responses. A call waits until there is capacity for its response. The watermarks
  /// above limit the responses of streaming calls.
  package var maximumQueuedResponseBytes = 32 << 20
  /// The part of `maximumQueuedResponseBytes` that a call reserves until its response is known: the size of the largest
  /// document and its frame.
  package var expectedResponseBytes = 1_100_000
  /// The approximate bytes of an open gRPC stream: its objects, and output that is too small to be counted.
  package var streamBytes = 16 << 10
  /// Maximum number of concurrent REST calls with large responses. Each holds some megabytes. Further calls wait.
  package var maximumLargeReads = 16
  /// The time in which one queued response has to be written completely, before the connection is closed.
  package var unreadResponseTimeout: TimeAmount = .minutes(5)
  /// Maximum bytes of a message in either direction.
  package var maximumMessageSize = 17 << 20
  /// The time in which the request of a method that takes one message has to be complete.
  package var requestTimeout: TimeAmount = .seconds(60)
  /// Maximum number of streams that the client may reset per second, before the connection is ended. An official client
  /// may reset all of its open streams (`maximumConcurrentStreams`) at the same time.
  package var maximumResetsPerSecond = 2_000
  /// Maximum number of SETTINGS frames per second, before the connection is ended. Each may change the window of every open
  /// stream.
  package var maximumSettingsPerSecond = 100
  /// Maximum number of unread replies to control frames, such as PING, before the connection is ended.
  package var maximumQueuedControlFrames = 2_000
  /// Maximum number of frames in 30 seconds that break the rules of their stream, before the connection is ended.
  package var maximumStreamErrors = 200
  /// The time after which a connection without streams is ended.
  package var idleTimeout: TimeAmount = .minutes(10)
  /// The time without input after which the server sends a PING.
  package var keepAliveInterval: TimeAmount = .seconds(120)
  /// The time in which the client has to answer the PING that the server sends after `keepAliveInterval`.
  package var keepAliveTimeout: TimeAmount = .seconds(20)

  /// Creates the default limits.
  package init() {}
}
