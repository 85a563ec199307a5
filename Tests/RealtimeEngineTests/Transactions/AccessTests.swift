// Tests that the access policy decides every kind of operation, on the state that the operation sees.

import Access
import OrderedStore
import RealtimeEngine
import RealtimeModel
import Testing

@Suite("Access to the Realtime Database", .timeLimit(.minutes(10)))
struct RealtimeAccessTests {
  private let user = Principal.user("u1")

  private func open(_ policy: any AccessPolicy<RealtimeAccess>) async throws -> RealtimeDatabase {
    try await RealtimeEngine(store: MemoryStore(), policy: policy).database("access")
  }

  @Test("In production without rules only administrators have access")
  func production() async throws {
    let database = try await open(LockedPolicy())
    for caller in [Principal.nobody, user] {
      let client = Client(database, as: caller)
      #expect(await client.set("a", 1).text == "permission_denied")
      #expect(await client.call { $0.update("/", [("a", 1)], request: $1) }.text == "permission_denied")
      #expect(await client.call { $0.get("a", request: $1) }.text == "permission_denied")
      #expect(await client.call { $0.listen("a", hash: "", request: $1) }.text == "permission_denied")
      #expect(await client.call { $0.onDisconnectSet("a", to: 1, request: $1) }.text == "permission_denied")
      await #expect(throws: RealtimeError.permissionDenied) { try await database.get("a", as: caller) }
      await #expect(throws: RealtimeError.permissionDenied) { try await database.getShallow("a", as: caller) }
      await #expect(throws: RealtimeError.permissionDenied) {
        try await database.set("a", to: 1, ifHash: "wrong", as: caller)
      }
    }
    _ = try await database.set("a", to: 1, as: .administrator)
    #expect(try await database.get("a", as: .administrator) == 1)
  }

  @Test("A denied conditional write does not reveal whether its hash matches")
  func noOracle() async throws {
    let database = try await open(OwnPathPolicy())
    _ = try await database.set("u2/x", to: 5, as: .administrator)
    let client = Client(database, as: user)
    for hash in [Node.leaf(.int(5)).hash, "wrong"] {
      let answer = await client.call { $0.set("u2/x", to: 6, ifHash: hash, request: $1) }
      #expect(answer.text == "permission_denied")
    }
  }

  @Test("Requests after a change of caller run as the new caller; listens without access are cancelled")
  func reauthentication() async throws {
    let database = try await open(OwnPathPolicy())
    let client = Client(database)
    let user = user
    #expect(await client.call { $0.listen("u1", hash: "", request: $1) }.text == "permission_denied")
    // Both requests are sent at once. The listen must be authorized as the new caller.
    let first = await client.send { $0.authenticate(user, request: $1) }
    let second = await client.send { $0.listen("u1", hash: "", request: $1) }
    #expect(await client.response(to: first).text == "ok")
    #expect(await client.response(to: second).text == "ok")
    _ = await client.set("u1/a", 1)
    _ = await client.drain()
    await client.call { $0.authenticate(.nobody, request: $1) }
    #expect(await client.drain() == ["c u1 permission_denied", "5 ok"])
    _ = try await database.set("u1/a", to: 2, as: .administrator)
    await client.call { $0.authenticate(user, request: $1) }
    #expect(await client.drain() == ["6 ok"])
  }

  @Test("A policy sees the tree before and after the write")
  func beforeAndAfter() async throws {
    struct Counter: AccessPolicy {
      typealias Product = RealtimeAccess
      func decide(
        _ caller: Principal, _ operation: RealtimeAccess.Operation, view: any TreeView
      ) throws -> RealtimeDecision {
        guard operation.changesData else { return .allowed }
        func count(_ path: Path, _ state: TreeState) throws -> Int {
          try view.childKeys(at: path, after: nil, limit: 10, state).count
        }
        let sum = try count("a", .after) + count("b/c", .after)
        return try count("/", .before) <= 2 && sum <= 3 ? .allowed : .deny(reason: "too many children")
      }
    }
    let client = Client(try await open(Counter()))
    #expect(await client.call { $0.update("/", [("a/1", 1), ("b/c/1", 1)], request: $1) }.text == "ok")
    #expect(await client.set("b", ["c": ["1": 1, "2": 1]]).text == "ok")
    #expect(await client.set("a/2", 1).text == "permission_denied")
    #expect(await client.set("b/c/1", nil).text == "ok")
    #expect(await client.set("a/2", 1).text == "ok")
  }

  @Test("An ordered read without an index is rejected; a listen gets a warning")
  func noIndex() async throws {
    let database = try await open(OpenPolicy())
    let client = Client(database)
    let query = QuerySpec(ordering: .child("due"), limit: .last(2))
    let expected = RealtimeError(
      .failure, "Index not defined, add \".indexOn\": \"due\", for path \"/notes\", to the rules")
    guard case .failure(let error) = await client.call({ $0.get("notes", query: query, request: $1) }) else {
      return #expect(Bool(false), "no error")
    }
    #expect(error == expected)
    let listen = await client.call { $0.listen("notes", query: query, tag: 1, hash: "", request: $1) }
    #expect(listen.text == "ok no_index")
    let byKey = QuerySpec(ordering: .key, limit: .last(2))
    #expect(await client.call { $0.get("notes", query: byKey, request: $1) }.text == "ok null")
    // A query without bounds and limit needs no index. With an index, reads with a limit are allowed too.
    let all = QuerySpec(ordering: .child("due"))
    #expect(await client.call { $0.get("notes", query: all, request: $1) }.text == "ok null")
    try await database.setRules(
      try RulesFile(Array(#"{"rules":{"notes":{".indexOn":"due"}}}"#.utf8)), as: .administrator)
    #expect(await client.call { $0.get("notes", query: query, request: $1) }.text == "ok null")
    #expect(
      await client.call { $0.listen("notes", query: query, tag: 2, hash: "", request: $1) }.text == "ok")
  }
}
