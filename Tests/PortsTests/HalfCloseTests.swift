// Tests clients that half-close before they receive the response, as scripts that pipe a request do. Every port
// responds, with and without TLS, and then closes the connection.

import FirestoreProtobuf
import HearthServer
import NIOSSL
import Testing

@testable import EndpointFixture

@Suite("Half-closed connections", .timeLimit(.minutes(2)))
struct HalfCloseTests {
  private static let documents = "/v1/\(FirestoreTestServer.documents)"

  private static func request(_ line: String, _ body: String = "") -> String {
    "\(line) HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
  }

  /// Sends a text, half-closes, and returns the text that arrives until the connection is closed.
  private func response(_ port: Int?, _ text: String, _ tls: NIOSSLContext? = nil) async throws -> String {
    let connection = try await RawConnection.connect(port: port ?? 0, tls: tls)
    if !text.isEmpty { try await connection.send(text) }
    try await connection.finishSending()
    return try await connection.textUntilClose()
  }

  private func count(_ text: String, in answer: String) -> Int {
    answer.split(separator: text, omittingEmptySubsequences: false).count - 1
  }

  /// Runs a test without TLS, then with TLS.
  private func serving(
    _ body: (FirestoreTestServer, NIOSSLContext?) async throws -> Void
  ) async throws {
    try await FirestoreTestServer.servingSuite { server in
      try await body(server, nil)
      let files = try TestCertificate.write()
      var configuration = HearthConfiguration.forTesting()
      configuration.tls = .init(certificate: files.certificate, key: files.key)
      let encrypted = HearthServer(configuration)
      try await encrypted.start()
      let tls = try TestCertificate.clientContext(protocols: ["http/1.1"])
      do {
        try await body(FirestoreTestServer(server: encrypted, client: server.client), tls)
      } catch {
        await encrypted.stop()
        throw error
      }
      await encrypted.stop()
    }
  }

  @Test("REST, the emulator's paths and both databases respond to a half-closed client, then close")
  func responses() async throws {
    try await serving { server, tls in
      let port = server.server.firestorePort
      let created = Self.request(
        "POST \(Self.documents)/c?documentId=a", #"{"fields":{"n":{"integerValue":"7"}}}"#)
      #expect(try await response(port, created, tls).hasPrefix("HTTP/1.1 200 "))
      let read = try RESTClient.parse(
        try await response(port, Self.request("GET \(Self.documents)/c/a"), tls))
      #expect(read.status == 200 && read.json["fields"]["n"]["integerValue"] == .string("7"))
      // A chunked response is also complete.
      let query = Self.request(
        "POST \(Self.documents):runQuery", #"{"structuredQuery":{"from":[{"collectionId":"c"}]}}"#)
      let found = try RESTClient.parse(try await response(port, query, tls))
      #expect(found.status == 200 && found.body.contains(#""integerValue":"7""#), "\(found.body)")
      let rejected = try await response(port, Self.request("GET \(Self.documents)/none/none"), tls)
      #expect(rejected.hasPrefix("HTTP/1.1 404 "))
      let cleared = Self.request("DELETE /emulator/v1/\(FirestoreTestServer.documents)")
      #expect(try await response(port, cleared, tls).hasPrefix("HTTP/1.1 200 "))
      #expect(
        try await response(port, Self.request("GET \(Self.documents)/c/a"), tls).hasPrefix("HTTP/1.1 404 "))
      let put = Self.request("PUT /a.json?ns=demo", "7")
      #expect(try await response(server.server.databasePort, put, tls).hasPrefix("HTTP/1.1 200 "))
    }
  }

  @Test("The hub responds to a half-closed client, also after a slow request")
  func hub() async throws {
    let path = FirestoreTestServer.temporaryDirectory()
    try await FirestoreTestServer.servingSuite { server in
      try await server.fill()
      let port = server.server.hubPort
      #expect(try await response(port, Self.request("GET /emulators")).contains("firestore"))
      let exported = try await response(port, Self.request("POST /_admin/export", "{\"path\":\"\(path)\"}"))
      #expect(exported.hasPrefix("HTTP/1.1 200 "), "\(exported)")
    }
    try await FirestoreTestServer.servingSuite({ $0.importedDirectory = path }) {
      try await $0.expectFilled()
    }
  }

  @Test("Pipelined requests are answered in order", arguments: [2, 30])
  func pipelined(count: Int) async throws {
    try await serving { server, tls in
      let port = server.server.firestorePort
      let text = (0..<count).map { Self.request("GET \(Self.documents)/none/\($0)") }.joined()
      let answer = try await response(port, text, tls)
      #expect(self.count("HTTP/1.1 404 ", in: answer) == count, "\(answer)")
      // An incomplete request does not affect the response to the request before it.
      let more = try await response(
        port, Self.request("POST \(Self.documents):runQuery", #"{"structuredQuery":{}}"#) + "GET /v1/pro", tls
      )
      #expect(more.hasPrefix("HTTP/1.1 "), "\(more)")
    }
  }

  @Test(
    "If a client half-closes before its request is complete, the connection is closed",
    arguments: [
      "", "GET /v1/x HTTP/1.1\r\nHo", "PRI * HTTP/2.0\r\n",
      "POST /v1/projects/demo-test/databases/(default)/documents:commit HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
    ])
  func incompleteRequest(_ text: String) async throws {
    try await serving { server, tls in
      // The test expects only that the connection is closed.
      let answer = try await response(server.server.firestorePort, text, tls)
      #expect(!answer.contains("HTTP/1.1 200 "))
      let idle = try await RawConnection.connect(port: server.server.firestorePort ?? 0, tls: tls)
      try await idle.send(Self.request("GET \(Self.documents)/c/a"))
      #expect(try await idle.text(until: "NOT_FOUND").hasPrefix("HTTP/1.1 404 "))
      try await idle.finishSending()
      _ = try await idle.textUntilClose()
    }
  }

  @Test("A WebChannel back channel (the long streamed response) ends when its client half-closes")
  func backChannel() async throws {
    try await serving { server, tls in
      let (client, opened) = try await WebChannelTestClient.handshake(
        server.server.firestorePort ?? 0, "Listen", [WebChannelTestClient.listen(to: "c/a", 2)], tls: tls)
      #expect(opened.status == 200)
      let connection = try await client.request(
        "GET", "VER=8&RID=rpc&SID=\(client.sid)&AID=0&CI=0&TYPE=xmlhttp&t=1")
      _ = try await connection.text(until: "CURRENT")
      try await connection.finishSending()
      _ = try await connection.textUntilClose()
    }
  }

  @Test("Under TLS, a connection that the client ends without a close_notify alert is closed")
  func missingAlert() async throws {
    try await serving { server, tls in
      guard let tls else { return }
      let connection = try await RawConnection.connect(port: server.server.firestorePort ?? 0, tls: tls)
      try await connection.send(Self.request("GET \(Self.documents)/c/a"))
      #expect(try await connection.text(until: "NOT_FOUND").hasPrefix("HTTP/1.1 404 "))
      try await connection.halfCloseSocket()
      _ = try await connection.textUntilClose()
    }
  }
}
