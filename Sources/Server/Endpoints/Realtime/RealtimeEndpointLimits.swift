// Every limit of the Realtime Database's connections, in one place.

public import NIOCore
public import RealtimeModel
import RealtimeWire

/// What one connection to the Realtime Database may take.
public struct RealtimeEndpointLimits: Sendable {
  /// The limits of data.
  public var data = RealtimeLimits.standard
  /// The most bytes of one WebSocket message, after pieces are put together. Above the limit of data,
  /// so that a write that is a little too large gets its own error.
  public var messageBytes = 32 * 1024 * 1024
  /// Requests that may wait for their answers before no more are read from the connection.
  public var outstandingRequests = 1024
  /// Bytes of those requests before no more are read: as much as one commit takes, so that more would only wait. The
  /// request that goes beyond is still taken.
  public var outstandingRequestBytes = 8 * 1024 * 1024
  /// From this size on the body of a PUT is written while it arrives, where rules need not look at it whole.
  public var arrivingBodyBytes = 1024 * 1024
  /// The most bytes of a PUT that says `writeSizeLimit=unlimited`, as an import of a whole database does. The hosted
  /// product takes 256 MB.
  public var importBytes = 64 * 1024 * 1024 * 1024
  /// How often, in bytes, the log tells how far an import or export is.
  public var progressBytes = 64 * 1024 * 1024
  /// Most bytes that the bodies of a connection's REST requests may hold together until they are answered: one
  /// request of the largest size, or many small ones over HTTP/2.
  public var connectionBodyBytes = 256 * 1024 * 1024
  /// Bytes of REST answers that may wait to be read on one connection of HTTP/2 before further requests are refused. The
  /// answer that goes beyond is still given. Over HTTP/1.1 one answer waits at a time.
  public var connectionAnswerBytes = 64 * 1024 * 1024
  /// From this size on, as an estimate of its JSON, what a client is told is encoded beside the event loop. Encoding
  /// this much takes about a third of a millisecond, some ten times what going aside costs.
  public var loopEncodingBytes = 64 * 1024
  /// Most bytes of one query's text, which is kept as long as its listen stands.
  public var queryTextBytes = 64 * 1024
  /// Most pieces of one message on a WebSocket, which is what every client can count. What needs more is refused.
  public var socketPieces = MessageSplitter.maximumFrames
  /// How long a WebSocket may be silent, both ways, before it is asked for a sign of life. Clients give one themselves
  /// after 45 s, on iOS after 50 s at the most, and the Admin SDK for Java breaks a connection on which it is asked.
  public var pingAfter = TimeAmount.seconds(60)
  /// How long a WebSocket may be silent, take nothing of what it is sent, or not confirm it, before it counts as lost.
  public var lostAfter = TimeAmount.seconds(75)
  /// The pings, and the pieces of messages with nothing in them, that a WebSocket may send; a piece of a message brings one.
  public var socketCredit = PeerCreditLimits(initial: 2_000, perSecond: 500, maximum: 2_000)
  /// How often an event stream says that it is alive.
  public var eventStreamKeepAlive = TimeAmount.seconds(30)

  /// Sessions of long polling at the same time.
  public var longPollSessions = 10_000
  /// How long a poll is held when there is nothing to tell. Clients poll anew after 25 s in any case.
  public var longPollHold = TimeAmount.seconds(20)
  /// Bytes of one answer to a poll, but for a message that is larger itself.
  public var longPollBatchBytes = 1024 * 1024
  /// How many pieces of messages may come before one that is missing. Clients have two polls under way, of a piece each
  /// or a few small ones.
  public var longPollSegments = 1024

  /// The product's own limits, or ours where it has none.
  public static let standard = RealtimeEndpointLimits()

  /// The standard limits.
  public init() {}

  /// The standard limits, as far above as those of the data are.
  public init(data: RealtimeLimits) {
    self.data = data
    // Above the limit of data, as by default.
    messageBytes = max(messageBytes, 2 * data.socketWriteBytes)
    connectionBodyBytes = max(connectionBodyBytes, data.restWriteBytes)
    connectionAnswerBytes = max(connectionAnswerBytes, data.queuedOutputBytes)
  }
}
