// Random programs of writes, transactions, listens, queries and ends of sessions by several clients. After every step each
// client's values, rebuilt from what it was told, must equal the model: the same program on one naive tree in memory.
//
// `make replay N=1000 SEED=7` runs more of them: HEARTH_REPLAY_PROGRAMS from HEARTH_REPLAY_SEED on.

import EmbeddedStore
import Foundation
import OrderedStore
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite("Replaying pushes rebuilds the state", .timeLimit(.minutes(10)))
struct ReplayTests {
  private static let programs = number("HEARTH_REPLAY_PROGRAMS") ?? 24
  private static let first = number("HEARTH_REPLAY_SEED") ?? 0

  /// The seeds of so many programs, or as many times more as a long run asks for.
  static func programs(of count: Int) -> Range<Int> { first..<(first + max(count * programs / 24, 1)) }

  private static func number(_ name: String) -> Int? {
    ProcessInfo.processInfo.environment[name].flatMap { Int($0) }.flatMap { $0 < 0 ? nil : $0 }
  }

  @Test(
    "Every listen of every client shows its location after every write", arguments: first..<(first + programs)
  )
  func replay(seed: Int) async throws {
    let store = try MemoryStore()
    // Every third program runs with next to no cache, so that every operation reads and mends rows.
    let engine = RealtimeEngine(
      store: store, policy: EmulatorPolicy(), cacheBytes: seed % 3 == 0 ? 2_000 : 1 << 20,
      staging: seed % 2 == 0 ? .standard : .tiny)
    var program = RandomProgram(seed: UInt64(seed), database: try await engine.database("replay"))
    if seed % 2 == 0 { await program.publish() }
    for _ in 0..<120 {
      await program.step()
      try await program.check()
    }
    try await program.checkReads(20)
    // A server that was killed: what the rows alone say, without any cache, and what its sessions left. A killed one clears
    // and tidies nothing any more.
    await program.database.shutdown()
    let reopened = RealtimeEngine(
      store: store, policy: EmulatorPolicy(), staging: seed % 4 == 1 ? .tiny : .standard)
    program.restart(on: try await reopened.database("replay"))
    for _ in 0..<40 {
      await program.step()
      try await program.check()
    }
  }

  /// 253: large children come into a window, one by a write, another since a child left.
  @Test("Programs that once failed", arguments: [253])
  func failedBefore(seed: Int) async throws { try await replay(seed: seed) }

  @Test(
    "Clients that do not wait for answers are told the same",
    arguments: first..<(first + max(programs * 2 / 3, 1)))
  func pipelined(seed: Int) async throws {
    let database = try await RealtimeDatabase(
      namespace: "replay",
      rows: try await DatabaseRows(named: "realtime/replay", in: MemoryStore(), now: SystemTime.milliseconds),
      policy: EmulatorPolicy(), limits: .standard, cacheBytes: seed % 3 == 0 ? 2_000 : 1 << 20,
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
    "Programs go on over restarts on disk", arguments: first..<(first + max(programs / 6, 1)))
  func restarts(seed: Int) async throws {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("hearth-\(UUID().uuidString)")
      .path
    defer { try? FileManager.default.removeItem(atPath: path) }
    var program: RandomProgram?
    for round in 0..<3 {
      let store = try await EmbeddedStore.open(directory: path, EmbeddedOptions(blockCacheBytes: 1 << 20))
      let engine = RealtimeEngine(
        store: store, policy: EmulatorPolicy(), cacheBytes: seed % 2 == 0 ? 2_000 : 1 << 20,
        staging: seed % 4 < 2 ? .standard : .tiny)
      let database = try await engine.database("replay")
      var running = program ?? RandomProgram(seed: UInt64(900 + seed), database: database)
      if round > 0 { running.restart(on: database) }
      try await running.check()
      for _ in 0..<50 {
        await running.step()
        try await running.check()
      }
      program = running
      // Every other time the server is stopped in order; else its store goes away beneath it.
      if round % 2 == 0 { await engine.shutdown() }
      try await store.close()
    }
  }
}
