// Runs the fan-out stage of one database: applies the steps of sequenced operations in order, and sends each
// connection its responses and pushes.
//
// Invariants
//   1. Steps are applied in sequence order, after their commit is durable.
//   2. A connection receives pushes and responses in the order of the steps. When a connection writes, the
//      pushes of that write precede its response.
//   3. All default listens (untagged, of the complete location) that receive the same change share one push
//      object. A connection receives that push once, even if several of its default listens contain the
//      change.
//
// The file also defines the steps that batches pass to the stage, and the outputs that the stage passes to
// endpoints.

package import RealtimeModel

/// Applies fan-out steps. Used by the single task of the stage.
final class FanOut {
  let root = ListenTrie()
  private var pendingConnections: [ConnectionState] = []

  /// Applies the steps of one commit and delivers the outputs.
  func run(_ steps: [FanOutStep]) {
    var calls: [() -> Void] = []
    for step in steps {
      switch step {
      case .write(let changes, let windows):
        WriteFanOut(changes, windows).visit(root) { [self] in enqueue($0, $1) }
      case .fullValue(let path, let node):
        WriteFanOut.promoteToFullValue(path, to: node, in: root) { [self] in enqueue($0, $1) }
      case .answer(.connection(let connection, let request), let answer):
        guard let request else { continue }
        enqueue(connection, .response(request: request, RealtimeResponse(answer)))
      case .answer(.call(_, let completion), let answer): calls.append { completion(answer.callResult) }
      case .listen(let connection, let listen, let node, let prepared, let warnings, let request):
        // A filtered listen of a closed connection still starts. Until the session ends, the executor assumes
        // that this stage keeps the location's children sorted in the listen's order.
        if connection.isClosed, listen.isDefault { continue }
        start(listen, of: connection, on: node, prepared, isIndexed: warnings.isEmpty)
        if let request { enqueue(connection, .response(request: request, .listening(warnings: warnings))) }
      case .unlisten(let connection, let name, let revoked):
        // The listen also ends if its connection is closed, because the executor no longer needs its sort
        // order.
        stop(name, of: connection)
        if let revoked, !connection.isClosed {
          enqueue(connection, .push(RealtimePush(name.path, .cancel(revoked), tag: name.tag)))
        }
      case .authRevoked(let connection, let error):
        if !connection.isClosed { enqueue(connection, .authRevoked(error)) }
      case .end(let connection, let notifiesClient):
        let earlier = connection.output.pending
        end(connection)
        // Outputs that were pending before the end are still delivered.
        if notifiesClient {
          connection.output.pending = earlier + [.ended]
          pendingConnections.append(connection)
        }
      }
    }
    flush()
    for call in calls { call() }
  }

  private func enqueue(_ connection: ConnectionState, _ output: RealtimeOutput) {
    guard !connection.output.hasEnded else { return }
    if connection.output.pending.isEmpty { pendingConnections.append(connection) }
    connection.output.pending.append(output)
  }

  /// Delivers all pending outputs, with one call for each group of connections.
  private func flush() {
    guard !pendingConnections.isEmpty else { return }
    var groups: [(group: any RealtimeSinkGroup, deliveries: [RealtimeDelivery])] = []
    var positions: [ObjectIdentifier: Int] = [:]
    for connection in pendingConnections {
      let outputs = connection.output.pending
      connection.output.pending = []
      guard !outputs.isEmpty else { continue }
      let group = connection.sink.group
      let delivery = RealtimeDelivery(sink: connection.sink, outputs: outputs)
      if let position = positions[ObjectIdentifier(group)] {
        groups[position].deliveries.append(delivery)
      } else {
        positions[ObjectIdentifier(group)] = groups.count
        groups.append((group, [delivery]))
      }
    }
    pendingConnections.removeAll(keepingCapacity: true)
    for (group, deliveries) in groups { group.deliver(deliveries) }
  }

  // MARK: Listens

  private func start(
    _ listen: RealtimeOperation.Listen, of connection: ConnectionState, on node: Node,
    _ prepared: PreparedListen,
    isIndexed: Bool
  ) {
    guard !connection.output.hasEnded else { return }
    let name = ListenName(path: listen.path, tag: listen.tag)
    let replaced = connection.output.listeners[name]
    if replaced?.isDefault == true { stop(name, of: connection) }
    let listener = Listener(connection: connection, name: name, query: listen.query)
    let location = root.location(at: listen.path)
    var push: RealtimePush?
    func notifyOthers(_ listener: Listener, _ body: RealtimePush.Body) {
      enqueue(listener.connection, .push(RealtimePush(listen.path, body, tag: listener.name.tag)))
    }
    if connection.isClosed, !listener.isDefault {
      _ = location.add(listener, on: node, prepared, notifyOthers)
    } else if listener.isDefault {
      location.add(listener)
      push = InitialListenData(listen).push(for: node, prepared.firstPush, shared: &location.valuePush)
    } else {
      let window = location.add(listener, on: node, prepared, notifyOthers)
      var unshared: RealtimePush?
      push = InitialListenData(listen).push(for: window, prepared.firstPush, shared: &unshared)
      // Without an index the client first receives all children and filters them itself. Afterwards it
      // receives only the changes of the query's window (the children that it selects).
      if !isIndexed, !node.isLeaf, case .set? = push?.body {
        push = location.tagged.push(node, at: listen.path, tag: listen.tag)
      }
    }
    connection.output.listeners[name] = listener
    // The replaced listen is removed last, so that a sort order that the new listen also needs is kept.
    if let replaced, !replaced.isDefault { replaced.location?.remove(replaced) }
    if listener.isDefault { connection.output.defaults.insert(location) }
    if let push { enqueue(connection, .push(push)) }
  }

