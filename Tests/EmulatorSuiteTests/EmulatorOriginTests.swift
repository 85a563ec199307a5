// Tests that web pages of other machines cannot use an emulator, over every HTTP transport.

import FirestoreProtobuf
import HearthServer
import Testing

@testable import EmulatorSuite
@testable import EndpointFixture

@Suite("Web pages and an emulator", .timeLimit(.minutes(10)))
struct EmulatorOriginTests {
  private static let foreign = ["Origin: https://evil.example"]
  private static let document = "/v1/\(FirestoreTestServer.documents)/a/b"

  @Test("Foreign pages cannot read, write or clear data, and each error names --allow-origin")
  func foreignPages() async throws {
    try await FirestoreTestServer.servingSuite { server in
      try await server.client.commit([.set("a/b", [:])])
      let database = try #require(server.server.databasePort)
      for (port, method, path) in [
        (server.server.firestorePort ?? 0, "GET", Self.document),
        (server.server.firestorePort ?? 0, "OPTIONS", Self.document),
        (server.server.firestorePort ?? 0, "DELETE", "/emulator" + Self.document),
        (server.server.firestorePort ?? 0, "POST", "/reset"),
        (
          server.server.firestorePort ?? 0, "POST",
          "/google.firestore.v1.Firestore/Listen/channel?VER=8&RID=1"
        ),
        (server.server.hubPort ?? 0, "GET", "/emulators"),
        (database, "GET", "/.json?ns=demo-test"), (database, "PUT", "/x.json?ns=demo-test"),
        (database, "GET", "/.lp?start=t&ns=demo-test&v=5"),
      ] {
        let body = ["PUT", "POST"].contains(method) ? "1" : nil
        let reply = try await RESTClient.request(port, method, path, body: body, headers: Self.foreign)
        #expect(
          reply.status == 403 && reply.body.contains("--allow-origin https://evil.example"),
          "\(path): \(reply)")
      }
      let socket = try await RESTClient.request(
        database, "GET", "/.ws?v=5&ns=demo-test",
        headers: Self.foreign + [
          "Upgrade: websocket", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13",
        ])
      #expect(socket.status == 403)
      #expect(try await server.rest("GET", Self.document).status == 200)
    }
  }

  @Test("A page of a configured origin can access data, but not the administration of the emulator")
  func configuredPage() async throws {
    try await FirestoreTestServer.servingSuite({ $0.allowedOrigins = ["https://editor.example"] }) { server in
      let headers = ["Origin: https://editor.example"]
      try await server.client.commit([.set("a/b", [:])])
      #expect(try await server.rest("GET", Self.document, headers: headers).status == 200)
      let clear = "/emulator/v1/\(FirestoreTestServer.documents)"
      for (method, path) in [("POST", "/reset"), ("DELETE", clear)] {
        let reply = try await server.rest(method, path, headers: headers)
        #expect(reply.status == 403 && reply.body.contains("administration"), "\(path): \(reply.body)")
      }
      #expect(
        try await server.rest("DELETE", clear, headers: ["Origin: http://localhost:3000"]).status == 200)
    }
  }

  @Test("Invalid hosts and origins in the configuration prevent the start")
  func invalidOptions() async throws {
    for change: @Sendable (inout HearthConfiguration) -> Void in [
      { $0.allowedOrigins = ["editor.example"] }, { $0.allowedOrigins = ["https://*.example"] },
      { $0.allowedHosts = ["https://editor.example"] },
      {
        $0.emulator = false; $0.allowedHosts = ["editor.example"]
      },
    ] {
      let error = await FirestoreTestServer.startError(change)
      #expect(error.contains("--allow-"), "\(error)")
    }
  }
}
