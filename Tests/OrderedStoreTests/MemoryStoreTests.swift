// Tests that reads of the memory store see a commit at its version and at later versions.

import OrderedStore
import Testing

@Suite("Memory store")
struct MemoryStoreTests {
  @Test("Reads at a commit's version and later see the commit, and earlier reads do not")
  func visibleFromItsVersion() async throws {
    let store = try MemoryStore()
    let database = try await store.database(named: "realtime/a", history: .seconds(3600))
    let first = try await database.execute(validating: nil) { state in
      try state.set([1], [10])
      try state.log([7], nil)
    }
    let second = try await database.execute(validating: nil) { try $0.set([1], [20]) }
    #expect(second.version > first.version)
    #expect(try await database.read(at: nil) { try $0.get([1])?.value } == [20])
    #expect(try await database.read(at: first.version) { try $0.get([1])?.value } == [10])
    #expect(try await database.read(at: database.createdVersion) { try $0.get([1]) } == nil)
    #expect(try await database.log(after: .zero, limit: 10).map(\.payload) == [[7]])
    try await store.close()
  }
}
