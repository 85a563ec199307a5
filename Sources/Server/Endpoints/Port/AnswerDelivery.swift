// The way of one answer from this side's memory to its peer: counted against its connection until it was flushed, and
// given up if the peer reads nothing of it for too long.
//
// Invariant: what was counted is given back when its writes are over, and not before: a stream of HTTP/2 that is reset
// may leave bytes in the queue of its connection.

import NIOCore

/// What counts the answers that wait for one connection's peer; confined to its event loop.
protocol AnswerAccount: AnyObject {
  /// Accounts for bytes of answers that begin to wait for the peer.
  func queue(_ bytes: Int)
  /// Accounts for bytes of answers that wait no more.
  func unqueue(_ bytes: Int)
  /// Changes whenever the peer has taken a piece of any answer.
  var moves: Int { get }
  /// How long the peer may take nothing of an answer.
  var answerTimeout: TimeAmount { get }
}

/// An answer whose pieces are being written; confined to its event loop.
final class AnswerDelivery {
  /// Pieces are small enough that a slow reader is seen to read.
  private static let pieceBytes = 64 << 10

  private let channel: any Channel
  /// The channel of the whole connection, where `channel` is one stream of it.
  private let parent: (any Channel)?
  private let connection: any AnswerAccount
  private var pending = 0
  private var hasMoved = false
  private var movesBefore = 0
  private var deadline: Scheduled<Void>?

  init(_ channel: any Channel, isStream: Bool, _ connection: any AnswerAccount) {
    self.channel = channel
    // The parent of an accepted socket is the socket that listens.
    parent = isStream ? channel.parent : nil
    self.connection = connection
  }

  /// The pieces in which a body is written.
  static func pieces(of body: ByteBuffer) -> [ByteBuffer] {
    var (rest, pieces) = (body, [ByteBuffer]())
    while let piece = rest.readSlice(length: min(pieceBytes, rest.readableBytes)), piece.readableBytes > 0 {
      pieces.append(piece)
    }
    return pieces
  }

  /// Counts one write until it is over; to be called before it is flushed.
  func count(_ bytes: Int, _ write: EventLoopFuture<Void>) {
    pending += 1
    connection.queue(bytes)
    write.assumeIsolated().whenComplete { _ in
      self.connection.unqueue(bytes)
      self.pending -= 1
      self.hasMoved = true
      guard self.pending == 0 else { return }
      self.deadline?.cancel()
      self.deadline = nil
    }
  }

  /// Begins to watch what the flush has left, unless it watches already.
  func watch() {
    guard pending > 0, deadline == nil else { return }
    hasMoved = false
    movesBefore = connection.moves
    let this = NIOLoopBound(self, eventLoop: channel.eventLoop)
    deadline = channel.eventLoop.scheduleTask(in: connection.answerTimeout) { this.value.isDue() }
  }

  private func isDue() {
    deadline = nil
    guard pending > 0 else { return }
    if hasMoved { return watch() }
    guard let parent else { return channel.close(promise: nil) }
    if channel.isActive, parent.isWritable {
      // The stream's own window holds it up; the rest of the connection need not know.
      channel.close(promise: nil)
    } else if connection.moves == movesBefore {
      return parent.close(promise: nil)
    }
    watch()
  }
}
