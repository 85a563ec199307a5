// Subclasses of the open classes whose initializers are public. Compiling this file is the test.

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
