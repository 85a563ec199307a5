// Handles the listens of a database: observers, synchronized queries, and single reads.

import Dispatch
import FirebaseCore
import RealtimeModel

extension Repository {
  private func tree(for path: Path) -> SyncTree {
    path.first?.text == ".info" ? information : tree
  }

  func add(_ observer: Observer) {
    observers[observer.registration.id] = observer
    raise(tree(for: observer.path).add(observer.registration, at: observer.path, query: observer.query))
  }

  func remove(_ registration: ObserverRegistration?, at path: Path, query: QuerySpec) {
    if let registration {
      guard let observer = observers[registration.id], observer.path == path,
        query.isDefault || observer.query == query
      else { return }
      observers[registration.id] = nil
    } else {
      let removedObservers = observers.values.filter {
        $0.path == path && (query.isDefault || $0.query == query)
      }
      for observer in removedObservers { observers[observer.registration.id] = nil }
      for observer in removedObservers {
        raise(tree(for: path).remove(observer.registration, at: path, query: observer.query))
      }
      return
    }
    raise(tree(for: path).remove(registration, at: path, query: query))
  }

  func keepSynced(_ isKept: Bool, at path: Path, query: QuerySpec, id: UInt) {
    let keptQuery = KeptQuery(path: path, query: query)
    if isKept {
      guard keptSynced[keptQuery] == nil else { return }
      let registration = ObserverRegistration(id: id, interest: [])
      keptSynced[keptQuery] = registration
      raise(tree.add(registration, at: path, query: query))
    } else if let registration = keptSynced.removeValue(forKey: keptQuery) {
      raise(tree.remove(registration, at: path, query: query))
    }
  }

  // MARK: Reading once

  /// The maximum time for which a read waits for a connection.
  static let getTimeout = DispatchTimeInterval.seconds(3)

  func get(
    at path: Path, query: QuerySpec, completion: @escaping @Sendable (Result<Node, RealtimeError>) -> Void
  ) {
    if let node = tree(for: path).completeNode(at: path, query: query) { return completion(.success(node)) }
    if path.first?.text == ".info" {
      return completion(.success(informationNode.descendant(path)))
    }
    let id = makeIdentifier()
    gets[id] = PendingGet(path: path, query: query, completion: completion)
    connection.get(id, at: path, query: query)
    Repository.queue.asyncAfter(deadline: .now() + Repository.getTimeout) { [weak self] in
      guard let self, self.gets[id] != nil else { return }
      self.gets[id]?.isOverdue = true
      if !self.connection.isConnected { self.failGet(id) }
      self.flush()
    }
  }

  /// Completes a read to which no server responds: with the stored data if it is complete, otherwise with an
  /// error.
  func failGet(_ id: Int) {
    guard let get = gets.removeValue(forKey: id) else { return }
    connection.cancelGet(id)
    let cached = storage.load(get.query, at: get.path)
    if cached.isComplete || !cached.node.isEmpty {
      get.completion(.success(tree.view(over: cached.node, at: get.path, query: get.query)))
    } else {
      get.completion(.failure(RealtimeError(.init(rawValue: "offline"), "Client is offline.")))
    }
  }

  func getAnswered(_ id: Int, _ result: Result<Node, RealtimeError>) {
    guard let get = gets.removeValue(forKey: id) else { return }
    switch result {
    case .failure: get.completion(result)
    case .success(let node):
      storage.storeUnobserved(node, at: get.path, query: get.query)
      if get.query.showsAll {
        raiseServerEvents(at: get.path, tree.applyServerOverwrite(at: get.path, node))
      } else if let tag = tree.listen(at: get.path, query: get.query).tag {
        // The response contains only the query's window, so it must not be stored as the complete location.
        raiseServerEvents(at: get.path, tree.applyServerOverwrite(at: get.path, node, tag: tag))
      }
      get.completion(.success(tree.view(over: node, at: get.path, query: get.query)))
    }
  }
}
