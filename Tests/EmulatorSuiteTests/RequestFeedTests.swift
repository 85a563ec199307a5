// Tests the feed of decisions that the emulator's web interface reads over a WebSocket.

import HearthServer
import JSON
import Testing

@testable import EndpointFixture

@Suite("Request feed", .timeLimit(.minutes(5)))
struct RequestFeedTests {
  private let document = "/v1/projects/demo-test/databases/(default)/documents/users/u1"

  private func load(_ condition: String, _ server: FirestoreTestServer) async throws {
    let text = """
      rules_version = '2';
      service cloud.firestore {
        match /databases/{database}/documents/users/{user} { allow read: if \(condition); }
      }
      """
    let file = JSONValue.object(["name": .string("firestore.rules"), "content": .string(text)])
    let body = JSONValue.object(["rules": .object(["files": .array([file])])])
    let reply = try await server.rest(
      "PUT", "/emulator/v1/projects/demo-test:securityRules", String(decoding: body.json(), as: UTF8.self))
    #expect(reply.status == 200)
  }

  private func open(_ port: Int, _ headers: String = "") async throws -> RawConnection {
    let connection = try await RawConnection.connect(port: port)
    try await connection.send(
      "GET /requests HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\(headers)\r\n")
    return connection
  }

  @Test("A new client receives the last decisions, then each later decision; the hub announces the feed")
  func feed() async throws {
    try await FirestoreTestServer.servingSuite { _ in
    } _: { server in
      let port = try #require(server.server.firestorePort)
      let hub = try await RESTClient.request(server.server.hubPort ?? 0, "GET", "/emulators").json
      #expect(hub["firestore"]["webSocketPort"] == .int(Int64(port)))
      #expect(hub["firestore"]["webSocketHost"] == .string("127.0.0.1"))
      try await load("true", server)
      _ = try await server.rest("GET", document)
      let socket = try await open(port)
      let start = try await socket.text(until: #""outcome":"allow""#)
      #expect(start.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="))
      #expect(
        start.contains(#"[{"rulesReleaseKey""#)
          && start.contains(#""path":"/databases/(default)/documents/users/u1""#))
      try await load("resource.data.x == 1 || request.auth.uid == 'me'", server)
      _ = try await server.rest("GET", document)
      let next = try await socket.text(until: #""outcome":"error""#)
      #expect(next.contains(#""granularAllowOutcomes":[{"line":3,"outcome":false}]"#))
      #expect(next.contains(#""method":"get""#) && next.contains(#""auth":{"nullValue":null}"#))
      // Rules do not apply to the owner's requests, so the feed does not contain them.
      _ = try await server.rest("GET", document, headers: ["Authorization: Bearer owner"])
      try await socket.send([0x89, 0x86, 0, 0, 0, 0] + Array("pong-1".utf8))
      let rest = try await socket.text(until: "pong-1")
      #expect(!rest.contains("requestId"))
      await socket.close()
    }
  }

  @Test("Pages of other machines do not receive the feed, and production has none")
  func callers() async throws {
    try await FirestoreTestServer.serving { server in
      let socket = try await open(server.server.firestorePort ?? 0, "Origin: https://example.com\r\n")
      #expect(try await socket.text(until: "\r\n").contains("403"))
      await socket.close()
      #expect(try await server.rest("GET", "/requests").status == 400)
    }
    try await FirestoreTestServer.serving {
      $0.emulator = false
      $0.project = "demo-test"
      $0.auth = .init(port: 0)
    } _: { server in
      let socket = try await open(server.server.firestorePort ?? 0)
      #expect(try await socket.text(until: "\r\n").contains("404"))
      await socket.close()
    }
  }
}
