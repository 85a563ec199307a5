// A query: a location, an ordering, bounds and a limit. Extensions add constraints and observe.
//
// Invariant: a query never changes; methods that add constraints return a new query.

import FirebaseCore
public import Foundation
import Locking
import RealtimeModel
import RealtimeWire

/// Identifies an observer of a query.
public typealias DatabaseHandle = UInt

/// A location's children in an order, possibly with bounds and a limit.
///
/// Immutable, and safe to hand between threads.
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

  /// Makes a query of no database; using it stops the program.
  public override convenience init() {
    self.init(repository: nil, path: .root, parameters: QueryParameters())
  }

  var repository: Repository {
    guard let optionalRepository else {
      usageException(
        "FIRDatabaseNotConfigured", "This object belongs to no database. Use Database.database().reference()")
    }
    return optionalRepository
  }

  /// The query that observers register under.
  var spec: QuerySpec { parameters.spec }

  /// The location without the query's order, bounds and limit.
  open var ref: DatabaseReference { DatabaseReference(repository: optionalRepository, path: path) }

  /// `(path parameters)`; a reference gives its URL.
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

  // MARK: Observing

  /// Begins to observe: the common implementation of all `observe` methods.
  func register(
    _ eventType: DataEventType, isSingle: Bool,
    _ block: @escaping (DataSnapshot, String?) -> Void, _ cancelBlock: ((any Error) -> Void)?
  ) -> DatabaseHandle {
    let handle = DatabaseQuery.makeHandle()
    // The blocks are called on the callback queue alone, which the app has chosen.
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

  /// Stops an observer. For a plain reference, observers of all queries of the location count.
  open func removeObserver(withHandle handle: DatabaseHandle) {
    let (path, spec) = (path, spec)
    repository.enqueue { $0.remove(ObserverRegistration(id: handle, interest: []), at: path, query: spec) }
  }

  /// Stops all observers of this query; for a plain reference, of all queries of the location.
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

  /// Reads the value once: from the data of an active observer if there is one, otherwise from the server.
  ///
  /// - Parameter block: gets an error (the server's rejection, or no connection within three seconds), or
  ///   the snapshot; called on the callback queue.
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

  /// Reads the value once: from the data of an active observer if there is one, otherwise from the server.
  ///
  /// - Throws: the server's rejection, or that there was no connection within three seconds.
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
