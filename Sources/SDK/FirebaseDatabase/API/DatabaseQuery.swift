// A query: a location with an order, bounds and a limit. Its methods add constraints, observe events and read
// values.
//
// These methods are not in extensions, because apps may override them, as in Google's SDK.
//
// Invariant: a query never changes. Methods that add constraints return a new query. They stop the program
// for a combination of constraints that Firebase rejects.

import FirebaseCore
public import Foundation
import Locking
import RealtimeModel
import RealtimeWire

/// Identifies an observer of a query.
public typealias DatabaseHandle = UInt

/// The children of a location in an order, optionally with bounds and a limit.
///
/// Immutable, and safe to pass between threads.
open class DatabaseQuery: NSObject, @unchecked Sendable {
  // Safe to share: all stored properties are constants.
  let optionalRepository: Repository?
  let path: Path
  let parameters: QueryParameters

  init(repository: Repository?, path: Path, parameters: QueryParameters) {
    optionalRepository = repository
    self.path = path
    self.parameters = parameters
    super.init()
  }

  /// Makes a query without a database, for subclasses. Any use of it stops the program.
  public override init() {
    optionalRepository = nil
    path = .root
    parameters = QueryParameters()
    super.init()
  }

  var repository: Repository {
    guard let optionalRepository else {
      usageException(
        "FIRDatabaseNotConfigured", "This object belongs to no database. Use Database.database().reference()")
    }
    return optionalRepository
  }

  /// The wire form of the query, under which observers are registered.
  var spec: QuerySpec { parameters.spec }

  /// The location without the query's order, bounds and limit.
  open var ref: DatabaseReference { DatabaseReference(repository: optionalRepository, path: path) }

  /// `(path parameters)`; for a reference its URL.
  open override var description: String { describe() }

  func describe() -> String {
    "(\(path.absolute) \(String(decoding: spec.json(), as: UTF8.self)))"
  }

  // MARK: Handles

  private static let lastHandle = Guarded<UInt>(0)

  static func makeHandle() -> DatabaseHandle {
    lastHandle.withLock { last in
      last += 1
      return last
    }
  }

  // MARK: Constraints

  private func makeQuery(_ parameters: QueryParameters) -> DatabaseQuery {
    DatabaseQuery(repository: optionalRepository, path: path, parameters: parameters)
  }

  /// Limits the results to the first `limit` children.
  @discardableResult
  open func queryLimited(toFirst limit: UInt) -> DatabaseQuery {
    makeQuery(parameters.limited(to: limit, fromStart: true, method: "queryLimitedToFirst:"))
  }

  /// Limits the results to the last `limit` children.
  @discardableResult
  open func queryLimited(toLast limit: UInt) -> DatabaseQuery {
    makeQuery(parameters.limited(to: limit, fromStart: false, method: "queryLimitedToLast:"))
  }

  /// Orders the children by the value at a path below each child.
  @discardableResult
  open func queryOrdered(byChild key: String) -> DatabaseQuery {
    makeQuery(parameters.ordered(byChild: key))
  }

  /// Orders the children by their keys.
  @discardableResult
  open func queryOrderedByKey() -> DatabaseQuery {
    makeQuery(parameters.ordered(by: .key, method: "queryOrderedByKey"))
  }

  /// Orders the children by their values.
  @discardableResult
  open func queryOrderedByValue() -> DatabaseQuery {
    makeQuery(parameters.ordered(by: .value, method: "queryOrderedByValue"))
  }

  /// Orders the children by their priorities. This is the default order.
  @discardableResult
  open func queryOrderedByPriority() -> DatabaseQuery {
    makeQuery(parameters.ordered(by: .priority, method: "queryOrderedByPriority"))
  }

  /// Begins at a value, inclusive.
  @discardableResult
  open func queryStarting(atValue startValue: Any?) -> DatabaseQuery {
    makeQuery(parameters.starting(startValue, nil, isInclusive: true, method: "queryStartingAtValue:"))
  }

  /// Begins at a value, inclusive, and among children with that value at a key, inclusive.
  @discardableResult
  open func queryStarting(atValue startValue: Any?, childKey: String?) -> DatabaseQuery {
    makeQuery(
      parameters.starting(startValue, childKey, isInclusive: true, method: "queryStartingAtValue:childKey:"))
  }

