// Tests the garbage collection of the memory cache.

import FirestoreModel
import Foundation
import Testing

@testable import FirebaseFirestore

@Suite("Garbage collection") struct GarbageTests {
  private static let database = DatabaseName(project: "p")

  private func name(_ id: Int) throws -> DocumentName {
    try #require(DocumentName(database: GarbageTests.database, path: ResourcePath(["c", "\(id)"])))
  }

  private func document(_ id: Int) throws -> CachedDocument {
    CachedDocument(
      found: try name(id), fields: MapValue(), version: ModelTimestamp(microseconds: 1), createTime: .epoch)
  }

  private func cached(_ cache: MemoryPersistence, of ids: Range<Int>) throws -> [Int] {
    try ids.filter { cache.document(try name($0)).isKnown }
  }

  @Test("the least recently used documents are removed first")
  func leastRecentlyUsed() throws {
    var cache = MemoryPersistence(isEager: false)
    for id in 0..<10 {
      cache.begin(.collectGarbage)
      cache.setDocument(try document(id))
    }
    cache.begin(.collectGarbage)
    cache.recordOrphan(try name(0))
    cache.collectGarbage(active: [], share: 0.3, maximumCount: 1_000) { _ in false }
    #expect(try cached(cache, of: 0..<10) == [0, 4, 5, 6, 7, 8, 9])
    cache.collectGarbage(active: [], share: 1, maximumCount: 2) { _ in false }
    #expect(try cached(cache, of: 0..<10) == [0, 6, 7, 8, 9])
    cache.collectGarbage(active: [], share: 1, maximumCount: 1_000) { $0.path.id == "7" }
    #expect(try cached(cache, of: 0..<10) == [7])
  }

  @Test("documents of pending writes and of active targets are not removed")
  func referencedDocuments() throws {
    var cache = MemoryPersistence(isEager: false)
    cache.begin(.collectGarbage)
    let targets = try (0..<3).map { cache.allocateTarget(.document(try name($0))) }
    for id in 0..<5 { cache.setDocument(try document(id)) }
    for (id, target) in targets.enumerated() { cache.addMatchingKeys([try name(id)], to: target.id) }
    let batch = cache.addBatch(at: .epoch, base: [], writes: [Write(.delete(try name(3)))])
    for target in targets.prefix(2) {
      cache.begin(.collectGarbage)
      cache.releaseTarget(target)
    }
    cache.collectGarbage(active: [targets[2].id], share: 0.75, maximumCount: 1_000) { _ in false }
    // The least recently used are the unreferenced document and the target that was released first.
    #expect(try cached(cache, of: 0..<5) == [1, 2, 3])
    #expect(cache.target(.document(try name(0))) == nil)
    #expect(cache.target(.document(try name(1))) != nil)
    cache.removeBatch(batch)
    cache.collectGarbage(active: [], share: 1, maximumCount: 1_000) { _ in false }
    #expect(try cached(cache, of: 0..<5) == [])
  }

  @Test("garbage collection runs after one minute and then every five minutes")
  func schedule() throws {
    var engine = SyncEngine(persistence: MemoryPersistence(isEager: false), seed: 1)
    let documents = try (0..<20).map { try document($0) }
    for document in documents {
      _ = try engine.store.transaction(.applyRemoteEvent) { $0.storeIfNewer([document.name: document]) }
    }
    engine.startGarbageCollection(above: 1)
    #expect(engine.takeActions() == [.startTimer(.garbage, seconds: 60)])
    for removedCount in [2, 4, 6] {
      engine.timerFired(.garbage)
      #expect(engine.takeActions() == [.startTimer(.garbage, seconds: 300)])
      #expect(try documents.count { !(try engine.store.read($0.name)).isKnown } == removedCount)
    }
    engine.cacheSize = 1 << 20
    engine.timerFired(.garbage)
    #expect(try documents.count { !(try engine.store.read($0.name)).isKnown } == 6)
  }

  @Test("targets without documents count towards the cache's size and are removed")
  func emptyTargets() throws {
    var store = LocalStore(persistence: MemoryPersistence(isEager: false))
    for id in 0..<1_000 { try store.release(try store.allocate(.document(try name(id))).id) }
    try store.collectGarbage(above: 100_000, share: 1, maximumCount: 900)
    #expect(try (0..<1_000).count { store.persistence.target(.document(try name($0))) != nil } == 100)
    try store.collectGarbage(above: 100_000, share: 1)
    #expect(store.persistence.target(.document(try name(999))) != nil)
  }

  @Test("nothing is removed below the cache size")
  func belowCacheSize() throws {
    var store = LocalStore(persistence: MemoryPersistence(isEager: false))
    let document = try document(1)
    _ = try store.transaction(.applyRemoteEvent) { $0.storeIfNewer([document.name: document]) }
    try store.collectGarbage(above: 1 << 20, share: 1)
    #expect(try store.read(try name(1)).isFound)
    try store.collectGarbage(above: 1, share: 1)
    #expect(try !store.read(try name(1)).isKnown)
  }
}
