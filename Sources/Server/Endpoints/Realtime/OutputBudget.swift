// How much may wait for a peer that does not read. Invariant: a connection whose queue is beyond the
// budget is told so at the next write, whatever kind of channel it is.

import NIOCore

/// Watches the bytes that wait to be read by one peer.
struct OutputBudget {
  let limit: Int
  /// Whether the channel can tell what waits. A stream of HTTP/2 must not even be asked: that is fatal.
  let isMeasurable: Bool
  /// Bytes written since the channel was last writable; for channels that cannot tell what waits.
  private var written = 0
  /// The largest single write since then: one answer may be larger than the budget, and its reader deserves it.
  private var largest = 0

  /// Creates a budget of `limit` bytes, for a socket or for a stream within a connection.
  init(limit: Int, isMeasurable: Bool) {
    self.limit = limit
    self.isMeasurable = isMeasurable
  }

  /// Counts bytes that were written and flushed; whether the peer is beyond its budget.
  mutating func isExceeded(writing bytes: Int, to channel: any Channel) -> Bool {
    if channel.isWritable {
      written = 0
      largest = 0
      return false
    }
    largest = max(largest, bytes)
    if isMeasurable, let queued = try? channel.syncOptions?.getOption(.bufferedWritableBytes) {
      return queued > limit + largest
    }
    written += bytes
    return written > limit + largest
  }
}
