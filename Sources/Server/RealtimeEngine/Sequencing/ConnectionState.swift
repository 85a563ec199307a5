// Holds the engine's state of one connection. Each part has one user: the endpoint's threads use `endpoint`, the
// executor uses `session`, and the fan-out stage, which sends pushes and responses, uses `output`.

import Access
import Locking
import OrderedStore
import RealtimeModel

/// The identity of a listen on its connection: its path, and the client's tag for a filtered query.
struct ListenName: Hashable, Sendable {
  let path: Path
  let tag: Int64?
}

/// The state of one connection.
///
/// `@unchecked Sendable`: a lock guards `endpoint`. Only batches, which execute one at a time, and the batch
/// loop between them access `session`. Only the single task of the fan-out stage accesses `output`.
final class ConnectionState: @unchecked Sendable {
  /// The executor's state.
  struct Session {
    var caller: Principal
    /// The active listens.
    var listens: [ListenName: OpenListen] = [:]
    /// The caller in the rows with onDisconnect writes of this session; nil if there are none.
    var registeredCaller: Principal?
    /// The expiry of the session's entry in ``SessionExpiries``, in seconds since 1970; nil if it has no entry.
    var scheduledExpiry: Int64?
    /// The cost of performing the registered onDisconnect writes.
    var registeredCost = DisconnectCost()
    /// The number of onDisconnect operations that were registered so far.
    var registrationCount = 0
    /// Whether the session has ended; its later requests are ignored.
    var hasEnded = false
  }

  /// The endpoint's state.
  private struct Endpoint {
    var isClosed = false
    /// The caller of the latest request to authenticate, which may wait for execution.
    var submittedCaller: Principal
  }

  /// The fan-out stage's state.
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
  private let endpoint: Guarded<Endpoint>

  init(name: String, caller: Principal, sink: any RealtimeSink) {
    self.name = name
    self.sink = sink
    session = Session(caller: caller)
    endpoint = Guarded(Endpoint(submittedCaller: caller))
  }

  /// Whether the endpoint has closed the connection.
  var isClosed: Bool { endpoint.withLock { $0.isClosed } }

  /// The caller of the latest request to authenticate, which may wait for execution.
  var submittedCaller: Principal { endpoint.withLock { $0.submittedCaller } }

  /// Records the caller of a request to authenticate, before the request is submitted.
  func recordSubmitted(_ caller: Principal) { endpoint.withLock { $0.submittedCaller = caller } }

  /// Marks the connection as closed by its endpoint. Returns false if it was closed already.
  func markClosed() -> Bool {
    endpoint.withLock { endpoint in
      defer { endpoint.isClosed = true }
      return !endpoint.isClosed
    }
  }
}
