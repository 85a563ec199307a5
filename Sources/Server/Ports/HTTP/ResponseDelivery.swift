// Follows the delivery of one response: counts its unread bytes, and closes the stream or connection if the client stops
// reading.
//
// Invariant: counted bytes are released when their write completes, and not earlier. In particular they stay counted
// after a reset of their HTTP/2 stream, since they may remain in the connection's queue.

import NIOCore

/// Counts the unread response bytes of one connection. Confined to its event loop.
protocol ResponseAccounting: AnyObject {
  /// Counts response bytes that wait for the client to read.
  func addUnreadBytes(_ bytes: Int)
  /// Releases response bytes whose write completed.
  func removeUnreadBytes(_ bytes: Int)
  /// Changes whenever a part of any response on the connection was written to the socket.
  var writtenPartCount: Int { get }
  /// The time within which the client has to read a part of a response.
  var responseTimeout: TimeAmount { get }
}

/// A response whose parts are being written. Confined to its event loop.
final class ResponseDelivery {
  /// The size of one part in bytes. Parts are small, so that the progress of a slow client is noticed.
  private static let partBytes = 64 << 10

  private let channel: any Channel
  /// The channel of the connection if `channel` is an HTTP/2 stream.
  private let parent: (any Channel)?
  private let connection: any ResponseAccounting
  private var pendingWriteCount = 0
  private var hasProgressed = false
  /// The connection's `writtenPartCount` when the timeout started.
  private var initialWrittenPartCount = 0
  private var timeout: Scheduled<Void>?

  init(_ channel: any Channel, isStream: Bool, _ connection: any ResponseAccounting) {
    self.channel = channel
    // The parent of an accepted socket is the listening socket.
    parent = isStream ? channel.parent : nil
    self.connection = connection
  }

  /// Splits a body into the parts that are written.
  static func parts(of body: ByteBuffer) -> [ByteBuffer] {
    var (rest, parts) = (body, [ByteBuffer]())
    while let part = rest.readSlice(length: min(partBytes, rest.readableBytes)), part.readableBytes > 0 {
      parts.append(part)
    }
    return parts
  }

  /// Counts one write until it completes. Call it before the flush.
  func track(_ bytes: Int, _ write: EventLoopFuture<Void>) {
    pendingWriteCount += 1
    connection.addUnreadBytes(bytes)
    write.assumeIsolated().whenComplete { _ in
      self.connection.removeUnreadBytes(bytes)
      self.pendingWriteCount -= 1
      precondition(self.pendingWriteCount >= 0, "invariant: a write completes once")
      self.hasProgressed = true
      guard self.pendingWriteCount == 0 else { return }
      self.timeout?.cancel()
      self.timeout = nil
    }
  }

  /// Starts the timeout of the parts that the flush did not write, unless it runs already.
  func startTimeout() {
    guard pendingWriteCount > 0, timeout == nil else { return }
    hasProgressed = false
    initialWrittenPartCount = connection.writtenPartCount
    let this = NIOLoopBound(self, eventLoop: channel.eventLoop)
    timeout = channel.eventLoop.scheduleTask(in: connection.responseTimeout) { this.value.timedOut() }
  }

  private func timedOut() {
    timeout = nil
    guard pendingWriteCount > 0 else { return }
    if hasProgressed { return startTimeout() }
    guard let parent else { return channel.close(promise: nil) }
    if channel.isActive, parent.isWritable {
      // The connection can write, so the flow-control window of this stream blocks the response. Only the stream is
      // closed.
      channel.close(promise: nil)
    } else if connection.writtenPartCount == initialWrittenPartCount {
      return parent.close(promise: nil)
    }
    startTimeout()
  }
}