  /// Begins after a value.
  @discardableResult
  open func queryStarting(afterValue startAfterValue: Any?) -> DatabaseQuery {
    makeQuery(
      parameters.starting(startAfterValue, nil, isInclusive: false, method: "queryStartingAfterValue:"))
  }

  /// Begins after a key among the children with that value.
  @discardableResult
  open func queryStarting(afterValue startAfterValue: Any?, childKey: String?) -> DatabaseQuery {
    makeQuery(
      parameters.starting(
        startAfterValue, childKey, isInclusive: false, method: "queryStartingAfterValue:childKey:"))
  }

  /// Ends at a value, inclusive.
  @discardableResult
  open func queryEnding(atValue endValue: Any?) -> DatabaseQuery {
    makeQuery(parameters.ending(endValue, nil, isInclusive: true, method: "queryEndingAtValue:"))
  }

  /// Ends at a value, inclusive, and among children with that value at a key, inclusive.
  @discardableResult
  open func queryEnding(atValue endValue: Any?, childKey: String?) -> DatabaseQuery {
    makeQuery(
      parameters.ending(endValue, childKey, isInclusive: true, method: "queryEndingAtValue:childKey:"))
  }

  /// Ends before a value.
  @discardableResult
  open func queryEnding(beforeValue endValue: Any?) -> DatabaseQuery {
    makeQuery(parameters.ending(endValue, nil, isInclusive: false, method: "queryEndingBeforeValue:"))
  }

  /// Ends before a key among the children with that value.
  @discardableResult
  open func queryEnding(beforeValue endValue: Any?, childKey: String?) -> DatabaseQuery {
    makeQuery(
      parameters.ending(endValue, childKey, isInclusive: false, method: "queryEndingBeforeValue:childKey:"))
  }

  /// Limits the results to the children with exactly this value.
  @discardableResult
  open func queryEqual(toValue value: Any?) -> DatabaseQuery {
    makeQuery(parameters.equal(value, nil, method: "queryEqualToValue:"))
  }

  /// Limits the results to the child with exactly this value and key.
  @discardableResult
  open func queryEqual(toValue value: Any?, childKey: String?) -> DatabaseQuery {
    makeQuery(parameters.equal(value, childKey, method: "queryEqualToValue:childKey:"))
  }

  // MARK: Observing

  /// Observes events until the observer is removed.
  ///
  /// - Parameters:
  ///   - eventType: the kind of events to observe.
  ///   - block: called on the callback queue with a snapshot of the value, or of the child.
  ///   - cancelBlock: called once if the server ends the observation, for instance because the rules
  ///     do not allow it.
  /// - Returns: the handle for `removeObserver(withHandle:)`.
  @discardableResult
  open func observe(
    _ eventType: DataEventType, with block: @escaping (DataSnapshot) -> Void,
    withCancel cancelBlock: ((any Error) -> Void)? = nil
  ) -> DatabaseHandle {
    register(eventType, isSingle: false, { snapshot, _ in block(snapshot) }, cancelBlock)
  }

  /// Observes events until the observer is removed. Each event has the key of the preceding sibling in the
  /// query's order.
  ///
  /// - Returns: the handle for `removeObserver(withHandle:)`.
  @discardableResult
  open func observe(
    _ eventType: DataEventType, andPreviousSiblingKeyWith block: @escaping (DataSnapshot, String?) -> Void,
    withCancel cancelBlock: ((any Error) -> Void)? = nil
  ) -> DatabaseHandle {
    register(eventType, isSingle: false, block, cancelBlock)
  }

  /// Observes the first event only.
  open func observeSingleEvent(
    of eventType: DataEventType, with block: @escaping (DataSnapshot) -> Void,
    withCancel cancelBlock: ((any Error) -> Void)? = nil
  ) {
    _ = register(eventType, isSingle: true, { snapshot, _ in block(snapshot) }, cancelBlock)
  }

  /// Observes the first event only, with the key of the preceding sibling.
  open func observeSingleEvent(
    of eventType: DataEventType,
    andPreviousSiblingKeyWith block: @escaping (DataSnapshot, String?) -> Void,
    withCancel cancelBlock: ((any Error) -> Void)? = nil
  ) {
    _ = register(eventType, isSingle: true, block, cancelBlock)
  }

