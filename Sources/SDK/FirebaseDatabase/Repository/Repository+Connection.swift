// Handles the events that the connection reports.

import FirebaseCore
import RealtimeModel
import RealtimeWire

extension Repository {
  func handle(_ event: ConnectionEvent) {
    switch event {
    case .connected(let time):
      serverTimeArrived(time)
      updateInformation("serverTimeOffset", .leaf(.int(serverTimeOffset)))
      updateInformation("connected", .leaf(.bool(true)))
      sendReadyTransactions()
    case .authenticated(let isAuthenticated):
      updateInformation("authenticated", .leaf(.bool(isAuthenticated)))
    case .disconnected:
      updateInformation("connected", .leaf(.bool(false)))
      runDisconnectOperations()
      for (id, get) in gets.sorted(by: { $0.key < $1.key }) where get.isOverdue { failGet(id) }
    case .push(let push): handle(push)
    case .listenAnswered(let listen, let warnings, let error): listenAnswered(listen, warnings, error)
    case .writeAnswered(let id, let error):
      // The write is removed immediately. Otherwise, if the process is killed, the next run would send it
      // again.
      if !transactions.isSent(id) { storage.remove(id) }
      if connection.hasUnansweredListens {
        // The server's data with the write may arrive later. If the pending write were removed now, observers
        // would see the old value.
        delayedWriteResponses.append((id, error))
        // The value is stored, because only the cache has it if the process is killed.
        if error == nil { tree.storeUnobservedWrite(id) }
      } else {
        writeAnswered(id, error)
      }
    case .disconnectOperationAnswered(let operation, let error): disconnectOperationAnswered(operation, error)
    case .getAnswered(let id, let result): getAnswered(id, result)
    case .logMessage(let isError, let text): log(isError ? .error : .notice, text)
    }
  }

  private func listenAnswered(_ listen: Listen, _ warnings: [String], _ error: RealtimeError?) {
    if let error {
      log(.warning, "Listener at \(listen.path.absolute) failed: \(error.status.rawValue)")
      cancel(listen, error)
      rerunTransactions(at: listen.path)
    } else {
      if warnings.contains("no_index") {
        log(
          .warning,
          "Using an unspecified index. Your data will be downloaded and filtered on the client. Consider adding "
            + "\".indexOn\": \"\(listen.query.ordering.wireText)\" at \(listen.path.absolute) to your security "
            + "rules for better performance")
      }
      raiseServerEvents(at: listen.path, tree.applyListenComplete(listen))
    }
  }

  /// Removes the observers of a listen that the server has ended.
  private func cancel(_ listen: Listen, _ error: RealtimeError) {
    raise(tree.cancel(listen, error: error))
    // Removes the transactions' observer too, so that the next transaction adds a new one.
    if listen.query.isDefault { transactions.watchers[listen.path] = nil }
  }

  func handleDelayedWriteResponses() {
    let responses = delayedWriteResponses
    delayedWriteResponses = []
    for (id, error) in responses { writeAnswered(id, error) }
  }

  private func handle(_ push: ServerPush) {
    switch push {
    case .data(let path, let node, let tag):
      raiseServerEvents(at: path, tree.applyServerOverwrite(at: path, node, tag: tag.map { Int($0) }))
    case .merge(let path, let children, let tag):
      guard !children.isEmpty else { return }
      raiseServerEvents(at: path, tree.applyServerMerge(at: path, children, tag: tag.map { Int($0) }))
    case .cancel(let path, let queryText):
      for listen in tree.listens(at: path) where listen.isCancelled(by: queryText) {
        cancel(listen, .permissionDenied)
      }
      rerunTransactions(at: path)
    case .rangeMerge: break  // The connection has applied it and reports the complete value.
    case .authRevoked, .appCheckRevoked: break  // The connection handles both.
    case .securityDebug(let text): log(.info, text)
    case .unknown(let action): log(.debug, "Ignored an unknown push '\(action)'")
    }
  }

  /// Raises the events of new server data, and reruns the transactions that the data affects.
  func raiseServerEvents(at path: Path, _ events: [DataEvent]) {
    raise(events)
    if !events.isEmpty { rerunTransactions(at: path) }
  }

  // MARK: The client's `.info` tree

  func updateInformation(_ name: String, _ node: Node) {
    raise(information.applyServerOverwrite(at: Path(keys: [".info", ChildKey(name)]), node))
    informationNode = informationNode.setting(Path(keys: [".info", ChildKey(name)]), to: node)
  }

  func performInformation(_ action: ListenAction) {
    guard case .start(let listen) = action else { return }
    let node = informationNode.descendant(listen.path)
    guard !node.isEmpty else { return }
    raise(information.applyServerOverwrite(at: listen.path, node, tag: listen.tag))
    raise(information.applyListenComplete(listen))
  }
}
