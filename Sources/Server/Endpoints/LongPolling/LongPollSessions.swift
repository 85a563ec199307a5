// All long-polling sessions of an endpoint: any of its event loops finds a session by what its client knows of it.
// Invariant: a session is in here from its start to its end, and as many as the limit says at most.

import NIOConcurrencyHelpers
import NIOCore

final class LongPollSessions: Sendable {
  /// A session as other event loops reach it.
  struct Handle: Sendable {
    private let eventLoop: any EventLoop
    private let session: NIOLoopBound<LongPollSession>

    fileprivate init(_ session: LongPollSession) {
      eventLoop = session.eventLoop
      self.session = NIOLoopBound(session, eventLoop: session.eventLoop)
    }

    /// Does something on the session's event loop, in the order of the calls.
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

  /// Registers a session; false if there are as many as may be.
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

  /// The session that polls by this id.
  func session(id: String) -> Handle? { state.withLockedValue { $0.byID[id] } }

  /// The session of this name in the engine that has not moved to a WebSocket.
  func session(name: String) -> Handle? { state.withLockedValue { $0.byName[name] } }

  /// A session has moved to a WebSocket: no other takes it over, but its polls still find it.
  func retire(_ session: LongPollSession) {
    let name = session.name
    state.withLockedValue { $0.byName[name] = nil }
  }

  /// Forgets a session.
  func remove(_ session: LongPollSession) {
    let (id, name) = (session.id, session.name)
    state.withLockedValue { state in
      state.byID[id] = nil
      state.byName[name] = nil
    }
  }
}
