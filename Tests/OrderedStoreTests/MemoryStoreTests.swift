import OrderedStore
import Testing

@Suite("Store in memory")
struct MemoryStoreTests {
  @Test("A commit is visible from its version on")
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
