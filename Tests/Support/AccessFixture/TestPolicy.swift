// A test policy: an access policy that decides by a closure of the test and records the operations.

package import Access
import FirestoreModel
package import Locking

/// An access policy that decides by a closure.
package struct TestPolicy: AccessPolicy {
  package typealias Decide =
    @Sendable (Principal, FirestoreOperation, any DocumentView) throws -> FirestoreDecision

  private let body: Decide
  /// The operations that the policy has decided.
  package let operations = Guarded<[FirestoreOperation]>([])

  package init(_ body: @escaping Decide) { self.body = body }

  package func decide(
    _ principal: Principal, _ operation: FirestoreOperation, view: any DocumentView
  ) throws -> FirestoreDecision {
    operations.withLock { $0.append(operation) }
    return try body(principal, operation, view)
  }

  /// Denies every operation that touches a root collection or a document below it, and allows all other operations.
  package static func denying(_ collection: String) -> TestPolicy {
    TestPolicy { _, operation, _ in
      operation.touches(collection) ? .deny(reason: "the collection \(collection)") : .allowed
    }
  }
}

extension FirestoreOperation {
  /// Whether the operation may read or write a document in a root collection or below it. Listings count as touching
  /// every collection.
  package func touches(_ collection: String) -> Bool {
    func isIn(_ path: ResourcePath) -> Bool { path.segments.first == collection }
    func isIn(_ query: Query) -> Bool {
      if !query.parent.path.isEmpty { return isIn(query.parent.path) }
      // A query of a group, or of all collections, may select documents of every collection.
      return query.structured.from.isEmpty
        || query.structured.from.contains { $0.allDescendants || $0.collectionID == collection }
    }
    switch self {
    case .get(let names): return names.contains { isIn($0.path) }
    case .list(let listed), .aggregate(let listed): return isIn(listed.query)
    case .commit(let writes): return writes.contains { isIn($0.name.path) }
    case .transaction, .batchWrite: return false
    case .partition, .showMissing, .listCollections, .explain: return true
    }
  }
}
