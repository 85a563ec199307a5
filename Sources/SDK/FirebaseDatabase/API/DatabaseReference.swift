// A reference to a location in a database: navigates, writes, runs transactions and registers onDisconnect operations.
//
// These methods are not in extensions, because apps may override them, as in Google's SDK. Every write
// applies locally at once and completes when the server has responded. A value that cannot be stored stops
// the program. Errors of the server or the network are passed to the completion.

import FirebaseCore
import Foundation
import Locking
import RealtimeModel

/// Called when the server has responded to a write: with an error or nil, and the location that was written.
public typealias DatabaseCompletion = @Sendable ((any Error)?, DatabaseReference) -> Void

/// A location in a database.
///
/// Immutable, and safe to pass between threads. An invalid path stops the program.
open class DatabaseReference: DatabaseQuery, @unchecked Sendable {
  // Safe to share: it adds no state to its superclass.

  private static let pushIDs = Guarded(PushIDGenerator())

  init(repository: Repository?, path: Path) {
    super.init(repository: repository, path: path, parameters: QueryParameters())
  }

  /// Makes a reference without a database, for subclasses. Any use of it stops the program.
  public override init() {
    super.init(repository: nil, path: .root, parameters: QueryParameters())
  }

  /// The location of a child or, with slashes, of a deeper descendant.
  @discardableResult
  open func child(_ pathString: String) -> DatabaseReference {
    let path = PathRules.reference(pathString, below: path, method: "child:")
    return DatabaseReference(repository: optionalRepository, path: path)
  }

  /// A new child with a unique key, which sorts after the keys that this client generated before. The key
  /// contains the server's estimated time.
  @discardableResult
  open func childByAutoId() -> DatabaseReference {
    PathRules.checkWritable(path, method: "childByAutoId")
    let time = optionalRepository?.publishedServerTime ?? Repository.milliseconds
    let key = DatabaseReference.pushIDs.withLock { $0.next(at: time) }
    return DatabaseReference(repository: optionalRepository, path: path.child(ChildKey(key)))
  }

  /// The parent location; nil for the root.
  open var parent: DatabaseReference? {
    path.parent.map { DatabaseReference(repository: optionalRepository, path: $0) }
  }

  /// The root of the database.
  open var root: DatabaseReference {
    DatabaseReference(repository: optionalRepository, path: .root)
  }

  /// The last key of the path; nil for the root.
  open var key: String? { path.last?.text }

  /// The URL of the location.
  open var url: String {
    let keys = path.keys.map { "/" + $0.text.percentEncodedForQuery }
    return (optionalRepository?.endpoint.url ?? "") + keys.joined()
  }

  /// The database that contains the location.
  open var database: Database { Database.owner(of: repository) }

  override func describe() -> String { url }

  /// The URL of the location.
  @discardableResult
  open func description() -> String { url }

  /// Closes the default database's connection until `goOnline()`. Writes are sent after that.
  open class func goOffline() {
    Database.database().goOffline()
  }

  /// Opens the default database's connection again.
  open class func goOnline() {
    Database.database().goOnline()
  }

  // MARK: Writing

  /// Replaces the value and removes the priority. Nil and `NSNull` remove the location.
  open func setValue(_ value: Any?) {
    write(value, priority: nil, "setValue:", nil)
  }

  /// Replaces the value and removes the priority.
  ///
  /// - Parameter block: called on the callback queue when the server has responded.
  @preconcurrency
  open func setValue(
    _ value: Any?, withCompletionBlock block: @escaping @Sendable ((any Error)?, DatabaseReference) -> Void
  ) {
    write(value, priority: nil, "setValue:withCompletionBlock:", block)
  }

  /// Replaces the value, removes the priority, and waits for the server's response.
  ///
  /// - Throws: the server's rejection.
  @discardableResult
  open func setValue(_ value: Any?) async throws -> DatabaseReference {
    try await waitForCompletion { write(value, priority: nil, "setValue:", $0) }
  }

