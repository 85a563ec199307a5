// The registry of the long-polling sessions of an endpoint. Polls of one session may arrive on any event
// loop, and each loop finds the session here.
//
// Invariant: a session is registered from its start to its end. The number of sessions never exceeds the
// limit.

import NIOConcurrencyHelpers
import NIOCore

final class LongPollSessions: Sendable {
  /// A handle on a session for other event loops.
  struct Handle: Sendable {
    private let eventLoop: any EventLoop
    private let session: NIOLoopBound<LongPollSession>

    fileprivate init(_ session: LongPollSession) {
      eventLoop = session.eventLoop
      self.session = NIOLoopBound(session, eventLoop: session.eventLoop)
    }

    /// Runs a closure on the session's event loop, in the order of the calls.
    func run(_ body: @escaping @Sendable (LongPollSession) -> Void) {
      eventLoop.execute { body(session.value) }
    }
  }

  private struct State {
    var byID: [String: Handle] = [:]
    var byName: [String: Handle] = [:]
  }

  private let limit: Int
  private let state = NIOLockedValueBox(State())

  init(limit: Int) { self.limit = limit }

  /// Registers a session. Returns false if the limit is reached.
  func add(_ session: LongPollSession) -> Bool {
    let handle = Handle(session)
    let (id, name) = (session.id, session.name)
    return state.withLockedValue { state in
      guard state.byID.count < limit else { return false }
      state.byID[id] = handle
      state.byName[name] = handle
      return true
    }
  }

  /// Returns the session whose polls contain this ID.
  func session(id: String) -> Handle? { state.withLockedValue { $0.byID[id] } }

  /// Returns the session with this name in the engine, unless it has moved to a WebSocket.
  func session(name: String) -> Handle? { state.withLockedValue { $0.byName[name] } }

  /// Removes the name of a session that has moved to a WebSocket, so that no second WebSocket can continue
  /// it. Polls still find the session by its ID.
  func retire(_ session: LongPollSession) {
    let name = session.name
    state.withLockedValue { $0.byName[name] = nil }
  }

  /// Removes a session.
  func remove(_ session: LongPollSession) {
    let (id, name) = (session.id, session.name)
    state.withLockedValue { state in
      state.byID[id] = nil
      state.byName[name] = nil
    }
  }
}
