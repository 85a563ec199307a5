// Tests access faults of earlier versions: responses that revealed data, and decisions at the wrong time or state.

import Access
import OrderedStore
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite("Access faults of earlier versions", .timeLimit(.minutes(10)))
struct AccessFaultTests {
  private struct WriteOnlyPolicy: AccessPolicy {
    typealias Product = RealtimeAccess
    func decide(
      _ caller: Principal, _ operation: RealtimeAccess.Operation, view: any TreeView
    ) -> RealtimeDecision { operation.changesData ? .allowed : .deny(reason: "write only") }
  }

  private struct TimeLimitPolicy: AccessPolicy {
    typealias Product = RealtimeAccess
    let time: Int64
    func decide(
      _ caller: Principal, _ operation: RealtimeAccess.Operation, view: any TreeView
    ) -> RealtimeDecision { view.now < time ? .allow(time: true) : .deny(reason: "too late", time: true) }
  }

  @Test("A conditional write needs read permission, whether or not its hash matches")
  func conditionalWrite() async throws {
    let database = try await RealtimeEngine(store: MemoryStore(), policy: WriteOnlyPolicy()).database("x")
    _ = try await database.set("a", to: 1, as: .nobody)
    for hash in [Node.leaf(.int(1)).hash, "wrong", ""] {
      await #expect(throws: RealtimeError.permissionDenied) {
        try await database.set("a", to: 2, ifHash: hash, as: .nobody)
      }
    }
  }

  @Test("Credentials of another project read nothing, neither values nor exports")
  func foreignProject() async throws {
    let database = try await RealtimeEngine(store: MemoryStore(), policy: LockedPolicy()).database("x")
    _ = try await database.set("a", to: 1, as: .administrator)
    for role in ServiceRole.allCases {
      let foreign = Principal(.service(role), project: "other")
      await #expect(throws: RealtimeError.permissionDenied) { try await database.get("a", as: foreign) }
      await #expect(throws: RealtimeError.permissionDenied) {
        try await database.getIfSmall("a", as: foreign)
      }
      for isExport in [true, false] {
        await #expect(throws: RealtimeError.permissionDenied) {
          try await database.export("a", isExport: isExport, as: foreign)
        }
      }
      let own = Principal(.service(role), project: "x")
      #expect(try await database.getIfSmall("a", as: own) == .leaf(.int(1)))
    }
  }

  @Test("Policies see the current time for a read, not the time of the last commit")
  func time() async throws {
    let engine = RealtimeEngine(
      store: try MemoryStore(), policy: TimeLimitPolicy(time: 4_000_000_000_000), now: { 4_000_000_000_000 })
    let database = try await engine.database("x")
    _ = try await database.set("a", to: 1, as: .administrator)
    await #expect(throws: RealtimeError.permissionDenied) { try await database.get("a", as: .nobody) }
  }

  @Test("The onDisconnect writes of an ended session wait while the database has no rules that decide them")
  func waitingOnDisconnect() async throws {
    let store = try MemoryStore()
    let first = RealtimeEngine(store: store, policy: OpenPolicy())
    let client = Client(try await first.database("x"))
    await client.call { $0.onDisconnectSet("a", to: 1, request: $1) }
    await first.shutdown()
    let second = RealtimeEngine(store: store, policy: LockedPolicy())
    await #expect(throws: RealtimeError.permissionDenied) {
      try await second.database("x").get("a", as: .nobody)
    }
    await second.shutdown()
    let third = RealtimeEngine(store: store, policy: OpenPolicy())
    #expect(try await third.database("x").get("a", as: .nobody) == 1)
    await third.shutdown()
  }

  @Test("A denied increment does not reveal whether its result is a number")
  func denied() async throws {
    let database = try await RealtimeEngine(store: MemoryStore(), policy: LockedPolicy()).database("x")
    _ = try await database.set("a", to: .leaf(.double(1e308)), as: .administrator)
    await #expect(throws: RealtimeError.permissionDenied) {
      try await database.set("a", to: .leaf(.deferred(.increment(.double(1e308)))), as: .nobody)
    }
  }
}
