// The fan-out stage: carries out, in order, what sequenced operations left, and tells each connection what it is owed.
//
// Invariants
//   1. Steps are carried out in sequence order, after the commit that they belong to is durable.
//   2. A connection is told pushes and answers in that one order: its own write's pushes stand before the answer.
//   3. A change is made into one push object for all default listens that are told the same, and reaches a connection
//      once, however many of its default listens cover it.

import RealtimeModel

/// Carries out steps. Touched by the one task that runs the stage.
final class FanOut {
  let root = ListenTrie()
  private var touched: [ConnectionState] = []

  /// Carries out the steps of one commit and delivers what follows.
  func run(_ steps: [FanOutStep]) {
    var calls: [() -> Void] = []
    for step in steps {
      switch step {
      case .write(let changes, let windows):
        WriteFanOut(changes, windows).visit(root) { [self] in tell($0, $1) }
      case .whole(let path, let node): WriteFanOut.widen(path, to: node, in: root) { [self] in tell($0, $1) }
      case .answer(.connection(let connection, let request), let answer):
        guard let request else { continue }
        tell(connection, .response(request: request, RealtimeResponse(answer)))
      case .answer(.call(_, let completion), let answer): calls.append { completion(answer.callResult) }
      case .listen(let connection, let listen, let node, let prepared, let warnings, let request):
        // Of one with a query the order of its location is counted, until the connection's end: others rely on it.
        if connection.isClosed, listen.isDefault { continue }
        start(listen, of: connection, on: node, prepared, isIndexed: warnings.isEmpty)
        if let request { tell(connection, .response(request: request, .listening(warnings: warnings))) }
      case .unlisten(let connection, let name, let revoked):
        // Of one that is closed, too: others may share what is kept for it, and the sequencer counts on it no more.
        stop(name, of: connection)
        if let revoked, !connection.isClosed {
          tell(connection, .push(RealtimePush(name.path, .cancel(revoked), tag: name.tag)))
        }
      case .end(let connection, let notifiesClient):
        let told = connection.output.pending
        end(connection)
        // What it was told before stands.
        if notifiesClient {
          connection.output.pending = told + [.ended]
          touched.append(connection)
        }
      }
    }
    flush()
    for call in calls { call() }
  }

  private func tell(_ connection: ConnectionState, _ output: RealtimeOutput) {
    guard !connection.output.hasEnded else { return }
    if connection.output.pending.isEmpty { touched.append(connection) }
    connection.output.pending.append(output)
  }

  /// Hands over everything pending, with one call for each group of connections.
  private func flush() {
    guard !touched.isEmpty else { return }
    var groups: [(group: any RealtimeSinkGroup, deliveries: [RealtimeDelivery])] = []
    var positions: [ObjectIdentifier: Int] = [:]
    for connection in touched {
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
    touched.removeAll(keepingCapacity: true)
    for (group, deliveries) in groups { group.deliver(deliveries) }
  }

  // MARK: Listens

  private func start(
    _ listen: RealtimeOperation.Listen, of connection: ConnectionState, on node: Node, _ prepared: PreparedListen,
    isIndexed: Bool
  ) {
    guard !connection.output.hasEnded else { return }
    let name = ListenName(path: listen.path, tag: listen.tag)
    let replaced = connection.output.listeners[name]
    if replaced?.isDefault == true { stop(name, of: connection) }
    let listener = Listener(connection: connection, name: name, query: listen.query)
    let location = root.location(at: listen.path)
    var push: RealtimePush?
    func tellOthers(_ listener: Listener, _ body: RealtimePush.Body) {
      tell(listener.connection, .push(RealtimePush(listen.path, body, tag: listener.name.tag)))
    }
    if connection.isClosed, !listener.isDefault {
      _ = location.add(listener, on: node, prepared, tellOthers)
    } else if listener.isDefault {
      location.add(listener)
      push = ListenAnswer(listen).push(for: node, prepared.firstPush, shared: &location.valuePush)
    } else {
      let window = location.add(listener, on: node, prepared, tellOthers)
      var unshared: RealtimePush?
      push = ListenAnswer(listen).push(for: window, prepared.firstPush, shared: &unshared)
      // Without an index the client chooses from all children; from then on it is told what changes in its window.
      if !isIndexed, !node.isLeaf, case .set? = push?.body {
        push = location.tagged.push(node, at: listen.path, tag: listen.tag)
      }
    }
    connection.output.listeners[name] = listener
    // Only now: the order that it may have been the only one to use is that of the new one.
    if let replaced, !replaced.isDefault { replaced.location?.remove(replaced) }
    if listener.isDefault { connection.output.defaults.insert(location) }
    if let push { tell(connection, .push(push)) }
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
      case .written, .done, .shallow, .text, .rules, .count: .done
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
    case .text(let text): .success(.text(text))
    case .rules(let rules): .success(.rules(rules))
    case .count(let count): .success(.count(count))
    case .done: .success(.written(.empty))
    case .failure(let error): .failure(error)
    }
  }
}
