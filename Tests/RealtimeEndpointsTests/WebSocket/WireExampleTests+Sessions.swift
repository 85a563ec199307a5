// Tests the worked examples 9.16 to 9.18 of the protocol's specification: credentials and the end of
// sessions.

import Access
import NIOCore
import RealtimeEngine
import RealtimeModel
import Testing

@testable import EndpointFixture

extension WireExampleTests {
  @Test("9.16: the cancellation of a filtered listen contains the query object exactly as the client sent it")
  func revokedQuery() async throws {
    try await RealtimeTestServer.run(policy: LockedPolicy()) { server in
      let socket = try await RawSocket.open(server)
      try await server.publish(rules: #"{"rules":{"mail":{".indexOn":"to"}}}"#, in: "demo")
      let query = #"{"sp":"u1", "sin":true,"ep":"u1","ein":true,"i":"to"}"#
      try await socket.play(
        [
          #"{"r":1,"a":"gauth","b":{"cred":"owner"}}"#,
          #"{"r":2,"a":"q","b":{"p":"/mail","q":"# + query + #","t":3,"h":""}}"#,
          #"{"r":3,"a":"q","b":{"p":"/all","h":""}}"#, #"{"r":4,"a":"unauth","b":{}}"#,
        ],
        expect: [
          #"{"r":1,"b":{"s":"ok","d":{"auth":null,"expires":0}}}"#, #"{"r":2,"b":{"s":"ok","d":{}}}"#,
          #"{"r":3,"b":{"s":"ok","d":{}}}"#,
        ])
      let revoked = Set([try await socket.next(), try await socket.next()])
      #expect(
        revoked == [#"{"a":"c","b":{"p":"mail","q":["# + query + "]}}", #"{"a":"c","b":{"p":"all"}}"#])
      #expect(try await socket.next() == #"{"r":4,"b":{"s":"ok","d":"unauthenticated"}}"#)
    }
  }

  @Test("9.17: requests sent right after a credential run as its user")
  func pipelinedCredential() async throws {
    struct OwnData: AccessPolicy {
      typealias Product = RealtimeAccess
      func decide(
        _ caller: Principal, _ operation: RealtimeAccess.Operation, view: any TreeView
      ) -> RealtimeDecision {
        guard case .listen(let path, _) = operation, let user = caller.user, path.last?.text == user.id else {
          return .deny(reason: "not the user's data")
        }
        return .allowed
      }
    }
    try await RealtimeTestServer.run(policy: OwnData()) { server in
      let database = try await server.engine.database("demo")
      _ = try await database.set("private/u1", to: .object([("x", .leaf(.int(1)))]), as: .administrator)
      let socket = try await RawSocket.open(server)
      // {"alg":"none"} . {"sub":"u1","exp":99} . nothing
      let token = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ1MSIsImV4cCI6OTl9."
      try await socket.play(
        [
          #"{"r":2,"a":"auth","b":{"cred":"\#(token)"}}"#, #"{"r":3,"a":"q","b":{"p":"/private/u1","h":""}}"#,
          #"{"r":4,"a":"auth","b":{"cred":"nonsense"}}"#, #"{"r":5,"a":"q","b":{"p":"/private/u1","h":""}}"#,
        ],
        expect: [
          #"{"r":2,"b":{"s":"ok","d":{"auth":{"exp":99,"sub":"u1"},"expires":99}}}"#,
          #"{"a":"d","b":{"p":"private/u1","d":{"x":1}}}"#, #"{"r":3,"b":{"s":"ok","d":{}}}"#,
          #"{"r":4,"b":{"s":"invalid_token","d":"Could not parse auth token."}}"#,
        ])
      // The listen that only the previous user is permitted ends as well.
      let rest = Set([try await socket.next(), try await socket.next()])
      #expect(
        rest == [
          #"{"a":"c","b":{"p":"private/u1"}}"#,
          #"{"r":5,"b":{"s":"permission_denied","d":"Permission denied"}}"#,
        ])
    }
  }

  @Test("9.18: a reconnecting client ends its last session at once, and its onDisconnect operations run")
  func takeOver() async throws {
    try await RealtimeTestServer.run { server in
      let watcher = try await RawSocket.open(server)
      try await watcher.play(
        [#"{"r":1,"a":"q","b":{"p":"/on","h":""}}"#], expect: [#"{"r":1,"b":{"s":"ok","d":{}}}"#])
      let first = try await RawSocket.open(server)
      try await first.play(
        [#"{"r":1,"a":"o","b":{"p":"/on","d":false}}"#, #"{"r":2,"a":"p","b":{"p":"/on","d":true}}"#],
        expect: [#"{"r":1,"b":{"s":"ok","d":""}}"#, #"{"r":2,"b":{"s":"ok","d":""}}"#])
      #expect(try await watcher.next() == #"{"a":"d","b":{"p":"on","d":true}}"#)
      let second = try await RawSocket.open(server, "v=5&ns=demo&ls=\(first.session)")
      #expect(try await watcher.next() == #"{"a":"d","b":{"p":"on","d":false}}"#)
      try await second.play(
        [#"{"r":1,"a":"p","b":{"p":"/on","d":true}}"#], expect: [#"{"r":1,"b":{"s":"ok","d":""}}"#])
      #expect(try await watcher.next() == #"{"a":"d","b":{"p":"on","d":true}}"#)
    }
  }

  @Test(
    "9.18: the replaced session's connection closes after its pending responses, and its later requests are rejected",
    arguments: [false, true])
  func takeOverCloses(isUsed: Bool) async throws {
    try await RealtimeTestServer.run { server in
      let old = try await RawSocket.open(server)
      // The engine does not receive requests that concern only the connection, such as statistics.
      try await old.play(
        [#"{"r":1,"a":"s","b":{"c":{"sdk.js.12":1}}}"#], expect: [#"{"r":1,"b":{"s":"ok","d":""}}"#])
      if isUsed {
        try await old.play(
          [#"{"r":2,"a":"p","b":{"p":"/on","d":1}}"#], expect: [#"{"r":2,"b":{"s":"ok","d":""}}"#])
      }
      let new = try await RawSocket.open(server, "v=5&ns=demo&ls=\(old.session)")
      try await new.play(
        [#"{"r":1,"a":"p","b":{"p":"/on","d":true}}"#], expect: [#"{"r":1,"b":{"s":"ok","d":""}}"#])
      // The server may close the old connection before the client has sent everything.
      try? await old.send(#"{"r":3,"a":"o","b":{"p":"/on","d":false}}"#)
      try? await old.send(#"{"r":4,"a":"p","b":{"p":"/lost","d":1}}"#)
      await #expect(throws: (any Error).self) { _ = try await old.text() }
      await old.close()
      try await new.play(
        [#"{"r":2,"a":"g","b":{"p":"/","q":{}}}"#], expect: [#"{"r":2,"b":{"s":"ok","d":{"on":true}}}"#])
    }
  }
}
