import Foundation
import EmbeddedStore
import OrderedStore
import Testing

@Suite("The store on disk")
struct EmbeddedStoreTests {
  @Test("what was acknowledged is there after a restart")
  func restarts() async throws {
    let scratch = try ScratchDirectory()
    let directory = scratch.path + "/new/data"
    let store = try await EmbeddedStore.open(directory: directory)
    let database = try await store.database(named: "realtime/a", history: .seconds(3600))
    let first = try await database.execute(validating: nil) { state in
      try state.set([1], [10])
      try state.log([7], nil)
    }
    let second = try await database.execute(validating: nil) { try $0.set([1], [20]) }
    try await store.close()

    let again = try await EmbeddedStore.open(directory: directory)
    let same = try await again.database(named: "realtime/a", history: .seconds(3600))
    #expect(same.latestVersion >= second.version)
    #expect(try await same.read(at: nil) { try $0.get([1])?.value } == [20])
    #expect(try await same.read(at: first.version) { try $0.get([1])?.value } == [10])
    #expect(try await same.log(after: .zero, limit: 10).map(\.payload) == [[7]])
    try await again.close()
  }

  @Test("a directory in use is refused, naming the process that holds it")
  func isLocked() async throws {
    let scratch = try ScratchDirectory()
    let store = try await EmbeddedStore.open(directory: scratch.path)
    let error = await #expect(throws: StoreError.self) {
      _ = try await EmbeddedStore.open(directory: scratch.path)
    }
    #expect(error?.code == .locked)
    #expect(error?.message.contains("process \(getpid())") == true)
    try await store.close()
    try await EmbeddedStore.open(directory: scratch.path).close()
  }
}