  /// Waits for the first event, with the key of the preceding sibling.
  ///
  /// If the server does not allow the observation, or the app is deleted before an event arrives, the
  /// snapshot has no value.
  @discardableResult
  open func observeSingleEventAndPreviousSiblingKey(
    of eventType: DataEventType
  ) async -> (DataSnapshot, String?) {
    let emptyEvent = SnapshotEvent(
      snapshot: DataSnapshot(
        node: .empty, path: path, ordering: spec.ordering, repository: optionalRepository),
      previousKey: nil)
    let event = await OneShotContinuation.wait(fallback: emptyEvent) { continuation in
      _ = register(
        eventType, isSingle: true,
        { continuation.resume(returning: SnapshotEvent(snapshot: $0, previousKey: $1)) },
        { _ in continuation.resume(returning: emptyEvent) })
    }
    return (event.snapshot, event.previousKey)
  }

  /// Adds an observer. All `observe` forms call it.
  func register(
    _ eventType: DataEventType, isSingle: Bool,
    _ block: @escaping (DataSnapshot, String?) -> Void, _ cancelBlock: ((any Error) -> Void)?
  ) -> DatabaseHandle {
    let handle = DatabaseQuery.makeHandle()
    // The blocks are called only on the callback queue, which the app has chosen.
    nonisolated(unsafe) let block = block
    nonisolated(unsafe) let cancelBlock = cancelBlock
    let observer = Observer(
      registration: ObserverRegistration(id: handle, interest: eventType.interest), path: path, query: spec,
      isSingle: isSingle, deliver: { block($0.snapshot, $0.previousKey) },
      cancel: cancelBlock.map { block in
        nonisolated(unsafe) let block = block
        return { block($0) }
      })
    repository.enqueue { $0.add(observer) }
    return handle
  }

  /// Removes an observer. A reference removes the observer from every query of its location.
  open func removeObserver(withHandle handle: DatabaseHandle) {
    let (path, spec) = (path, spec)
    repository.enqueue { $0.remove(ObserverRegistration(id: handle, interest: []), at: path, query: spec) }
  }

  /// Removes all observers of this query. A reference removes the observers of all queries of its location.
  open func removeAllObservers() {
    let (path, spec) = (path, spec)
    repository.enqueue { $0.remove(nil, at: path, query: spec) }
  }

  /// Keeps the query's data up to date in the cache without an observer, or stops doing so.
  open func keepSynced(_ keepSynced: Bool) {
    if path.first?.text == ".info" {
      usageException(
        "NSInvalidArgumentException", "Can't keep query on .info tree synced (this already is the case).")
    }
    let (path, spec, id) = (path, spec, DatabaseQuery.makeHandle())
    repository.enqueue { $0.keepSynced(keepSynced, at: path, query: spec, id: id) }
  }

  // MARK: Reading once

  /// Reads the value once: from the data of an active observer if one exists, otherwise from the server.
  ///
  /// - Parameter block: called on the callback queue with the snapshot or an error: the server's rejection,
  ///   or no connection within three seconds.
  @preconcurrency
  open func getData(completion block: @escaping @Sendable ((any Error)?, DataSnapshot?) -> Void) {
    let (path, spec) = (path, spec)
    repository.enqueue { repository in
      repository.get(at: path, query: spec) { result in
        switch result {
        case .success(let node):
          let snapshot = DataSnapshot(node: node, path: path, ordering: spec.ordering, repository: repository)
          repository.deliver { block(nil, snapshot) }
        case .failure(let error):
          let cause = error.asGetError
          repository.deliver { block(cause, nil) }
        }
      }
    }
  }

  /// Reads the value once: from the data of an active observer if one exists, otherwise from the server.
  ///
  /// - Throws: the server's rejection, or an error if there was no connection within three seconds.
  @discardableResult
  open func getData() async throws -> DataSnapshot {
    try await withCheckedThrowingContinuation { continuation in
      getData { error, snapshot in
        if let snapshot {
          continuation.resume(returning: snapshot)
        } else {
          continuation.resume(throwing: error ?? RealtimeError(.failure, "no data").asNSError())
        }
      }
    }
  }
}
