// One operation on its way to the sequencer, and who is to be told the outcome.

import RealtimeModel

/// A write as submitted: paths may end in `.priority`, values may be deferred.
enum Write: Sendable {
  case set(Path, Node)
  case update(Path, [(Path, Node)])
}

/// An operation and where its answer goes.
struct Operation: Sendable {
  struct Listen: Sendable {
    let path: Path
    let query: QuerySpec
    let tag: Int64?
    let hash: String?
    let compoundHash: CompoundHash?
  }

  enum Action: Sendable {
    case write(Write, hash: String?)
    case get(Path, QuerySpec)
    case getShallow(Path, QuerySpec)
    case listen(Listen)
    case unlisten(Path, tag: Int64?)
    case onDisconnect(Write)
    case cancelOnDisconnect(Path)
    case authenticate(Caller)
    case close
    /// Fires what a session registered for its end, whether its connection still stands or not.
    case takeOver(session: String)
  }

  enum Origin: Sendable {
    /// A connection, and the number it wants the answer under.
    case connection(ConnectionState, request: Int64?)
    /// A call outside any connection.
    case call(Caller, @Sendable (Result<CallResult, RealtimeError>) -> Void)
  }

  enum CallResult: Sendable {
    case written(Node)
    case stale(Node)
    case value(Node)
    case shallow(ShallowNode)
  }

  let action: Action
  let origin: Origin

  init(_ action: Action, from origin: Origin) {
    self.action = action
    self.origin = origin
  }

  /// An estimate of the room its rows and log record take, in bytes, for cutting batches.
  var weight: Int {
    switch action {
    case .write(.set(_, let node), _), .onDisconnect(.set(_, let node)): 256 + node.estimatedSize
    case .write(.update(_, let changes), _), .onDisconnect(.update(_, let changes)):
      changes.reduce(256) { $0 + 128 + $1.1.estimatedSize }
    default: 64
    }
  }
}
