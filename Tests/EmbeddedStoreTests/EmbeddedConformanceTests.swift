// Runs all conformance checks on the embedded store.

import EmbeddedStore
import OrderedStore
import OrderedStoreConformance
import Testing

/// An embedded store in a new directory. Its cache is so small that reads also access the disk.
struct EmbeddedSubject: StoreSubject {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  func open(_ options: StoreOptions) async throws -> any OrderedStore {
    let embedded = EmbeddedOptions(store: options, blockCacheBytes: 1 << 20, memtableBytes: 1 << 20)
    return try await EmbeddedStore.open(directory: scratch.path, embedded)
  }

  func trim(_ store: any OrderedStore) async throws { try await #require(store as? EmbeddedStore).trimNow() }
}

@Suite("Conformance of the embedded store")
struct EmbeddedConformanceTests {
  @Test("The embedded store passes every conformance check", arguments: ConformanceCheck.all, [1, 2])
  func conforms(_ check: ConformanceCheck, seed: UInt64) async throws {
    try await check.run(try EmbeddedSubject(), seed: seed)
  }
}
