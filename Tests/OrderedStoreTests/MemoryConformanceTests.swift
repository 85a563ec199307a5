// Runs on the memory store all conformance checks, the checks that every implementation of a store must pass.

import OrderedStore
import OrderedStoreConformance
import Testing

/// A store in memory that keeps its contents between openings.
struct MemorySubject: StoreSubject {
  private let engine = MemoryEngine()

  func open(_ options: StoreOptions) async throws -> any OrderedStore { try MemoryStore(engine, options) }

  func trim(_ store: any OrderedStore) async throws { try await #require(store as? MemoryStore).trimNow() }
}

@Suite("Conformance of the memory store")
struct MemoryConformanceTests {
  @Test("The memory store passes every conformance check", arguments: ConformanceCheck.all, [1, 2, 3])
  func conforms(_ check: ConformanceCheck, seed: UInt64) async throws {
    try await check.run(MemorySubject(), seed: seed)
  }
}
