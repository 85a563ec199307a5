// Tests the enforcement of stored rules: large bodies, rules that do not compile, and restarts.

import Access
import OrderedStore
import RealtimeEngine
import RealtimeModel
import SecurityRules
import Testing

@testable import EndpointFixture
@testable import RealtimeEndpoints

@Suite("Enforcement of Realtime Database rules", .timeLimit(.minutes(1)))
struct RulesEnforcementTests {
  private static let owner = ["Authorization: Bearer owner"]

  @Test("Rules decide about bodies of every size, whether or not the database is open")
  func largeBodies() async throws {
    try await RealtimeTestServer.run { server in
      let large = "\"\(String(repeating: "x", count: 3 << 20))\""
      for (position, body) in ["1", large].enumerated() {
        let namespace = "large-\(position)"
        let rules = #"{"rules":{"a":{".write":true,".validate":"newData.val() != 'no'"}}}"#
        let answer = try await server.rest(
          "PUT", "/.settings/rules.json?ns=\(namespace)", body: rules, headers: Self.owner)
        #expect(answer.status == 200)
        for (path, status) in [("a", 204), ("b", 401), ("", 401)] {
          let target = "/\(path).json?ns=\(namespace)&print=silent"
          #expect(try await server.rest("PUT", target, body: body).status == status, "\(path)")
        }
      }
      // Without rules the emulator allows everything, even to the first request to a database.
      #expect(try await server.rest("PUT", "/a.json?ns=open&print=silent", body: large).status == 204)
    }
  }

  @Test("Stored rules are in force after a restart; rules that do not compile deny everything to users")
  func restart() async throws {
    let store = try MemoryStore(StoreOptions())
    // An engine without a rules compiler, such as that of an earlier version, stores every well-formed file.
    let first = RealtimeEngine(store: store, policy: OpenPolicy())
    for (namespace, condition) in [("good", "auth != null"), ("bad", "nonsense")] {
      let rules = try RulesFile(Array(#"{"rules":{".read":"\#(condition)"}}"#.utf8))
      let database = try await first.database(namespace)
      try await database.setRules(rules, as: .administrator)
      _ = try await database.set("a", to: .leaf(.int(1)), as: .administrator)
    }
    await first.shutdown()
    let engine = RealtimeEngine(
      store: store, policy: OpenPolicy(), rules: { RealtimeRulesPolicy.policy(of: $0) })
    for (namespace, caller, isAllowed) in [
      ("good", .user("u1"), true), ("good", .nobody, false), ("bad", .user("u1"), false),
      ("bad", .administrator, true),
    ] as [(String, Principal, Bool)] {
      let database = try await engine.database(namespace)
      do {
        #expect(try await database.get("a", as: caller) == .leaf(.int(1)))
        #expect(isAllowed, "\(namespace)")
      } catch {
        #expect(error == .permissionDenied && !isAllowed, "\(namespace)")
      }
    }
    await engine.shutdown()
    try await store.close()
  }
}
