// Handles the onDisconnect operations of a database.
//
// Invariant: when this client notices that the connection is lost, it applies the operations that the server
// has accepted to its cache, because the server applies them as well. A location with an increment keeps its
// last known value: the result depends on a value that the client may not know.

import RealtimeModel

extension Repository {
  func perform(_ change: DisconnectOperation.Change, at path: Path, completion: @escaping WriteCompletion) {
    let changes: [(path: Path, node: Node)] =
      switch change {
      case .put(let node): [(path, node)]
      case .merge(let changes): changes.map { (path.appending($0), $1) }
      case .cancel: []
      }
    if let error = Repository.rejection(of: changes) { return completion(error) }
    let operation = DisconnectOperation(id: makeIdentifier(), path: path, change: change)
    disconnectCompletions[operation.id] = completion
    connection.perform(operation)
  }

  func disconnectOperationAnswered(_ operation: DisconnectOperation, _ error: RealtimeError?) {
    if error == nil {
      switch operation.change {
      case .put(let node): disconnectOverlay.write(node, at: operation.path)
      case .merge(let changes): disconnectOverlay.merge(changes, at: operation.path)
      case .cancel: disconnectOverlay.forget(operation.path)
      }
    }
    disconnectCompletions.removeValue(forKey: operation.id)?(error)
  }

  func runDisconnectOperations() {
    let overlay = disconnectOverlay
    disconnectOverlay = WriteOverlay()
    var changes: [(Path, Node)] = []
    overlay.forEach { changes.append(($0, $1)) }
    for (path, node) in changes {
      if !node.containsIncrement {
        raise(tree.applyServerOverwrite(at: path, estimate(of: node, at: path)))
      }
      overrideTransactions(at: [path])
    }
  }
}
