// Handles the messages that the connection receives from the server.

import FirebaseCore
import RealtimeModel
import RealtimeWire

extension ServerConnection {
  mutating func received(_ message: ServerMessage, on generation: Int, at now: Int64) {
    guard generation == self.generation else { return }
    switch message {
    case .control(let control): received(control, at: now)
    case .response(let response): received(response, at: now)
    case .push(.cancel(let path, let queryText)):
      forgetCancelled(path, queryText)
      actions.append(.report(.push(.cancel(path: path, queryText: queryText))))
    case .push(.rangeMerge(let path, let ranges, let tag)): received(ranges, at: path, tag.map { Int($0) })
    case .push(.authRevoked(let error)): authenticationFailed(error, at: now)
    case .push(.appCheckRevoked(let error)): appCheckFailed(error)
    case .push(let push): actions.append(.report(.push(push)))
    }
  }

  /// Applies range merges to the value whose compound hash the listen sent. The cached value may differ from
  /// it, because other data may have arrived since then.
  private mutating func received(_ ranges: [RangeMergeFields], at path: Path, _ tag: Int?) {
    let target = ListenTarget(path: path, tag: tag)
    guard let sent = sentListens[target]?.first, let hashedNode = sent.hashedNode else {
      let text = "Ignored a range merge at \(path.absolute) that no listen had requested"
      return actions.append(.report(.logMessage(isError: false, text)))
    }
    let merged = ranges.reduce(hashedNode) { node, range in
      node.applying(RangeMerge(start: range.start, end: range.end, updates: range.data))
    }
    sentListens[target]?[0].hashedNode = merged
    // The response belongs to a cancelled listen. The data of the listen that replaced it follows.
    guard unansweredListens[sent.listen] == sent.number else { return }
    actions.append(.report(.push(.data(path: path, data: merged, tag: tag.map(Int64.init)))))
  }

  private mutating func received(_ control: ServerControl, at now: Int64) {
    switch control {
    case .hello(let hello):
      guard state == .connecting else { return }
      lastSession = hello.sessionID
      // The client connects to this host from now on, until the host does not respond.
      if !hello.host.isEmpty { host = hello.host }
      helloReceived(serverTime: hello.timestamp, at: now)
    case .reset(let host):
      self.host = host
      // If the server resets the connection before its hello, the back-off continues. Otherwise the client
      // could reconnect in a loop.
      if state != .connecting { backoff.reset() }
      actions.append(.close)
      closed(at: now)
    case .shutdown(let reason):
      actions.append(
        .report(.logMessage(isError: true, "The server ended the connection permanently: \(reason)")))
      interrupt(.serverKill, at: now)
    case .error(let text): actions.append(.report(.logMessage(isError: true, "Server error: \(text)")))
    case .pong, .switchAcknowledged, .endOfTransmission, .unknown: break
    }
  }

  /// Ends a request that cannot be sent, with an error.
  mutating func failRequest(_ number: Int64, _ error: RealtimeError) {
    received(ServerResponse(number, error), at: 0)
  }

  private mutating func received(_ response: ServerResponse, at now: Int64) {
    guard let pending = requests.removeValue(forKey: response.number) else { return }
    let error = response.error
    switch pending {
    case .listen(let listen):
      let target = ListenTarget(path: listen.path, tag: listen.tag)
      sentListens[target]?.removeAll { $0.number == response.number }
      if sentListens[target]?.isEmpty == true { sentListens[target] = nil }
      guard unansweredListens[listen] == response.number else { return }
      unansweredListens[listen] = nil
      if error != nil { listens[listen] = nil }
      let warnings = ServerConnection.warnings(in: response.payload)
      actions.append(.report(.listenAnswered(listen, warnings: warnings, error)))
    case .write(let id):
      guard writes.remove(id) != nil else { return }
      actions.append(.report(.writeAnswered(id, error)))
    case .get(let id):
      guard gets.remove(id) != nil else { return }
      actions.append(.report(.getAnswered(id, error.map { .failure($0) } ?? .success(response.payload))))
    case .disconnectOperation(let id):
      guard let index = disconnectOperations.firstIndex(where: { $0.value.id == id }) else { return }
      let operation = disconnectOperations.remove(at: index).value
      actions.append(.report(.disconnectOperationAnswered(operation, error)))
    case .authentication: authenticationAnswered(response.number, error, at: now)
    case .other: break
    }
  }

  private static func warnings(in payload: Node) -> [String] {
    var warnings: [String] = []
    payload.child("w").forEachChild { _, node in
      if case .string(let text)? = node.leafValue { warnings.append(text) }
      return true
    }
    return warnings
  }

  private mutating func forgetCancelled(_ path: Path, _ queryText: [UInt8]?) {
    listens = listens.filter { $0.key.path != path || !$0.key.isCancelled(by: queryText) }
    unansweredListens = unansweredListens.filter { listens[$0.key] != nil }
  }
}