  private func stop(_ name: ListenName, of connection: ConnectionState) {
    guard let listener = connection.output.listeners.removeValue(forKey: name),
      let location = listener.location
    else { return }
    if listener.isDefault { connection.output.defaults.remove(location) }
    location.remove(listener)
  }

  private func end(_ connection: ConnectionState) {
    for listener in connection.output.listeners.values { listener.location?.remove(listener) }
    connection.output.listeners = [:]
    connection.output.defaults = DefaultListens()
    connection.output.pending = []
    connection.output.hasEnded = true
  }
}

extension RealtimeResponse {
  init(_ answer: OperationResult) {
    self =
      switch answer {
      case .written, .done, .shallow, .setting, .rules, .count: .done
      case .stale: .failure(.dataStale)
      case .value(let node): .value(node)
      case .failure(let error): .failure(error)
      }
  }
}

extension OperationResult {
  var callResult: Result<RealtimeOperation.CallResult, RealtimeError> {
    switch self {
    case .written(let node): .success(.written(node))
    case .stale(let node): .success(.stale(node))
    case .value(let node): .success(.value(node))
    case .shallow(let node): .success(.shallow(node))
    case .setting(let string): .success(.setting(string))
    case .rules(let rules): .success(.rules(rules))
    case .count(let count): .success(.count(count))
    case .done: .success(.written(.empty))
    case .failure(let error): .failure(error)
    }
  }
}

// MARK: Steps

/// A location whose value a write replaced.
struct Change: Sendable {
  /// The location; ends in `.priority` if only the priority was replaced.
  let path: Path
  /// The new value.
  let value: Node
  /// The earlier value; nil unless it was known without reading all of it.
  let before: Node?
}

/// A step of the fan-out stage.
enum FanOutStep: Sendable {
  /// A write took effect.
  ///
  /// Its changes are in ascending order of paths, none inside another. Of some locations the stage has only the
  /// children that windows show (see `RowWindowHandler`). For each of these that the write changes, `windows` has the
  /// changes of these children, also of those that enter or leave the windows.
  case write([Change], windows: [Path: [WindowChange]])
  /// The stage had only some children of this location, because its windows were updated from rows. From now on the
  /// stage has the complete value, which this step contains.
  case fullValue(Path, Node)
  /// An operation is answered.
  case answer(RealtimeOperation.Origin, OperationResult)
  /// A listen starts on a location with this value.
  case listen(
    ConnectionState, RealtimeOperation.Listen, Node, PreparedListen, warnings: [String], request: Int64?)
  /// A listen ends. If it was revoked, its client receives the error.
  case unlisten(ConnectionState, ListenName, revoked: RealtimeError?)
  /// The credentials of a connection's caller are no longer valid, for this reason.
  case authRevoked(ConnectionState, RealtimeError)
  /// A connection's session has ended. Its client is notified if another connection ended it.
  case end(ConnectionState, notifiesClient: Bool)
}

/// Results computed from a listen's large value, off the sequencer and the fan-out stage.
struct PreparedListen: Sendable {
  /// The location with its children sorted in the order of the query. It also has the query's window if the
  /// window may be wide or was hashed.
  var location: OrderedLocation?
  /// The first push for the prepared value; the value may have changed since.
  var firstPush: InitialListenData.Prepared?
  /// Whether the value is filtered: it has only the children that some window shows, and later steps report
  /// changes of only these children.
  var isPartial = false
}

/// The result of an operation.
enum OperationResult: Sendable {
  case written(Node?)
  case stale(Node)
  case value(Node)
  case shallow(ShallowNode)
  case setting(String?)
  case rules(RulesFile?)
  case count(Int)
  case done
  case failure(RealtimeError)
}

// MARK: Outputs

/// The endpoint's side of one connection.
package protocol RealtimeSink: AnyObject, Sendable {
  /// The group that delivers to this connection; constant for the connection's lifetime.
  var group: any RealtimeSinkGroup { get }
}

/// A group of connections that receive their outputs in one call, such as the connections of one event loop.
package protocol RealtimeSinkGroup: AnyObject, Sendable {
  /// Delivers outputs to connections of this group. Each database calls this from one task, one call at a
  /// time and in order. The method must be quick and must not block.
  func deliver(_ deliveries: [RealtimeDelivery])
}

/// The next outputs of one connection.
package struct RealtimeDelivery: Sendable {
  /// The connection.
  package let sink: any RealtimeSink
  /// Responses and pushes, in order.
  package let outputs: [RealtimeOutput]
}

/// One output for a connection.
package enum RealtimeOutput: Sendable {
  /// A change for a listen.
  case push(RealtimePush)
  /// The response to a request, with the endpoint's number for it.
  case response(request: Int64, RealtimeResponse)
  /// The credentials of the connection's caller are no longer valid. The connection acts as nobody until it
  /// authenticates again.
  case authRevoked(RealtimeError)
  /// Another connection has ended this session. No output follows, and pending requests are neither performed
  /// nor answered.
  case ended
}

/// The response to a request.
package enum RealtimeResponse: Sendable {
  /// The operation succeeded.
  case done
  /// The listen has started and its data was sent. `warnings` are the protocol's warnings, such as `no_index`.
  case listening(warnings: [String])
  /// The requested value.
  case value(Node)
  /// The operation was rejected.
  case failure(RealtimeError)
}
