// The move of a session from polls to a WebSocket, which keeps the order both ways: what the client sends on the
// WebSocket waits until it has said on a poll that nothing more comes that way, and the server's last batch says the
// same before anything is told on the WebSocket.

import NIOCore
import RealtimeEngine
import RealtimeWire

extension LongPollSession {
  /// How far the move has come.
  enum Upgrade {
    case none
    /// The WebSocket is there; what came on it waits for the end of what comes by polls.
    case offered(SocketRelay.Handle, waiting: [SocketRelay.Request])
    /// Messages go both ways on the WebSocket.
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
    /// Messages that leave with the next flush.
    var messages: [ByteBuffer] = []
    /// For each request that came on the WebSocket and is not acknowledged to it, how many answers it waits for.
    var marks = CircularBuffer<Int>()

    init(_ socket: SocketRelay.Handle) { self.socket = socket }
  }

  /// Offers a WebSocket to go on with; false if the session cannot move there.
  func offer(_ socket: SocketRelay.Handle) -> Bool {
    guard !hasEnded, !isClosing, case .none = upgrade else { return false }
    upgrade = .offered(socket, waiting: [])
    return true
  }

  /// Takes a request that came on the WebSocket.
  func receive(_ request: SocketRelay.Request) {
    switch upgrade {
    case .none: break
    case .offered(let socket, var waiting):
      // Taken out, so that it is not copied.
      upgrade = .none
      waiting.append(request)
      upgrade = .offered(socket, waiting: waiting)
    case .done(let moved):
      perform(request, moved)
      socketFlush()
      acknowledge()
    }
  }

  /// A WebSocket has ended. Before anything depends on it the session goes on with polls; one that was refused is none of
  /// the session's.
  func socketEnded(_ socket: SocketRelay.ID) {
    guard upgrade.socket?.id == socket else { return }
    switch upgrade {
    case .none: break
    case .offered(_, let waiting) where waiting.isEmpty: upgrade = .none
    case .offered, .done: end()
    }
  }

  /// The client sends nothing more by polls: what it sent on the WebSocket is taken now, and what it is told goes there.
  func moveToSocket() {
    guard case .offered(let socket, let waiting) = upgrade else { return }
    write(ByteBuffer(bytes: ServerControl.endOfTransmission.json()), counted: false)
    // The poll that brought the message is held, so that the last batch leaves now. Polls still held after it are
    // released late: an answer that overtakes the last batch would end polling before that is heard.
    answerLast()
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
    case .malformed(let error): refuse(error.reason, code: error.closeCode)
    }
    moved.marks.append(session.submitted)
  }

  func socketWrite(_ message: ByteBuffer) {
    if case .done(let moved) = upgrade { moved.messages.append(message) }
  }

  func socketFlush() {
    guard case .done(let moved) = upgrade, !moved.messages.isEmpty else { return }
    moved.socket.deliver(moved.messages)
    moved.messages = []
  }

  /// Tells the WebSocket how many of its requests were answered.
  func acknowledge() {
    guard case .done(let moved) = upgrade else { return }
    var count = 0
    while let mark = moved.marks.first, mark <= session.answered {
      moved.marks.removeFirst()
      count += 1
    }
    if count > 0 { moved.socket.acknowledge(count) }
  }
}
