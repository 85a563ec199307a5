// Limits the bytes that wait to be read by one client.
//
// Invariant: the write that takes a connection beyond its budget reports it, on every kind of channel.

import NIOCore

/// Counts the bytes that wait to be read by one client.
struct OutputBudget {
  let limit: Int
  /// Whether the channel reports its queued bytes. An HTTP/2 stream does not: requesting the option is a
  /// fatal error.
  let isMeasurable: Bool
  /// Bytes written since the channel was last writable, for channels that do not report their queue.
  private var written = 0
  /// The largest single write since then. One response may be larger than the budget.
  private var largest = 0

  /// Creates a budget of `limit` bytes, for a socket or for a stream within a connection.
  init(limit: Int, isMeasurable: Bool) {
    self.limit = limit
    self.isMeasurable = isMeasurable
  }

  /// Counts bytes that were written and flushed. Returns whether the client is beyond its budget.
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
