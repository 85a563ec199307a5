import OrderedStore
import OrderedStoreConformance
import Testing

/// A store in memory, opened again over what the last one left.
struct MemorySubject: StoreSubject {
  private let engine = MemoryEngine()

  func open(_ options: StoreOptions) async throws -> any OrderedStore { try MemoryStore(engine, options) }

  func trim(_ store: any OrderedStore) async throws { try await #require(store as? MemoryStore).trimNow() }
}

@Suite("The contract, kept in memory")
struct MemoryConformanceTests {
  @Test("the store in memory keeps the contract", arguments: ConformanceCheck.all, [1, 2, 3])
  func keepsTheContract(_ check: ConformanceCheck, seed: UInt64) async throws {
    try await check.run(MemorySubject(), seed: seed)
  }
}