  /// Replaces the value and the priority.
  open func setValue(_ value: Any?, andPriority priority: Any?) {
    write(value, priority: priority, "setValue:andPriority:", nil)
  }

  /// Replaces the value and the priority.
  ///
  /// - Parameter block: called on the callback queue when the server has responded.
  @preconcurrency
  open func setValue(
    _ value: Any?, andPriority priority: Any?,
    withCompletionBlock block: @escaping @Sendable ((any Error)?, DatabaseReference) -> Void
  ) {
    write(value, priority: priority, "setValue:andPriority:withCompletionBlock:", block)
  }

  /// Replaces the value and the priority, and waits for the server's response.
  ///
  /// - Throws: the server's rejection.
  @discardableResult
  open func setValue(_ value: Any?, andPriority priority: Any?) async throws -> DatabaseReference {
    try await waitForCompletion { write(value, priority: priority, "setValue:andPriority:", $0) }
  }

  /// Removes the location and everything below it.
  open func removeValue() {
    write(nil, priority: nil, "removeValue", nil)
  }

  /// Removes the location and everything below it.
  ///
  /// - Parameter block: called on the callback queue when the server has responded.
  @preconcurrency
  open func removeValue(
    completionBlock block: @escaping @Sendable ((any Error)?, DatabaseReference) -> Void
  ) {
    write(nil, priority: nil, "removeValueWithCompletionBlock:", block)
  }

  /// Removes the location and everything below it, and waits for the server's response.
  ///
  /// - Throws: the server's rejection.
  @discardableResult
  open func removeValue() async throws -> DatabaseReference {
    try await waitForCompletion { write(nil, priority: nil, "removeValue", $0) }
  }

  /// Replaces only the priority. The priority is nil, a number, a string or a server value.
  open func setPriority(_ priority: Any?) {
    writePriority(priority, "setPriority:", nil)
  }

  /// Replaces only the priority.
  ///
  /// - Parameter block: called on the callback queue when the server has responded.
  @preconcurrency
  open func setPriority(
    _ priority: Any?, withCompletionBlock block: @escaping @Sendable ((any Error)?, DatabaseReference) -> Void
  ) {
    writePriority(priority, "setPriority:withCompletionBlock:", block)
  }

  /// Replaces only the priority, and waits for the server's response.
  ///
  /// - Throws: the server's rejection.
  @discardableResult
  open func setPriority(_ priority: Any?) async throws -> DatabaseReference {
    try await waitForCompletion { writePriority(priority, "setPriority:", $0) }
  }

  /// Replaces the values at several descendant paths atomically. Nil and `NSNull` remove a location.
  ///
  /// - Parameter values: the new values by relative path. No path may be an ancestor of another one.
  open func updateChildValues(_ values: [AnyHashable: Any]) {
    update(values, "updateChildValues:", nil)
  }

  /// Replaces the values at several descendant paths atomically.
  ///
  /// - Parameter block: called on the callback queue when the server has responded.
  @preconcurrency
  open func updateChildValues(
    _ values: [AnyHashable: Any],
    withCompletionBlock block: @escaping @Sendable ((any Error)?, DatabaseReference) -> Void
  ) {
    update(values, "updateChildValues:withCompletionBlock:", block)
  }

  /// Replaces the values at several descendant paths atomically, and waits for the server's response.
  ///
  /// - Throws: the server's rejection.
  @discardableResult
  open func updateChildValues(_ values: [AnyHashable: Any]) async throws -> DatabaseReference {
    try await waitForCompletion { update(values, "updateChildValues:", $0) }
  }

  // MARK: Transactions

  /// Applies a function to the current value and stores the result, without overwriting another client's
  /// change.
  ///
  /// - Parameter block: gets the locally known value, which is often nil at first. It may run several times,
  ///   on the SDK's queue, and never inside this call.
  open func runTransactionBlock(_ block: @escaping (MutableData) -> TransactionResult) {
    enqueueTransaction(block, withLocalEvents: true) { _, _, _ in }
  }

