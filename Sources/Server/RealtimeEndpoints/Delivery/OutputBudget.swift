// An output budget limits the bytes that the server has written and one client has not read yet.
//
// Invariant: `isExceeded` returns true for the first write that exceeds the budget, on sockets and on HTTP/2
// streams.

import NIOCore

/// Counts the unread bytes of one client.
struct OutputBudget {
  let limit: Int
  /// Whether the channel reports its queued bytes. An HTTP/2 stream does not, and requesting this channel
  /// option from it is a fatal error.
  let isMeasurable: Bool
  /// Bytes written since the channel was last writable, for channels that do not report their queue.
  private var written = 0
  /// The largest single write since the channel was last writable. It extends the budget, because one
  /// response may be larger than the limit.
  private var largest = 0

  /// Creates a budget of `limit` bytes, for a socket or for a stream within a connection.
  init(limit: Int, isMeasurable: Bool) {
    self.limit = limit
    self.isMeasurable = isMeasurable
  }

  /// Counts bytes that were written and flushed. Returns whether the client's unread bytes exceed the budget.
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
