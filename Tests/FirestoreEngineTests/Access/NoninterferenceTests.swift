// Tests that denied data has no influence: two engines hold the same permitted documents and different denied documents. A
// policy denies by path and at random. Every outcome of the same requests, and every listener's result, must be the
// same on both engines.
//
// Each seed makes a program, a random sequence of writes and requests. The environment variable HEARTH_ACCESS_PROGRAMS
// sets the number of programs, and HEARTH_SEED sets the first seed. `make access` runs many programs.

import Access
import AccessFixture
import FirestoreModel
import Foundation
import Locking
import OrderedStore
import Testing

@testable import FirestoreEngine

@Suite("Denied data has no influence", .timeLimit(.minutes(30))) struct NoninterferenceTests {
  private static let environment = ProcessInfo.processInfo.environment
  private static let count = environment["HEARTH_ACCESS_PROGRAMS"].flatMap(UInt64.init) ?? 60
  private static let seed = environment["HEARTH_SEED"].flatMap(UInt64.init) ?? 1
  private static let denied = "d"

  /// Denies operations on one collection, and a fifth of all others by a hash of the operation.
  private static func policy(seed: UInt64) -> TestPolicy {
    TestPolicy { _, operation, _ in
      if operation.touches(denied) { return .deny(reason: "path") }
      if case .transaction = operation { return .allowed }
      var hash = FNV1a()
      hash.add("\(seed) \(operation)".utf8)
      return (hash.value >> 20).isMultiple(of: 5) ? .deny(reason: "chance") : .allowed
    }
  }

  @Test("outcomes and listeners do not depend on denied documents")
  func programs() async throws {
    var decisions = 0
    var permitted = 0
    for seed in Self.seed..<Self.seed + Self.count {
      let policies = (0..<2).map { _ in Self.policy(seed: seed) }
      let worlds = try policies.map { try EngineFixture(policy: $0) }
      permitted += try await run(RequestProgram(seed: seed), on: worlds, seed)
      for policy in policies { decisions += policy.operations.withLock { $0.count } }
    }
    print(
      "access: \(Self.count) programs, \(decisions) decisions, \(permitted) permitted requests")
    #expect(permitted > 0)
  }

  /// Runs a program and compares every outcome. Returns the number of permitted requests.
  private func run(_ initial: RequestProgram, on worlds: [EngineFixture], _ seed: UInt64) async throws -> Int
  {
    var program = initial
    var permitted = 0
    let clients = worlds.map { _ in WatchClient() }
    var streams: [WatchStream] = []
    for (world, client) in zip(worlds, clients) {
      streams.append(try await world.watch(client, as: .user("u")))
    }
    for step in 0..<40 {
      let writes = program.permittedWrites()
      for (index, world) in worlds.enumerated() {
        try await world.commit(writes + program.deniedWrites(inWorld: index))
      }
      let request = program.request(step)
      var outcomes: [String] = []
      for (world, stream) in zip(worlds, streams) {
        outcomes.append(try await request.outcome(on: world))
        if let target = request.target(step) { stream.addTarget(target) }
      }
      #expect(outcomes[0] == outcomes[1], "seed \(seed), step \(step): \(request)")
      if !outcomes[0].hasPrefix("PERMISSION_DENIED") { permitted += 1 }
    }
    for (world, (client, stream)) in zip(worlds, zip(clients, streams)) {
      let probe = try world.name("probe/x")
      let time = try #require(
        try await world.commit([Write(.update(probe, fields: ["n": 1]))]).commitTime)
      stream.addTarget(WatchTarget(id: 1_001, .documents([probe])))
      try await eventually("the probe arrives or is denied") {
        client.view.removed[1_001] != nil
          || (client.view.current.contains(1_001) && (client.view.snapshots.last?.time ?? .epoch) >= time)
      }
      stream.close()
      #expect(try await world.engine.database(world.database).transactions.openCount == 0)
    }
    try compare(clients.map(\.view), seed)
    return permitted
  }

  /// Compares the listeners of the two engines: the removed targets with their causes, and the last documents of the
  /// remaining targets.
  private func compare(_ views: [WatchClient.View], _ seed: UInt64) throws {
    #expect(views.allSatisfy { $0.violations.isEmpty && $0.failure == nil }, "seed \(seed)")
    let removed = views.map { $0.removed.mapValues { $0.map { "\($0)" } ?? "" } }
    #expect(removed[0] == removed[1], "seed \(seed)")
    let documents = try views.map { view in
      try view.documents.mapValues { try $0.mapValues { try $0.fields() } }
    }
    #expect(documents[0] == documents[1], "seed \(seed)")
    for view in views {
      for case .documentChange(let document, _, _) in view.responses {
        #expect(document.name.path.segments.first != Self.denied)
      }
    }
  }
}