  /// Applies a function to the current value and stores the result, without overwriting another client's
  /// change.
  ///
  /// - Parameters:
  ///   - block: gets the locally known value, and may run several times.
  ///   - completionBlock: called on the callback queue with an error, whether the result was stored,
  ///     and the value. An aborted transaction has no error and was not stored.
  @preconcurrency
  open func runTransactionBlock(
    _ block: @escaping (MutableData) -> TransactionResult,
    andCompletionBlock completionBlock: @escaping @Sendable ((any Error)?, Bool, DataSnapshot?) -> Void
  ) {
    enqueueTransaction(block, withLocalEvents: true, completionBlock)
  }

  /// Applies a function to the current value, and waits until the result is stored or the transaction has
  /// failed.
  ///
  /// - Returns: whether the result was stored, and the value.
  /// - Throws: the server's rejection, or the error after 25 failed attempts.
  @discardableResult
  open func runTransactionBlock(
    _ block: @escaping (MutableData) -> TransactionResult
  ) async throws -> (Bool, DataSnapshot) {
    let outcome: (isCommitted: Bool, snapshot: DataSnapshot) = try await withCheckedThrowingContinuation {
      continuation in
      enqueueTransaction(block, withLocalEvents: true) { error, isCommitted, snapshot in
        if let snapshot, error == nil {
          continuation.resume(returning: (isCommitted, snapshot))
        } else {
          continuation.resume(throwing: error ?? RealtimeError(.failure, "no data").asNSError())
        }
      }
    }
    return (outcome.isCommitted, outcome.snapshot)
  }

  /// Applies a function to the current value and stores the result.
  ///
  /// - Parameters:
  ///   - localEvents: whether observers see results that are not stored yet.
  open func runTransactionBlock(
    _ block: @escaping (MutableData) -> TransactionResult,
    andCompletionBlock completionBlock: (((any Error)?, Bool, DataSnapshot?) -> Void)?,
    withLocalEvents localEvents: Bool
  ) {
    // Called only on the callback queue, which the app has chosen.
    nonisolated(unsafe) let completionBlock = completionBlock
    enqueueTransaction(block, withLocalEvents: localEvents) { completionBlock?($0, $1, $2) }
  }

  // MARK: Writing at the end of the connection

  // The server executes these operations when this client is disconnected. They belong to the current
  // connection. After a reconnect the app registers them again, usually in an observer of `.info/connected`.

  /// Replaces the value when this client is disconnected.
  open func onDisconnectSetValue(_ value: Any?) {
    onDisconnectSet(value, nil, "onDisconnectSetValue:", nil)
  }

  /// Replaces the value when this client is disconnected.
  ///
  /// - Parameter block: called on the callback queue when the server has accepted the operation.
  @preconcurrency
  open func onDisconnectSetValue(
    _ value: Any?, withCompletionBlock block: @escaping @Sendable ((any Error)?, DatabaseReference) -> Void
  ) {
    onDisconnectSet(value, nil, "onDisconnectSetValue:withCompletionBlock:", block)
  }

  /// Replaces the value when this client is disconnected; waits until the server has accepted the
  /// operation.
  ///
  /// - Throws: the server's rejection.
  @discardableResult
  open func onDisconnectSetValue(_ value: Any?) async throws -> DatabaseReference {
    try await waitForCompletion { onDisconnectSet(value, nil, "onDisconnectSetValue:", $0) }
  }

  /// Replaces the value and the priority when this client is disconnected.
  open func onDisconnectSetValue(_ value: Any?, andPriority priority: Any) {
    onDisconnectSet(value, priority, "onDisconnectSetValue:andPriority:", nil)
  }

