// Tests random programs of writes, transactions, listens, queries and disconnects by several clients. After
// every step each client's values, rebuilt from its pushes, equal the model: the same program on a naive tree
// in memory.
//
// `make replay N=1000 SEED=7` runs 1,000 programs with the seeds from 7 on. It sets the environment variables
// HEARTH_REPLAY_PROGRAMS (the number of programs) and HEARTH_REPLAY_SEED (the first seed).

import Access
import EmbeddedStore
import Foundation
import OrderedStore
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite("Clients rebuild the state from pushes", .timeLimit(.minutes(10)))
struct ReplayTests {
  private static let programCount = number("HEARTH_REPLAY_PROGRAMS") ?? 24
  private static let firstSeed = number("HEARTH_REPLAY_SEED") ?? 0

  /// The seeds of `count` programs. This number is for the default of HEARTH_REPLAY_PROGRAMS, 24, and changes in
  /// proportion to the variable.
  static func seeds(ofPrograms count: Int) -> Range<Int> {
    firstSeed..<(firstSeed + max(count * programCount / 24, 1))
  }

  private static func number(_ name: String) -> Int? {
    ProcessInfo.processInfo.environment[name].flatMap { Int($0) }.flatMap { $0 < 0 ? nil : $0 }
  }

  @Test(
    "After every write each client's value of a listen equals the model",
    arguments: firstSeed..<(firstSeed + programCount)
  )
  func replay(seed: Int) async throws {
    let store = try MemoryStore()
    // Every third program has almost no cache, so that every operation reads rows.
    let engine = RealtimeEngine(
      store: store, policy: OpenPolicy(), cacheBytes: seed % 3 == 0 ? 2_000 : 1 << 20,
      staging: seed % 2 == 0 ? .standard : .tiny)
    var program = RandomProgram(seed: UInt64(seed), database: try await engine.database("replay"))
    if seed % 2 == 0 { await program.publish() }
    for _ in 0..<120 {
      await program.step()
      try await program.check()
    }
    try await program.checkReads(20)
    // Continues from the store's rows alone, like after a crash: the cache is empty, and the store still has the old
    // sessions and the replaced rows that were not cleared yet.
    await program.database.shutdown()
    let reopened = RealtimeEngine(
      store: store, policy: OpenPolicy(), staging: seed % 4 == 1 ? .tiny : .standard)
    program.restart(on: try await reopened.database("replay"))
    for _ in 0..<40 {
      await program.step()
      try await program.check()
    }
  }

  /// In program 253 large children enter a window (the children that a query selects): one by a write, and one because
  /// another child left the window.
  @Test("Programs that found bugs before still pass", arguments: [253])
  func failedBefore(seed: Int) async throws { try await replay(seed: seed) }

  @Test(
    "Clients that send requests without waiting for responses also end with the model's values",
    arguments: firstSeed..<(firstSeed + max(programCount * 2 / 3, 1)))
  func pipelined(seed: Int) async throws {
    let database = try await RealtimeDatabase(
      namespace: "replay",
      rows: try await DatabaseRows(named: "realtime/replay", in: MemoryStore(), now: SystemTime.milliseconds),
      policies: PolicySlot(OpenPolicy()), limits: .standard, cacheBytes: seed % 3 == 0 ? 2_000 : 1 << 20,
      maximumInFlight: 1 + seed % 4, staging: seed % 2 == 0 ? .standard : .tinyRemovals, created: {},
      released: {})
    var program = RandomProgram(seed: UInt64(300 + seed), database: database, isPipelined: true)
    await program.publish()
    for _ in 0..<10 {
      for _ in 0..<30 { await program.step() }
      try await program.check()
    }
    try await program.checkReads(20)
    await database.shutdown()
  }

  @Test(
    "Programs continue correctly after restarts from disk",
    arguments: firstSeed..<(firstSeed + max(programCount / 6, 1)))
  func restarts(seed: Int) async throws {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("hearth-\(UUID().uuidString)")
      .path
    defer { try? FileManager.default.removeItem(atPath: path) }
    var program: RandomProgram?
    for round in 0..<3 {
      let store = try await EmbeddedStore.open(directory: path, EmbeddedOptions(blockCacheBytes: 1 << 20))
      let engine = RealtimeEngine(
        store: store, policy: OpenPolicy(), cacheBytes: seed % 2 == 0 ? 2_000 : 1 << 20,
        staging: seed % 4 < 2 ? .standard : .tiny)
      let database = try await engine.database("replay")
      var currentProgram = program ?? RandomProgram(seed: UInt64(900 + seed), database: database)
      if round > 0 { currentProgram.restart(on: database) }
      try await currentProgram.check()
      for _ in 0..<50 {
        await currentProgram.step()
        try await currentProgram.check()
      }
      program = currentProgram
      // Alternates between a shutdown and a crash, which closes the store beneath the engine.
      if round % 2 == 0 { await engine.shutdown() }
      try await store.close()
    }
  }
}
