// Tests on every transport that open listens end with the permission or the credentials of their caller.

import Access
import Locking
import Ports
import RealtimeModel
import Testing

@testable import EndpointFixture
@testable import RealtimeEndpoints
@testable import RealtimeEngine

@Suite("Access to open listens on every transport", .timeLimit(.minutes(10)))
struct OpenListenAccessTests {
  private let clock = Guarded<Int64>(1_700_000_000_000)

  /// Serves a policy by which users read everything below their id.
  private func serve(_ test: (RealtimeTestServer) async throws -> Void) async throws {
    let clock = clock
    let now: @Sendable () -> Int64 = { clock.withLock { $0 } }
    let policy = TestTreePolicy { principal, operation, _ in
      guard let user = principal.user else { return false }
      return operation.paths.allSatisfy { $0.first?.text == user.id }
    }
    try await RealtimeTestServer.run(
      policy: policy, authentication: .verifying(ExpiringTokens(now: now)), now: now, test)
  }

  private let ok = #""b":{"s":"ok","d":"#

  @Test(
    "A WebSocket gets the action `ac` when its credential expires, and `c` for each listen that a new policy denies"
  )
  func socket() async throws {
    try await serve { server in
      let database = try await server.engine.database("demo")
      let socket = try await RawSocket.open(server)
      try await socket.play(
        [
          #"{"r":1,"a":"auth","b":{"cred":"u1.1700000010"}}"#, #"{"r":2,"a":"q","b":{"p":"/u1/a","h":""}}"#,
          #"{"r":3,"a":"q","b":{"p":"/u1/b","h":"","t":1,"q":{"l":1,"vf":"l"}}}"#,
        ],
        expect: [
          #"{"r":1,"b":{"s":"ok","d":{"auth":null,"expires":1700000010}}}"#,
          #"{"r":2,"b":{"s":"ok","d":{}}}"#, #"{"r":3,"b":{"s":"ok","d":{}}}"#,
        ])
      database.policies.publish(
        TestTreePolicy { _, operation, _ in operation.paths.allSatisfy { $0.last?.text != "b" } })
      _ = try await database.set("u1/b/x", to: .leaf(.int(1)), as: .administrator)
      _ = try await database.set("u1/a", to: .leaf(.int(1)), as: .administrator)
      #expect(try await socket.next() == #"{"a":"c","b":{"p":"u1/b","q":[{"l":1,"vf":"l"}]}}"#)
      #expect(try await socket.next() == #"{"a":"d","b":{"p":"u1/a","d":1}}"#)
      clock.withLock { $0 = 1_700_000_010_000 }
      _ = try await database.set("u1/a", to: .leaf(.int(2)), as: .administrator)
      #expect(
        try await socket.next() == #"{"a":"ac","b":{"s":"expired_token","d":"Auth token is expired."}}"#)
      // This policy allows everyone to read `u1/a`, so the listen continues without credentials.
      #expect(try await socket.next() == #"{"a":"d","b":{"p":"u1/a","d":2}}"#)
      try await socket.play(
        [#"{"r":4,"a":"auth","b":{"cred":"u1.1700000010"}}"#],
        expect: [#"{"r":4,"b":{"s":"expired_token","d":"Auth token is expired."}}"#])
      await socket.close()
    }
  }

  @Test("A long-polling session gets the same messages as a WebSocket at an expiry and after a new policy")
  func longPolling() async throws {
    try await serve { server in
      let database = try await server.engine.database("demo")
      var client = try await LongPollClient(server)
      let first = try await client.send(
        [
          LongPollTests.data(#"{"r":1,"a":"auth","b":{"cred":"u1.1700000010"}}"#),
          LongPollTests.data(#"{"r":2,"a":"q","b":{"p":"/u1/a","h":""}}"#),
        ], awaiting: 2)
      #expect(first.last == LongPollTests.ok(2, "{}"))
      clock.withLock { $0 = 1_700_000_010_000 }
      _ = try await database.set("u1/a", to: .leaf(.int(2)), as: .administrator)
      let second = try await client.send([], awaiting: 2)
      #expect(
        second == [
          LongPollTests.data(#"{"a":"ac","b":{"s":"expired_token","d":"Auth token is expired."}}"#),
          LongPollTests.data(#"{"a":"c","b":{"p":"u1/a"}}"#),
        ])
    }
  }

  @Test(
    "An event stream ends with `auth_revoked` when its credential expires, with `cancel` when a new policy denies it"
  )
  func eventStreams() async throws {
    try await serve { server in
      let database = try await server.engine.database("demo")
      _ = try await database.set("u1/a", to: .leaf(.int(1)), as: .administrator)
      func open(_ token: String) async throws -> RawClient {
        let client = try await RawClient.connect(server.port.port)
        try await client.send(
          "GET /u1/a.json?ns=demo&auth=\(token) HTTP/1.1\r\nHost: \(server.host)\r\nAccept: text/event-stream\r\n\r\n"
        )
        _ = try await client.read(through: #"data: {"path":"/","data":1}"#)
        return client
      }
      let (expiring, denied) = (try await open("u1.1700000010"), try await open("u1"))
      clock.withLock { $0 = 1_700_000_010_000 }
      _ = try await database.set("u1/a", to: .leaf(.int(2)), as: .administrator)
      let revoked = String(decoding: await expiring.readToEnd(), as: UTF8.self)
      #expect(revoked.contains("event: auth_revoked\ndata: credential is no longer valid\n\n"))
      #expect(!revoked.contains(#""data":2"#))
      _ = try await denied.read(through: #"data: {"path":"/","data":2}"#)
      database.policies.publish(LockedPolicy())
      _ = try await database.set("u1/a", to: .leaf(.int(3)), as: .administrator)
      let cancelled = String(decoding: await denied.readToEnd(), as: UTF8.self)
      #expect(cancelled.contains("event: cancel\ndata: null\n\n") && !cancelled.contains(#""data":3"#))
      let late = try await server.rest("GET", "/u1/a.json?ns=demo&auth=u1.1700000010")
      #expect(late.status == 401 && late.body.contains("Auth token is expired."))
    }
  }

  @Test("A conditional REST write without read permission shows neither the value nor its tag")
  func conditionalWrite() async throws {
    let policy = TestTreePolicy { _, operation, _ in operation.changesData }
    try await RealtimeTestServer.run(policy: policy) { server in
      let database = try await server.engine.database("demo")
      _ = try await database.set("a", to: .leaf(.string("secret")), as: .administrator)
      for tag in ["wrong", "null_etag", Node.leaf(.string("secret")).etag] {
        for method in ["PUT", "DELETE"] {
          let answer = try await server.rest(
            method, "/a.json?ns=demo", body: method == "PUT" ? "1" : nil, headers: ["If-Match: \(tag)"])
          #expect(answer.status == 401, "\(method) \(tag)")
          #expect(!answer.body.contains("secret") && answer.headers["etag"] == nil)
        }
      }
      #expect(try await database.get("a", as: .administrator) == .leaf(.string("secret")))
    }
  }

  @Test("A response shows the result of an increment only to clients that may read the result")
  func increments() async throws {
    let policy = TestTreePolicy { principal, operation, _ in operation.changesData || principal.user != nil }
    try await RealtimeTestServer.run(policy: policy, authentication: .verifying(ExpiringTokens(now: { 0 }))) {
      server in
      _ = try await server.engine.database("demo").set("n", to: .leaf(.int(41)), as: .administrator)
      let increment = #"{".sv":{"increment":1}}"#
      let hidden = try await server.rest(
        "PUT", "/n.json?ns=demo", body: increment, headers: ["X-Firebase-ETag: true"])
      #expect(hidden.status == 200 && hidden.body == increment && hidden.headers["etag"] == nil)
      let shown = try await server.rest(
        "PUT", "/n.json?ns=demo&auth=u1", body: increment, headers: ["X-Firebase-ETag: true"])
      #expect(shown.status == 200 && shown.body == "43" && shown.headers["etag"] != nil)
    }
  }
}