  /// Replaces the value and the priority when this client is disconnected.
  ///
  /// - Parameter block: called on the callback queue when the server has accepted the operation.
  @preconcurrency
  open func onDisconnectSetValue(
    _ value: Any?, andPriority priority: Any?,
    withCompletionBlock block: @escaping @Sendable ((any Error)?, DatabaseReference) -> Void
  ) {
    onDisconnectSet(value, priority, "onDisconnectSetValue:andPriority:withCompletionBlock:", block)
  }

  /// Replaces the value and the priority when this client is disconnected; waits until the server has
  /// accepted the operation.
  ///
  /// - Throws: the server's rejection.
  @discardableResult
  open func onDisconnectSetValue(_ value: Any?, andPriority priority: Any?) async throws
    -> DatabaseReference
  {
    try await waitForCompletion { onDisconnectSet(value, priority, "onDisconnectSetValue:andPriority:", $0) }
  }

  /// Removes the location when this client is disconnected.
  open func onDisconnectRemoveValue() {
    onDisconnectSet(nil, nil, "onDisconnectRemoveValue", nil)
  }

  /// Removes the location when this client is disconnected.
  ///
  /// - Parameter block: called on the callback queue when the server has accepted the operation.
  @preconcurrency
  open func onDisconnectRemoveValue(
    completionBlock block: @escaping @Sendable ((any Error)?, DatabaseReference) -> Void
  ) {
    onDisconnectSet(nil, nil, "onDisconnectRemoveValueWithCompletionBlock:", block)
  }

  /// Removes the location when this client is disconnected; waits until the server has accepted the
  /// operation.
  ///
  /// - Throws: the server's rejection.
  @discardableResult
  open func onDisconnectRemoveValue() async throws -> DatabaseReference {
    try await waitForCompletion { onDisconnectSet(nil, nil, "onDisconnectRemoveValue", $0) }
  }

  /// Replaces the values at several descendant paths when this client is disconnected.
  open func onDisconnectUpdateChildValues(_ values: [AnyHashable: Any]) {
    onDisconnectUpdate(values, "onDisconnectUpdateChildValues:", nil)
  }

  /// Replaces the values at several descendant paths when this client is disconnected.
  ///
  /// - Parameter block: called on the callback queue when the server has accepted the operation.
  @preconcurrency
  open func onDisconnectUpdateChildValues(
    _ values: [AnyHashable: Any],
    withCompletionBlock block: @escaping @Sendable ((any Error)?, DatabaseReference) -> Void
  ) {
    onDisconnectUpdate(values, "onDisconnectUpdateChildValues:withCompletionBlock:", block)
  }

  /// Replaces the values at several descendant paths when this client is disconnected; waits until the server
  /// has accepted the operation.
  ///
  /// - Throws: the server's rejection.
  @discardableResult
  open func onDisconnectUpdateChildValues(_ values: [AnyHashable: Any]) async throws -> DatabaseReference {
    try await waitForCompletion { onDisconnectUpdate(values, "onDisconnectUpdateChildValues:", $0) }
  }

  /// Cancels the onDisconnect operations at this location and below it.
  open func cancelDisconnectOperations() {
    perform(.cancel, "cancelDisconnectOperations", nil)
  }

  /// Cancels the onDisconnect operations at this location and below it.
  ///
  /// - Parameter block: called on the callback queue when the server has responded.
  @preconcurrency
  open func cancelDisconnectOperations(
    completionBlock block: (@Sendable ((any Error)?, DatabaseReference) -> Void)?
  ) {
    perform(.cancel, "cancelDisconnectOperationsWithCompletionBlock:", block)
  }

  /// Cancels the onDisconnect operations at this location and below it, and waits for the server's response.
  ///
  /// - Throws: the server's rejection.
  @discardableResult
  open func cancelDisconnectOperations() async throws -> DatabaseReference {
    try await waitForCompletion { perform(.cancel, "cancelDisconnectOperations", $0) }
  }
}
