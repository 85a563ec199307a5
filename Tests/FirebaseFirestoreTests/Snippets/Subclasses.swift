// Declares a subclass of every open class. Compiling this file is the test.

import FirebaseFirestore
import Foundation

private final class City: GeoPoint, @unchecked Sendable {
  override var description: String { "a city at " + super.description }
}

private final class Embedding: VectorValue, @unchecked Sendable {
  override func isEqual(_ object: Any?) -> Bool { super.isEqual(object) }
}

private final class NamedPath: FieldPath, @unchecked Sendable {}
private final class SmallCache: PersistentCacheSettings, @unchecked Sendable {
  override init() { super.init(sizeBytes: 2_000_000) }
}
private final class SmallCollector: MemoryLRUGCSettings, @unchecked Sendable {}
private final class EagerCollector: MemoryEagerGCSetting, @unchecked Sendable {}
private final class SmallMemory: MemoryCacheSettings, @unchecked Sendable {}
private final class ThreeAttempts: TransactionOptions, @unchecked Sendable {
  override var maxAttempts: Int {
    get { 3 }
    set { super.maxAttempts = newValue }
  }
}

// Only the SDK makes objects of these classes. Subclasses can be declared, as with Google's SDK.

private final class OwnFirestore: Firestore, @unchecked Sendable {
  override func collection(_ collectionPath: String) -> CollectionReference {
    super.collection("own/" + collectionPath)
  }
  override func batch() -> WriteBatch { super.batch() }
}

private final class OwnQuery: Query, @unchecked Sendable {
  override func limit(to limit: Int) -> Query { super.limit(to: min(limit, 10)) }
  override func getDocuments() async throws -> QuerySnapshot { try await super.getDocuments() }
}

private final class OwnCollection: CollectionReference, @unchecked Sendable {
  override var path: String { "own/" + super.path }
}

private final class OwnReference: DocumentReference, @unchecked Sendable {
  override func delete() async throws { try await super.delete() }
}

private final class OwnSnapshot: DocumentSnapshot, @unchecked Sendable {
  override var exists: Bool { !super.exists }
}

private final class OwnQueryDocument: QueryDocumentSnapshot, @unchecked Sendable {
  override func data() -> [String: Any] { [:] }
}

private final class OwnResult: QuerySnapshot, @unchecked Sendable {
  override var isEmpty: Bool { true }
}

private final class OwnTransaction: Transaction, @unchecked Sendable {
  override func getDocument(_ document: DocumentReference) throws -> DocumentSnapshot {
    try super.getDocument(document)
  }
}

private final class OwnBatch: WriteBatch, @unchecked Sendable {
  override func commit() async throws { try await super.commit() }
}

private final class OwnFilter: Filter, @unchecked Sendable {}
private final class OwnFieldValue: FieldValue, @unchecked Sendable {}
private final class OwnChange: DocumentChange, @unchecked Sendable {}
private final class OwnMetadata: SnapshotMetadata, @unchecked Sendable {}
private final class OwnAggregate: AggregateField, @unchecked Sendable {}
private final class OwnAggregateQuery: AggregateQuery, @unchecked Sendable {}
private final class OwnAggregateResult: AggregateQuerySnapshot, @unchecked Sendable {}
private final class OwnTask: LoadBundleTask, @unchecked Sendable {}
private final class OwnProgress: LoadBundleTaskProgress, @unchecked Sendable {}
private final class OwnIndexManager: PersistentCacheIndexManager, @unchecked Sendable {}
