// Tests imports with several commits in flight. After a failed sync nothing of the import is visible. After a
// crash the import is complete or absent, and no garbage rows (rows of an unfinished import) remain.

import Access
import EmbeddedStore
import Foundation
import OrderedStore
import RealtimeModel
import StoreFixture
import Testing

@testable import RealtimeEngine

@Suite("Commits of imports in flight", .timeLimit(.minutes(10)))
struct ImportCommitTests {
  private static func text(_ count: Int) -> [UInt8] {
    Array("{\((0..<count).map { "\"k\($0)\":\($0)" }.joined(separator: ","))}".utf8)
  }

  private func open(_ store: any OrderedStore, _ staging: StagingLimits = .tiny) async throws
    -> RealtimeDatabase
  {
    try await RealtimeEngine(
      store: store, policy: OpenPolicy(), limits: .standard, cacheBytes: 1 << 20, staging: staging
    ).database("flights")
  }

  @Test(
    "An import continues while fewer than the maximum commits are in flight, and finishes once all are durable"
  )
  func commitsInFlight() async throws {
    let gated = GatedEngine()
    let database = try await open(try EngineStore(gated, StoreOptions()))
    _ = try await database.set("old", to: 1, as: .nobody)
    let valueImport = try await database.beginImport(at: "new", maximumBytes: 1 << 20, as: .nobody)
    gated.blockCommits()
    // Each commit has one row. The import accepts as many as may be in flight, up to the end of the JSON,
    // before any is durable.
    try await valueImport.add(Self.text(StagingLimits.tiny.maximumCommitsInFlight))
    #expect(try await database.get("/", as: .nobody) == ["old": 1])
    async let finished: Void = valueImport.finish()
    await gated.waitUntilBlocked()
    #expect(try await database.get("/", as: .nobody) == ["old": 1])
    gated.unblock()
    try await finished
    #expect(
      try await database.get("new", as: .nobody)
        == Node(json: Self.text(StagingLimits.tiny.maximumCommitsInFlight)))
  }

  @Test("If an import repeats a key, the last value remains, with any number of commits in flight")
  func repeatedKeys() async throws {
    for staging in [StagingLimits.tiny, StagingLimits()] {
      let database = try await open(try MemoryStore(), staging)
      let text = #"{"a":{"x":1,"y":2,"z":{"q":1}},"b":1,"a":{"y":3},"c":{"d":1},"c":5,"b":{"e":{"f":6}}}"#
      let valueImport = try await database.beginImport(at: "n", maximumBytes: 1 << 20, as: .nobody)
      for byte in text.utf8 { try await valueImport.add([byte]) }
      try await valueImport.finish()
      #expect(try await database.get("n", as: .nobody) == ["a": ["y": 3], "b": ["e": ["f": 6]], "c": 5])
    }
  }

  @Test("A failed sync fails the import, and no part of the import is visible")
  func failedSync() async throws {
    let gated = GatedEngine()
    let database = try await open(try EngineStore(gated, StoreOptions()))
    _ = try await database.set("old", to: 1, as: .nobody)
    let valueImport = try await database.beginImport(at: "old", maximumBytes: 1 << 20, as: .nobody)
    gated.blockCommits()
    let adding = Task {
      try await valueImport.add(Self.text(200))
      try await valueImport.finish()
    }
    await gated.waitUntilBlocked()
    gated.unblock(failing: .unavailable("the disk is gone"))
    await #expect(throws: RealtimeError.self) { try await adding.value }
    await #expect(throws: RealtimeError.self) { try await valueImport.finish() }
    #expect(try await database.get("/", as: .nobody) == ["old": 1])
  }

  @Test(
    "After a crash during an import, the old or the new value is stored, and no garbage rows remain",
    arguments: 0..<8)
  func crash(seed: Int) async throws {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("hearth-\(UUID().uuidString)")
      .path
    defer { try? FileManager.default.removeItem(atPath: path) }
    let options = EmbeddedOptions(blockCacheBytes: 1 << 20)
    let count = 400
    let text = Self.text(count)
    var store = try await EmbeddedStore.open(directory: path, options)
    var database = try await open(store)
    _ = try await database.set("n", to: ["old": 1], as: .nobody)
    let valueImport = try await database.beginImport(at: "n", maximumBytes: 1 << 20, as: .nobody)
    // Each seed crashes after a longer part of the import; the last one crashes around its end.
    let sentCount = text.count * (seed + 1) / 8
    try await valueImport.add(Array(text[..<sentCount]))
    let finishing = Task {
      try await valueImport.add(Array(text[sentCount...]))
      try await valueImport.finish()
    }
    if seed % 2 == 1 { await Task.yield() }
    // Closing only the store simulates a crash: the engine gets no chance to clean up.
    try await store.close()
    let isAcknowledged = (try? await finishing.value) != nil
    store = try await EmbeddedStore.open(directory: path, options)
    database = try await open(store)
    let found = try await database.get("n", as: .nobody)
    let isNew = try found == Node(json: text)
    #expect(isNew || found == ["old": 1])
    if isAcknowledged { #expect(isNew) }
    #expect(
      try await eventually {
        let counts = try await rowCounts(store, "flights")
        return counts["x"] == nil && (counts["t"] ?? 0) + (counts["n"] ?? 0) == (isNew ? count : 1)
      })
    try await store.close()
  }
}
