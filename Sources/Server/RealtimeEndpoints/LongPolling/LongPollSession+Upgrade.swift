// Moves a session from long polling to a WebSocket and keeps the order of messages both ways.
//
// Requests on the WebSocket wait until the client has announced, on a poll, the end of its polls. The
// server's last batch announces its end before the first message on the WebSocket.

import NIOCore
import RealtimeEngine
import RealtimeWire

extension LongPollSession {
  /// The progress of the move.
  enum Upgrade {
    case none
    /// The WebSocket is open. Its requests wait for the end of the polls.
    case offered(SocketRelay.Handle, waiting: [SocketRelay.Request])
    /// All messages use the WebSocket.
    case done(Moved)

    var socket: SocketRelay.Handle? {
      switch self {
      case .none: nil
      case .offered(let socket, _): socket
      case .done(let moved): moved.socket
      }
    }
  }

  /// A session on its WebSocket.
  final class Moved {
    let socket: SocketRelay.Handle
    /// The messages that leave with the next flush.
    var messages: [ByteBuffer] = []
    /// For each unacknowledged request of the WebSocket, the number of responses after which it is
    /// acknowledged.
    var responseMarks = CircularBuffer<Int>()

    init(_ socket: SocketRelay.Handle) { self.socket = socket }
  }

  /// Offers a WebSocket to continue on. Returns whether the session can move there.
  func offer(_ socket: SocketRelay.Handle) -> Bool {
    guard !hasEnded, !isClosing, case .none = upgrade else { return false }
    upgrade = .offered(socket, waiting: [])
    return true
  }

  /// Handles a request that arrived on the WebSocket.
  func receive(_ request: SocketRelay.Request) {
    switch upgrade {
    case .none: break
    case .offered(let socket, var waiting):
      // Taken out, so that the array is not copied.
      upgrade = .none
      waiting.append(request)
      upgrade = .offered(socket, waiting: waiting)
    case .done(let moved):
      perform(request, moved)
      socketFlush()
      acknowledge()
    }
  }

  /// Handles the end of a WebSocket. An unused offer is dropped and the session keeps polling. A rejected
  /// WebSocket has no effect.
  func socketEnded(_ socket: SocketRelay.ID) {
    guard upgrade.socket?.id == socket else { return }
    switch upgrade {
    case .none: break
    case .offered(_, let waiting) where waiting.isEmpty: upgrade = .none
    case .offered, .done: end()
    }
  }

  /// Completes the move after the client's last poll: performs the waiting requests, and directs messages to
  /// the WebSocket.
  func completeUpgrade() {
    guard case .offered(let socket, let waiting) = upgrade else { return }
    write(ByteBuffer(bytes: ServerControl.endOfTransmission.json()), counted: false)
    // The poll that brought the message is held, so the last batch leaves now. Polls still held after it are
    // released late: a response that overtakes the last batch would end polling before that arrives.
    answerWithLastBatch()
    let moved = Moved(socket)
    upgrade = .done(moved)
    endpoint.longPolls.retire(self)
    for request in waiting { perform(request, moved) }
    socketFlush()
    acknowledge()
  }

  private func perform(_ request: SocketRelay.Request, _ moved: Moved) {
    if hasEnded { return }
    switch request {
    case .request(let request, let size): session.perform(request, size: size)
    case .oversized(let request): session.receiveOversized(request: request)
    case .malformed(let error): reject(error.reason, code: error.closeCode)
    }
    moved.responseMarks.append(session.submittedCount)
  }

  func socketWrite(_ message: ByteBuffer) {
    if case .done(let moved) = upgrade { moved.messages.append(message) }
  }

  func socketFlush() {
    guard case .done(let moved) = upgrade, !moved.messages.isEmpty else { return }
    moved.socket.deliver(moved.messages)
    moved.messages = []
  }

  /// Reports to the WebSocket how many of its requests have their response.
  func acknowledge() {
    guard case .done(let moved) = upgrade else { return }
    var count = 0
    while let mark = moved.responseMarks.first, mark <= session.answeredCount {
      moved.responseMarks.removeFirst()
      count += 1
    }
    if count > 0 { moved.socket.acknowledge(count) }
  }
}
