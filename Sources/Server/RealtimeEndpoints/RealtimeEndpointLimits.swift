// Defines every limit of the Realtime Database's connections.

package import NIOCore
package import RealtimeModel
import RealtimeWire

/// The limits of one connection to the Realtime Database.
package struct RealtimeEndpointLimits: Sendable {
  /// The limits of the data model, such as the size of a write.
  package var data = RealtimeLimits.standard
  /// Maximum bytes of one WebSocket message, after its frames are assembled. Larger than the limit of a
  /// write, so that a slightly oversized write is parsed and gets the error for oversized writes.
  package var messageBytes = 32 * 1024 * 1024
  /// The number of unanswered requests at which the server stops reading from the connection.
  package var outstandingRequests = 1024
  /// The bytes of unanswered requests at which the server stops reading from the connection. It equals the maximum
  /// bytes of one batch of the engine. The request that exceeds the limit is still accepted.
  package var outstandingRequestBytes = 8 * 1024 * 1024
  /// The minimum size of a PUT body that is written while it arrives, in bytes. Only for callers that rules
  /// do not restrict, because rules need the complete value.
  package var arrivingBodyBytes = 1024 * 1024
  /// Maximum bytes of a PUT with `writeSizeLimit=unlimited`, such as the import of a database. The hosted
  /// service accepts 256 MB.
  package var importBytes = 64 * 1024 * 1024 * 1024
  /// The number of bytes after which the log reports the progress of an import or export.
  package var progressBytes = 64 * 1024 * 1024
  /// Maximum bytes of the REST request bodies of a connection that have no response yet. Enough for one
  /// request of the largest size, or for many small ones over HTTP/2.
  package var connectionBodyBytes = 256 * 1024 * 1024
  /// The bytes of unread REST responses on one HTTP/2 connection at which further requests are rejected. The
  /// response that exceeds the limit is still sent. HTTP/1.1 needs no such limit, because only one response
  /// is sent at a time.
  package var connectionResponseBytes = 64 * 1024 * 1024
  /// The minimum estimated JSON size of output that is encoded off the event loop, in bytes. Encoding this
  /// size takes about 0.3 ms, ten times as long as the two hops between threads.
  package var loopEncodingBytes = 64 * 1024
  /// Maximum bytes of a query's JSON. The session keeps this JSON as long as the query's listen exists.
  package var queryTextBytes = 64 * 1024
  /// Maximum number of frames in one message that the server sends over a WebSocket. Official clients cannot
  /// count more frames. Larger messages are rejected.
  package var socketFrames = MessageSplitter.maximumFrames
  /// How long a WebSocket may be idle in both directions before it gets a ping. Clients send a keep-alive
  /// after 45 s, on iOS after 50 s. The Admin SDK for Java closes a connection that receives a ping.
  package var pingAfter = TimeAmount.seconds(60)
  /// The time after which a WebSocket counts as lost if its client sends nothing, reads nothing or
  /// acknowledges nothing.
  package var lostAfter = TimeAmount.seconds(75)
  /// The interval of keep-alive events of an event stream.
  package var eventStreamKeepAlive = TimeAmount.seconds(30)

  /// Maximum number of simultaneous long-polling sessions.
  package var longPollSessions = 10_000
  /// How long the server delays the answer to a poll while it has no message. Clients poll again after 25 s.
  package var longPollHold = TimeAmount.seconds(20)
  /// Maximum bytes of one response to a poll, except for a single message that is larger.
  package var longPollBatchBytes = 1024 * 1024
  /// Maximum number of segments that may arrive before a missing one. Clients have two polls in flight, with
  /// one large or a few small segments each.
  package var longPollSegments = 1024

  /// Firebase's limits, or Hearth's where Firebase has none.
  package static let standard = RealtimeEndpointLimits()

  /// Creates the standard limits.
  package init() {}

  /// Creates the standard limits, raised in proportion to the limits of data.
  package init(data: RealtimeLimits) {
    self.data = data
    // Larger than the limit of a write, as in the standard limits.
    messageBytes = max(messageBytes, 2 * data.socketWriteBytes)
    connectionBodyBytes = max(connectionBodyBytes, data.restWriteBytes)
    connectionResponseBytes = max(connectionResponseBytes, data.queuedOutputBytes)
  }
}
