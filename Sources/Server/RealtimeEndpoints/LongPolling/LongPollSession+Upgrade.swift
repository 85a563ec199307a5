// The upgrade of a session moves it from long polling to a WebSocket, and keeps the order of messages in both
// directions.
//
// From the client: requests on the WebSocket wait until a poll announces that no more polls with requests
// follow. To the client: the last batch of a poll announces that no more batches follow. It precedes the
// first message on the WebSocket.

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
    /// The messages that the next flush sends.
    var messages: [ByteBuffer] = []
    /// The session reports to the WebSocket which of its requests have responses. For each unreported request, this is
    /// the number of the session's responses after which the request has its response.
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
      // This removes the second reference to the array, so that `append` does not copy it.
      upgrade = .none
      waiting.append(request)
      upgrade = .offered(socket, waiting: waiting)
    case .done(let moved):
      perform(request, moved)
      socketFlush()
      acknowledge()
    }
  }

  /// Handles the end of a WebSocket. If the WebSocket was offered but has sent no request, the session
  /// continues with long polling. If the session had rejected the WebSocket, nothing changes. Otherwise the
  /// session ends.
  func socketEnded(_ socket: SocketRelay.ID) {
    guard upgrade.socket?.id == socket else { return }
    switch upgrade {
    case .none: break
    case .offered(_, let waiting) where waiting.isEmpty: upgrade = .none
    case .offered, .done: end()
    }
  }

  /// Completes the move after the client's last poll. Performs the waiting requests, and sends all further
  /// messages on the WebSocket.
  func completeUpgrade() {
    guard case .offered(let socket, let waiting) = upgrade else { return }
    write(ByteBuffer(bytes: ServerControl.endOfTransmission.json()), counted: false)
    // The poll with the client's announcement is held, so the last batch answers it now. Other held polls are
    // answered only when they expire. If such an answer overtook the last batch, the client would stop
    // polling before the last batch arrives.
    respondWithLastBatch()
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
