// What the engine knows of one connection. Three places look at it, each at a part of its own: the endpoint's threads
// at `closed`, the sequencer at `session`, the fan-out stage at `output`.

import Locking
import OrderedStore
import RealtimeModel

/// A listen's name on its connection: its path, and the client's tag if it is a filtered query.
struct ListenName: Hashable, Sendable {
  let path: Path
  let tag: Int64?
}

/// One connection's state.
///
/// `@unchecked Sendable`: `closed` is guarded; `session` is touched in sequenced bodies only, which run one at a time, and by
/// the pump while none runs; `output` by the fan-out stage only, which is one task.
final class ConnectionState: @unchecked Sendable {
  /// What the sequencer knows.
  struct Session {
    var caller: Caller
    /// The listens that stand, for deciding them again.
    var listens: [ListenName: QuerySpec] = [:]
    /// Whether rows for the session's end exist.
    var hasDisconnectRows = false
    /// What of them will be written.
    var registered = DisconnectCost()
    /// Whether the session has ended; whatever it still asks is ignored.
    var hasEnded = false
  }

  /// What the fan-out stage knows.
  struct Output {
    var listeners: [ListenName: Listener] = [:]
    var defaults = DefaultListens()
    var pending: [RealtimeOutput] = []
    var hasEnded = false
  }

  let name: String
  let sink: any RealtimeSink
  var session: Session
  var output = Output()
  private let closed = Guarded(false)

  init(name: String, caller: Caller, sink: any RealtimeSink) {
    self.name = name
    self.sink = sink
    session = Session(caller: caller)
  }

  /// Whether the endpoint has closed the connection.
  var isClosed: Bool { closed.withLock { $0 } }

  /// Marks the connection closed by the endpoint; false if it was already.
  func markClosed() -> Bool {
    closed.withLock { closed in
      defer { closed = true }
      return !closed
    }
  }
}
