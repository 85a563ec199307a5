// Converts the app's values, and requests writes, transactions and onDisconnect operations from the core, which
// is `Repository`. The callback and async forms of the public methods share these functions.

import FirebaseCore
import Foundation
import RealtimeModel

extension DatabaseReference {
  // MARK: Writes

  /// Runs a conversion of an app's value. A value that cannot be stored stops the program.
  func converted<Value>(_ method: String, _ read: () throws(InvalidValue) -> Value) -> Value {
    PathRules.checkWritable(path, method: method)
    do {
      return try read()
    } catch {
      usageException("InvalidFirebaseData", "(\(method)) \(error.message)")
    }
  }

  func write(_ value: Any?, priority: Any?, _ method: String, _ completion: DatabaseCompletion?) {
    let keys = path.keys.map(\.text)
    let node = converted(method) { () throws(InvalidValue) in
      let node = try ValueReader.node(value, at: keys)
      return priority == nil ? node : node.with(priority: try ValueReader.priority(priority, at: keys))
    }
    let path = path
    let coreCompletion = coreCompletion(completion)
    repository.enqueue { $0.set(node, at: path, completion: coreCompletion) }
  }

  func writePriority(_ priority: Any?, _ method: String, _ completion: DatabaseCompletion?) {
    let node = converted(method) { () throws(InvalidValue) in
      try ValueReader.priority(priority).map { Node.leaf($0.leafValue) } ?? .empty
    }
    let path = path.child(.priority)
    let coreCompletion = coreCompletion(completion)
    repository.enqueue { $0.set(node, at: path, completion: coreCompletion) }
  }

  func update(_ values: [AnyHashable: Any], _ method: String, _ completion: DatabaseCompletion?) {
    let changes = converted(method) { () throws(InvalidValue) in try ValueReader.changes(values) }
    let path = path
    let coreCompletion = coreCompletion(completion)
    repository.enqueue { $0.update(changes, at: path, completion: coreCompletion) }
  }

  /// Converts the app's completion to a completion for the core.
  func coreCompletion(_ completion: DatabaseCompletion?) -> Repository.WriteCompletion {
    guard let completion else { return { _ in } }
    return { [repository] error in
      let cause = error?.asNSError()
      repository.deliver { completion(cause, self) }
    }
  }

  /// Calls a function that takes a completion, and waits until the completion is called.
  func waitForCompletion(_ begin: (@escaping DatabaseCompletion) -> Void) async throws -> DatabaseReference {
    let fallback = RealtimeError.unknownOutcome.asNSError()
    return try await OneShotContinuation<Result<DatabaseReference, any Error>>.wait(
      fallback: .failure(fallback)
    ) {
      continuation in
      begin { error, reference in
        continuation.resume(returning: error.map { .failure($0) } ?? .success(reference))
      }
    }.get()
  }

  // MARK: Transactions

  func enqueueTransaction(
    _ block: @escaping (MutableData) -> TransactionResult, withLocalEvents isVisible: Bool,
    _ completion: @escaping @Sendable ((any Error)?, Bool, DataSnapshot?) -> Void
  ) {
    PathRules.checkWritable(path, method: "runTransactionBlock:")
    // Called only on the core's serial queue.
    nonisolated(unsafe) let block = block
    let (path, key, id) = (path, key, DatabaseQuery.makeHandle())
    repository.enqueue { repository in
      repository.runTransaction(
        at: path, isVisible: isVisible, watcher: id,
        update: { node in
          block(MutableData(node: node, key: key)).node.map { .commit($0) } ?? .abort
        },
        completion: { outcome in
          let error = outcome.error?.asNSError()
          let snapshot = outcome.node.map {
            DataSnapshot(node: $0, path: path, ordering: .priority, repository: repository)
          }
          repository.deliver { completion(error, outcome.isCommitted, snapshot) }
        })
    }
  }

  // MARK: onDisconnect operations

  func onDisconnectSet(
    _ value: Any?, _ priority: Any?, _ method: String, _ completion: DatabaseCompletion?
  ) {
    let node = converted(method) { () throws(InvalidValue) in
      let node = try ValueReader.node(value)
      return priority == nil ? node : node.with(priority: try ValueReader.priority(priority))
    }
    perform(.put(node), method, completion)
  }

  func onDisconnectUpdate(
    _ values: [AnyHashable: Any], _ method: String, _ completion: DatabaseCompletion?
  ) {
    perform(
      .merge(converted(method) { () throws(InvalidValue) in try ValueReader.changes(values) }), method,
      completion
    )
  }

  func perform(
    _ change: DisconnectOperation.Change, _ method: String, _ completion: DatabaseCompletion?
  ) {
    PathRules.checkWritable(path, method: method)
    let path = path
    let coreCompletion = coreCompletion(completion)
    repository.enqueue { $0.perform(change, at: path, completion: coreCompletion) }
  }
}
