// Writes to a location. Every form applies locally at once and completes when the server has responded. A value that
// cannot be stored stops the program; errors of the server or the network are errors of the completion.

import FirebaseCore
import Foundation
import RealtimeModel

/// Called when a write was answered: an error or nil, and the location that was written.
public typealias DatabaseCompletion = @Sendable ((any Error)?, DatabaseReference) -> Void

extension DatabaseReference {
  /// Replaces the value and drops the priority. Nil and `NSNull` remove the location.
  public func setValue(_ value: Any?) {
    write(value, priority: nil, "setValue:", nil)
  }

  /// Replaces the value and drops the priority.
  ///
  /// - Parameter block: called on the callback queue when the server has answered.
  @preconcurrency
  public func setValue(
    _ value: Any?, withCompletionBlock block: @escaping @Sendable ((any Error)?, DatabaseReference) -> Void
  ) {
    write(value, priority: nil, "setValue:withCompletionBlock:", block)
  }

  /// Replaces the value, drops the priority, and waits for the server's answer.
  ///
  /// - Throws: the server's rejection.
  @discardableResult
  public func setValue(_ value: Any?) async throws -> DatabaseReference {
    try await answer { write(value, priority: nil, "setValue:", $0) }
  }

  /// Replaces value and priority.
  public func setValue(_ value: Any?, andPriority priority: Any?) {
    write(value, priority: priority, "setValue:andPriority:", nil)
  }

  /// Replaces value and priority.
  ///
  /// - Parameter block: called on the callback queue when the server has answered.
  @preconcurrency
  public func setValue(
    _ value: Any?, andPriority priority: Any?,
    withCompletionBlock block: @escaping @Sendable ((any Error)?, DatabaseReference) -> Void
  ) {
    write(value, priority: priority, "setValue:andPriority:withCompletionBlock:", block)
  }

  /// Replaces value and priority, and waits for the server's answer.
  ///
  /// - Throws: the server's rejection.
  @discardableResult
  public func setValue(_ value: Any?, andPriority priority: Any?) async throws -> DatabaseReference {
    try await answer { write(value, priority: priority, "setValue:andPriority:", $0) }
  }

  /// Removes the location and everything below it.
  public func removeValue() {
    write(nil, priority: nil, "removeValue", nil)
  }

  /// Removes the location and everything below it.
  ///
  /// - Parameter block: called on the callback queue when the server has answered.
  @preconcurrency
  public func removeValue(
    completionBlock block: @escaping @Sendable ((any Error)?, DatabaseReference) -> Void
  ) {
    write(nil, priority: nil, "removeValueWithCompletionBlock:", block)
  }

  /// Removes the location and everything below it, and waits for the server's answer.
  ///
  /// - Throws: the server's rejection.
  @discardableResult
  public func removeValue() async throws -> DatabaseReference {
    try await answer { write(nil, priority: nil, "removeValue", $0) }
  }

  /// Replaces the priority alone: nil, a number, a string or a server value.
  public func setPriority(_ priority: Any?) {
    writePriority(priority, "setPriority:", nil)
  }

  /// Replaces the priority alone.
  ///
  /// - Parameter block: called on the callback queue when the server has answered.
  @preconcurrency
  public func setPriority(
    _ priority: Any?, withCompletionBlock block: @escaping @Sendable ((any Error)?, DatabaseReference) -> Void
  ) {
    writePriority(priority, "setPriority:withCompletionBlock:", block)
  }

  /// Replaces the priority alone, and waits for the server's answer.
  ///
  /// - Throws: the server's rejection.
  @discardableResult
  public func setPriority(_ priority: Any?) async throws -> DatabaseReference {
    try await answer { writePriority(priority, "setPriority:", $0) }
  }

  /// Replaces the values at several paths below, all or none. Nil and `NSNull` remove.
  ///
  /// - Parameter values: by relative path; no path may be an ancestor of another.
  public func updateChildValues(_ values: [AnyHashable: Any]) {
    update(values, "updateChildValues:", nil)
  }

  /// Replaces the values at several paths below, all or none.
  ///
  /// - Parameter block: called on the callback queue when the server has answered.
  @preconcurrency
  public func updateChildValues(
    _ values: [AnyHashable: Any],
    withCompletionBlock block: @escaping @Sendable ((any Error)?, DatabaseReference) -> Void
  ) {
    update(values, "updateChildValues:withCompletionBlock:", block)
  }

  /// Replaces the values at several paths below, all or none, and waits for the server's answer.
  ///
  /// - Throws: the server's rejection.
  @discardableResult
  public func updateChildValues(_ values: [AnyHashable: Any]) async throws -> DatabaseReference {
    try await answer { update(values, "updateChildValues:", $0) }
  }

  // MARK: The shared parts

  /// Reads values of the app. A value that cannot be stored stops the program.
  func valid<Value>(_ method: String, _ read: () throws(InvalidValue) -> Value) -> Value {
    PathRules.checkWritable(path, method: method)
    do {
      return try read()
    } catch {
      usageException("InvalidFirebaseData", "(\(method)) \(error.message)")
    }
  }

  private func write(_ value: Any?, priority: Any?, _ method: String, _ completion: DatabaseCompletion?) {
    let keys = path.keys.map(\.text)
    let node = valid(method) { () throws(InvalidValue) in
      let node = try ValueReader.node(value, at: keys)
      return priority == nil ? node : node.with(priority: try ValueReader.priority(priority, at: keys))
    }
    let path = path
    let answered = answered(completion)
    repository.enqueue { $0.set(node, at: path, completion: answered) }
  }

  private func writePriority(_ priority: Any?, _ method: String, _ completion: DatabaseCompletion?) {
    let node = valid(method) { () throws(InvalidValue) in
      try ValueReader.priority(priority).map { Node.leaf($0.leafValue) } ?? .empty
    }
    let path = path.child(.priority)
    let answered = answered(completion)
    repository.enqueue { $0.set(node, at: path, completion: answered) }
  }

  private func update(_ values: [AnyHashable: Any], _ method: String, _ completion: DatabaseCompletion?) {
    let changes = valid(method) { () throws(InvalidValue) in try ValueReader.changes(values) }
    let path = path
    let answered = answered(completion)
    repository.enqueue { $0.update(changes, at: path, completion: answered) }
  }

  /// The core's completion for the app's one.
  func answered(_ completion: DatabaseCompletion?) -> Repository.WriteCompletion {
    guard let completion else { return { _ in } }
    return { [repository] error in
      let cause = error?.asNSError()
      repository.deliver { completion(cause, self) }
    }
  }

  /// Converts a completion to an async call.
  func answer(_ begin: (@escaping DatabaseCompletion) -> Void) async throws -> DatabaseReference {
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
}
