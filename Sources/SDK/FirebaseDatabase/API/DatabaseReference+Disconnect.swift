// The onDisconnect operations, which the server carries out when it loses this client. They belong to the current
// connection. After a reconnect the app registers them again, usually from an observer of `.info/connected`.

import FirebaseCore
import Foundation
import RealtimeModel

extension DatabaseReference {
  /// Replaces the value when the server loses this client.
  public func onDisconnectSetValue(_ value: Any?) {
    onDisconnectSet(value, nil, "onDisconnectSetValue:", nil)
  }

  /// Replaces the value when the server loses this client.
  ///
  /// - Parameter block: called on the callback queue when the server has accepted the operation.
  @preconcurrency
  public func onDisconnectSetValue(
    _ value: Any?, withCompletionBlock block: @escaping @Sendable ((any Error)?, DatabaseReference) -> Void
  ) {
    onDisconnectSet(value, nil, "onDisconnectSetValue:withCompletionBlock:", block)
  }

  /// Replaces the value when the server loses this client; waits until the server has accepted the
  /// operation.
  ///
  /// - Throws: the server's rejection.
  @discardableResult
  public func onDisconnectSetValue(_ value: Any?) async throws -> DatabaseReference {
    try await answer { onDisconnectSet(value, nil, "onDisconnectSetValue:", $0) }
  }

  /// Replaces value and priority when the server loses this client.
  public func onDisconnectSetValue(_ value: Any?, andPriority priority: Any) {
    onDisconnectSet(value, priority, "onDisconnectSetValue:andPriority:", nil)
  }

  /// Replaces value and priority when the server loses this client.
  ///
  /// - Parameter block: called on the callback queue when the server has accepted the operation.
  @preconcurrency
  public func onDisconnectSetValue(
    _ value: Any?, andPriority priority: Any?,
    withCompletionBlock block: @escaping @Sendable ((any Error)?, DatabaseReference) -> Void
  ) {
    onDisconnectSet(value, priority, "onDisconnectSetValue:andPriority:withCompletionBlock:", block)
  }

  /// Replaces value and priority when the server loses this client; waits until the server has accepted
  /// the operation.
  ///
  /// - Throws: the server's rejection.
  @discardableResult
  public func onDisconnectSetValue(_ value: Any?, andPriority priority: Any?) async throws
    -> DatabaseReference
  {
    try await answer { onDisconnectSet(value, priority, "onDisconnectSetValue:andPriority:", $0) }
  }

  /// Removes the location when the server loses this client.
  public func onDisconnectRemoveValue() {
    onDisconnectSet(nil, nil, "onDisconnectRemoveValue", nil)
  }

  /// Removes the location when the server loses this client.
  ///
  /// - Parameter block: called on the callback queue when the server has accepted the operation.
  @preconcurrency
  public func onDisconnectRemoveValue(
    completionBlock block: @escaping @Sendable ((any Error)?, DatabaseReference) -> Void
  ) {
    onDisconnectSet(nil, nil, "onDisconnectRemoveValueWithCompletionBlock:", block)
  }

  /// Removes the location when the server loses this client; waits until the server has accepted the
  /// operation.
  ///
  /// - Throws: the server's rejection.
  @discardableResult
  public func onDisconnectRemoveValue() async throws -> DatabaseReference {
    try await answer { onDisconnectSet(nil, nil, "onDisconnectRemoveValue", $0) }
  }

  /// Replaces the values at several paths below when the server loses this client.
  public func onDisconnectUpdateChildValues(_ values: [AnyHashable: Any]) {
    onDisconnectUpdate(values, "onDisconnectUpdateChildValues:", nil)
  }

  /// Replaces the values at several paths below when the server loses this client.
  ///
  /// - Parameter block: called on the callback queue when the server has accepted the operation.
  @preconcurrency
  public func onDisconnectUpdateChildValues(
    _ values: [AnyHashable: Any],
    withCompletionBlock block: @escaping @Sendable ((any Error)?, DatabaseReference) -> Void
  ) {
    onDisconnectUpdate(values, "onDisconnectUpdateChildValues:withCompletionBlock:", block)
  }

  /// Replaces the values at several paths below when the server loses this client; waits until the
  /// server has accepted the operation.
  ///
  /// - Throws: the server's rejection.
  @discardableResult
  public func onDisconnectUpdateChildValues(_ values: [AnyHashable: Any]) async throws -> DatabaseReference {
    try await answer { onDisconnectUpdate(values, "onDisconnectUpdateChildValues:", $0) }
  }

  /// Cancels the operations of this location and below.
  public func cancelDisconnectOperations() {
    perform(.cancel, "cancelDisconnectOperations", nil)
  }

  /// Cancels the operations of this location and below.
  ///
  /// - Parameter block: called on the callback queue when the server has answered.
  @preconcurrency
  public func cancelDisconnectOperations(
    completionBlock block: (@Sendable ((any Error)?, DatabaseReference) -> Void)?
  ) {
    perform(.cancel, "cancelDisconnectOperationsWithCompletionBlock:", block)
  }

  /// Cancels the operations of this location and below; waits for the server's answer.
  ///
  /// - Throws: the server's rejection.
  @discardableResult
  public func cancelDisconnectOperations() async throws -> DatabaseReference {
    try await answer { perform(.cancel, "cancelDisconnectOperations", $0) }
  }

  private func onDisconnectSet(
    _ value: Any?, _ priority: Any?, _ method: String, _ completion: DatabaseCompletion?
  ) {
    let node = valid(method) { () throws(InvalidValue) in
      let node = try ValueReader.node(value)
      return priority == nil ? node : node.with(priority: try ValueReader.priority(priority))
    }
    perform(.put(node), method, completion)
  }

  private func onDisconnectUpdate(
    _ values: [AnyHashable: Any], _ method: String, _ completion: DatabaseCompletion?
  ) {
    perform(
      .merge(valid(method) { () throws(InvalidValue) in try ValueReader.changes(values) }), method, completion
    )
  }

  private func perform(
    _ change: DisconnectOperation.Change, _ method: String, _ completion: DatabaseCompletion?
  ) {
    PathRules.checkWritable(path, method: method)
    let path = path
    let answered = answered(completion)
    repository.enqueue { $0.perform(change, at: path, completion: answered) }
  }
}
