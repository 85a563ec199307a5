// Tests that open connections to the Realtime Database of a production server lose their authentication when their
// account is disabled, deleted or revoked, or when their service account is revoked.

import HearthServer
import JSON
import Testing

@testable import EndpointFixture

@Suite("Revocation reaches open connections", .serialized, .timeLimit(.minutes(5)))
struct StreamRevocationTests {
  private static let rules = #"{"rules":{"u":{"$id":{".read":"auth != null && auth.uid == $id"}}}}"#
  /// The time within which a revocation must take effect.
  private static let maximumDelay = Duration.seconds(1)

  /// Opens an event stream and reads its first event.
  private func eventStream(_ port: Int, _ path: String, _ credential: String) async throws -> RawClient {
    let client = try await RawClient.connect(port)
    try await client.send(
      "GET \(path).json?ns=demo-prod&\(credential) HTTP/1.1\r\nHost: localhost\r\n"
        + "Accept: text/event-stream\r\n\r\n")
    _ = try await client.read(through: #"data: {"path":"/","data":null}"#)
    return client
  }

  /// Opens a WebSocket and authenticates it.
  private func socket(_ port: Int, _ token: String, as action: String) async throws -> RawSocket {
    let socket = try await RawSocket.open(port: port, host: "localhost:\(port)", "v=5&ns=demo-prod")
    try await socket.send(#"{"r":1,"a":"\#(action)","b":{"cred":"\#(token)"}}"#)
    let reply = try await socket.next()
    #expect(reply.hasPrefix(#"{"r":1,"b":{"s":"ok""#), "\(reply)")
    return socket
  }

  @Test(
    "A revocation reaches a user's WebSocket (actions ac and c) and event stream (event auth_revoked) in a second",
    arguments: AccountChange.allCases)
  func users(change: AccountChange) async throws {
    try await ProductionServer.with { server in
      let port = server.server.databasePort ?? 0
      let admin = try await server.accessToken(server.account("admin"))
      let published = try await server.database.send(
        "PUT", "/.settings/rules.json?ns=demo-prod", headers: bearer(admin), body: Array(Self.rules.utf8))
      #expect(published.status == 200, "\(String(decoding: published.body, as: UTF8.self))")
      let (user, other) = (try await server.signUp(), try await server.signUp())
      let socket = try await socket(port, user.token, as: "auth")
      try await socket.play(
        [#"{"r":2,"a":"q","b":{"p":"/u/\#(user.id)","h":""}}"#],
        expect: [#"{"r":2,"b":{"s":"ok","d":{}}}"#])
      let stream = try await eventStream(port, "/u/\(user.id)", "auth=\(user.token)")
      let unaffected = try await self.socket(port, other.token, as: "auth")

      try await server.endSessions(of: user.id, by: change, admin: admin)
      let start = ContinuousClock.now
      let notification = try await socket.next()
      #expect(notification.hasPrefix(#"{"a":"ac","b":{"s":"expired_token""#), "\(notification)")
      let cancelled = try await socket.next()
      #expect(cancelled.hasPrefix(#"{"a":"c","b":{"p":"#), "\(cancelled)")
      let rest = String(decoding: await stream.readToEnd(), as: UTF8.self)
      #expect(rest.contains("event: auth_revoked\ndata: credential is no longer valid\n\n"), "\(rest)")
      #expect(ContinuousClock.now - start < Self.maximumDelay)

      try await socket.send(#"{"r":3,"a":"g","b":{"p":"/u/\#(user.id)","q":{}}}"#)
      #expect(try await socket.next().hasPrefix(#"{"r":3,"b":{"s":"permission_denied""#))
      try await unaffected.send(#"{"r":2,"a":"g","b":{"p":"/u/\#(other.id)","q":{}}}"#)
      #expect(try await unaffected.next().hasPrefix(#"{"r":2,"b":{"s":"ok""#))
      await socket.close()
      await unaffected.close()
    }
  }

  @Test("The streams of a revoked service account end, also while it acts as a user")
  func serviceAccounts() async throws {
    try await ProductionServer.with { server in
      let port = server.server.databasePort ?? 0
      let account = try await server.account("backend")
      let token = try await server.accessToken(account)
      let socket = try await socket(port, token, as: "gauth")
      let acting = try await RawSocket.open(port: port, host: "localhost:\(port)", "v=5&ns=demo-prod")
      try await acting.send(#"{"r":1,"a":"gauth","b":{"cred":"\#(token)","authvar":{"uid":"ada"}}}"#)
      #expect(try await acting.next().hasPrefix(#"{"r":1,"b":{"s":"ok""#))
      let stream = try await eventStream(port, "/a", "access_token=\(token)")
      try await server.credentials.revoke(email: account.email, keyID: nil)
      let start = ContinuousClock.now
      for socket in [socket, acting] {
        #expect(try await socket.next().hasPrefix(#"{"a":"ac","b":{"s":"expired_token""#))
      }
      let rest = String(decoding: await stream.readToEnd(), as: UTF8.self)
      #expect(rest.contains("event: auth_revoked\n"), "\(rest)")
      #expect(ContinuousClock.now - start < Self.maximumDelay)
      await socket.close()
      await acting.close()
    }
  }

  @Test(
    "A revoked key ends the streams of this key within a second, and no stream of the account's other keys")
  func keys() async throws {
    try await ProductionServer.with { server in
      let port = server.server.databasePort ?? 0
      let (first, second) = (try await server.account("backend"), try await server.account("backend"))
      #expect(first.email == second.email && first.keyID != second.keyID)
      let (token, other) = (try await server.accessToken(first), try await server.accessToken(second))
      let selfSigned = try first.sign(["aud": .string("https://firebasedatabase.googleapis.com/")])
      var ending: [RawSocket] = []
      for credential in [token, selfSigned] {
        ending.append(try await socket(port, credential, as: "gauth"))
        for variable in [#"{"uid":"ada"}"#, "null"] {
          let acting = try await RawSocket.open(port: port, host: "localhost:\(port)", "v=5&ns=demo-prod")
          try await acting.send(
            #"{"r":1,"a":"gauth","b":{"cred":"\#(credential)","authvar":\#(variable)}}"#)
          #expect(try await acting.next().hasPrefix(#"{"r":1,"b":{"s":"ok""#))
          ending.append(acting)
        }
      }
      let stream = try await eventStream(port, "/a", "access_token=\(token)")
      let unaffected = try await socket(port, other, as: "gauth")
      let unaffectedStream = try await eventStream(port, "/a", "access_token=\(other)")

      try await server.credentials.revoke(email: first.email, keyID: first.keyID)
      let start = ContinuousClock.now
      for socket in ending {
        #expect(try await socket.next().hasPrefix(#"{"a":"ac","b":{"s":"expired_token""#))
      }
      let rest = String(decoding: await stream.readToEnd(), as: UTF8.self)
      #expect(rest.contains("event: auth_revoked\n"), "\(rest)")
      #expect(ContinuousClock.now - start < Self.maximumDelay)

      try await unaffected.send(#"{"r":2,"a":"p","b":{"p":"/a","d":1}}"#)
      #expect(try await unaffected.next().hasPrefix(#"{"r":2,"b":{"s":"ok""#))
      _ = try await unaffectedStream.read(through: #"data: {"path":"/","data":1}"#)
      for (credential, status) in [(token, 401), (selfSigned, 401), (other, 200)] {
        let reply = try await server.database.send(
          "GET", "/a.json?ns=demo-prod", headers: bearer(credential))
        #expect(reply.status == status)
      }
      for socket in ending + [unaffected] { await socket.close() }
    }
  }
}
