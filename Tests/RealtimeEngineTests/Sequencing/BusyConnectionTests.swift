// Tests that a connection with many requests does not delay other connections. This includes the requests
// that are queued when it closes, and the repeated authorization of its listens after a change of its caller.

import Access
import Locking
import OrderedStore
import RealtimeModel
import StoreFixture
import Testing

@testable import RealtimeEngine

@Suite("Connections with many requests", .timeLimit(.minutes(5)))
struct BusyConnectionTests {
  /// Denies listens on `l/1` to the last user, `u20`. Records the order of its decisions: the user of each listen on
  /// `l/0`, and the paths of every other operation.
  private final class RecordingPolicy: AccessPolicy {
    typealias Product = RealtimeAccess
    let decisions = Guarded<[String]>([])

    func decide(
      _ caller: Principal, _ operation: RealtimeAccess.Operation, view: any TreeView
    ) -> RealtimeDecision {
      guard case .listen(let path, _) = operation else {
        decisions.withLock { $0 += operation.paths.map(\.description) }
        return .allowed
      }
      guard let id = caller.user?.id else { return .allowed }
      if path == "l/0" { decisions.withLock { $0.append(id) } }
      return path == "l/1" && id == "u20" ? .deny(reason: "l/1") : .allowed
    }

    /// Waits until the policy has decided a write to the path.
    func hasDecided(_ path: String) async throws -> Bool {
      try await eventually { decisions.withLock { $0.contains(path) } }
    }
  }

  @Test(
    "If a connection with many listens has queued changes of its caller, a write waits for at most one such change"
  )
  func reauthorization() async throws {
    let (engine, policy) = (GatedEngine(), RecordingPolicy())
    let store = try EngineStore(engine, StoreOptions())
    let database = try await RealtimeEngine(store: store, policy: policy).database("callers")
    let (a, b) = (Client(database), Client(database))
    _ = await b.set("born", 1)
    let many = BatchExecution.maximumReauthorizedListens + 100
    for number in 0..<many {
      _ = await a.send { $0.listen(Path("l/\(number)"), hash: "", request: $1) }
    }
    await a.call { $0.get("l", request: $1) }
    // Fills the maximum number of batches in flight, so that all later operations are queued.
    engine.blockCommits()
    var writes: [Int64] = []
    for number in 0..<BatchLoop.maximumInFlight {
      writes.append(await b.send { $0.set(Path("n\(number)"), to: 1, request: $1) })
      #expect(try await policy.hasDecided("n\(number)"))
    }
    policy.decisions.withLock { $0 = [] }
    var changes: [Int64] = []
    for number in 1...20 {
      let caller = Principal.user("u\(number)")
      changes.append(await a.send { $0.authenticate(caller, request: $1) })
    }
    writes.append(await b.send { $0.set("w", to: 1, request: $1) })
    engine.unblock()
    for request in writes { #expect(await b.response(to: request).text == "ok") }
    for request in changes { #expect(await a.response(to: request).text == "ok") }
    #expect(policy.decisions.withLock { $0 } == ["u1", "w"] + (2...20).map { "u\($0)" })
    #expect(await a.drain().contains("c l/1 permission_denied"))
  }

  @Test("A closed connection's writes and onDisconnect writes are performed, and its listens end")
  func closedConnection() async throws {
    let database = try await RealtimeEngine(store: MemoryStore(), policy: OpenPolicy()).database("gone")
    let group = RecordingGroup()
    let connection = database.connect(as: .nobody, to: RecordingSink(group))
    for number in 0..<500 {
      connection.listen(Path("l/\(number)"), hash: "", request: nil)
      connection.unlisten(Path("l/\(number / 2)"), request: nil)
      connection.get("l", request: 1)
      connection.set(Path("w/k\(number)"), to: 1, request: nil)
    }
    connection.onDisconnectSet("end", to: 2, request: nil)
    connection.listen("/", hash: "", request: nil)
    connection.close()
    _ = try await database.set("after", to: 3, as: .nobody)
    #expect(try await database.get("w", as: .nobody).childCount == 500)
    #expect(try await database.get("end", as: .nobody) == 2)
    #expect(connection.state.session.listens.isEmpty)
    #expect(connection.state.output.listeners.isEmpty)
    _ = group.take()
    _ = try await database.set("l", to: 4, as: .nobody)
    #expect(group.take().isEmpty)
  }
}
