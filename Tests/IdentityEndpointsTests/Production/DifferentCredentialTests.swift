// Tests that every endpoint rejects a request with different credentials, because a proxy and the server could see
// different callers. The same credential at several positions is accepted.

import FirestoreProtobuf
import GRPCFraming
import HearthServer
import JSON
import Testing

@testable import EndpointFixture

@Suite("Different credentials in one request", .serialized)
struct DifferentCredentialTests {
  private static let document = "/v1/projects/demo-prod/databases/(default)/documents/c/a"

  /// Headers with one authorization for each token.
  private func headers(_ tokens: [String], _ more: [(String, String)] = []) -> [(String, String)] {
    tokens.map { ("authorization", "Bearer " + $0) } + [("content-type", "application/json")] + more
  }

  @Test(
    "REST, management, event streams, gRPC and WebChannel reject different credentials and accept equal ones")
  func endpoints() async throws {
    try await ProductionServer.with { server in
      let first = try await server.accessToken(server.account("first"))
      let second = try await server.accessToken(server.account("second"))
      // Each endpoint with the parameters that contain a credential. Each of the two tokens alone is accepted.
      let endpoints:
        [(name: String, client: AuthClient, method: String, path: String, parameters: [String])] = [
          ("Firestore", server.firestore, "GET", Self.document, ["access_token", "oauth_token"]),
          ("Firestore write", server.firestore, "PATCH", Self.document, ["access_token"]),
          ("value", server.database, "GET", "/a.json?ns=demo-prod", ["access_token", "auth"]),
          ("write", server.database, "PUT", "/a.json?ns=demo-prod", ["access_token", "auth"]),
          ("rules", server.database, "GET", "/.settings/rules.json?ns=demo-prod", ["access_token", "auth"]),
          (
            "accounts", server.auth, "GET",
            "/identitytoolkit.googleapis.com/v1/projects/demo-prod/accounts:batchGet", []
          ),
        ]
      for endpoint in endpoints {
        func status(_ tokens: [String], _ query: String = "") async throws -> Int {
          let separator = endpoint.path.contains("?") ? "&" : "?"
          return try await endpoint.client.send(
            endpoint.method, endpoint.path + (query.isEmpty ? "" : separator + query),
            headers: headers(tokens),
            body: endpoint.method == "GET" ? nil : Array("{}".utf8)
          ).status
        }
        let accepted = try await status([first])
        #expect([200, 404].contains(accepted), "\(endpoint.name) \(accepted)")
        #expect(try await status([second]) == accepted)
        #expect(try await status([first, first]) == accepted, "\(endpoint.name)")
        #expect(try await status([first, second]) == 401, "\(endpoint.name)")
        #expect(try await status([second, first]) == 401, "\(endpoint.name)")
        #expect(try await status([first, "owner"]) == 401, "\(endpoint.name)")
        let schemes = try await endpoint.client.send(
          endpoint.method, endpoint.path, headers: headers([first], [("authorization", "Basic eDp5")]),
          body: endpoint.method == "GET" ? nil : Array("{}".utf8))
        #expect(schemes.status == 401, "\(endpoint.name)")
        for parameter in endpoint.parameters {
          #expect(try await status([], "\(parameter)=\(first)") == accepted, "\(endpoint.name) \(parameter)")
          #expect(
            try await status([first], "\(parameter)=\(first)") == accepted, "\(endpoint.name) \(parameter)")
          #expect(try await status([first], "\(parameter)=\(second)") == 401, "\(endpoint.name) \(parameter)")
          #expect(
            try await status([], "\(parameter)=\(first)&\(parameter)=\(second)") == 401,
            "\(endpoint.name) \(parameter)")
        }
        if endpoint.parameters.count == 2 {
          let (a, b) = (endpoint.parameters[0], endpoint.parameters[1])
          #expect(try await status([], "\(a)=\(first)&\(b)=\(second)") == 401, "\(endpoint.name)")
          #expect(try await status([], "\(a)=\(first)&\(b)=\(first)") == accepted, "\(endpoint.name)")
        }
      }
      let stream = try await server.database.send(
        "GET", "/a.json?ns=demo-prod&auth=\(second)",
        headers: headers([first], [("accept", "text/event-stream")]))
      #expect(stream.status == 401)
      let parameter = try await server.auth.send(
        "GET",
        "/identitytoolkit.googleapis.com/v1/projects/demo-prod/accounts:batchGet?access_token=\(second)",
        headers: headers([first]))
      #expect(parameter.status == 401)

      let client = try await GRPCTestClient.connect(port: server.server.firestorePort ?? 0)
      var request = Google_Firestore_V1_GetDocumentRequest()
      request.name = "projects/demo-prod/databases/(default)/documents/c/missing"
      for (tokens, code) in [
        ([first, second], GRPCStatus.Code.unauthenticated), ([first, first], .notFound),
      ] {
        let metadata = tokens.map { ("authorization", "Bearer " + $0) }
        do {
          let _: Google_Firestore_V1_Document = try await client.unary(
            "GetDocument", request, metadata: metadata)
          #expect(code == .ok)
        } catch let status as GRPCStatus {
          #expect(status.code == code)
        }
      }
      await client.close()
      for (tokens, isAccepted) in [([first, second], false), ([first, first], true)] {
        #expect(try await acceptsWebChannel(server, tokens) == isAccepted)
      }
    }
  }

  /// Whether a WebChannel session with these credentials gets the responses of a listen.
  private func acceptsWebChannel(_ server: ProductionServer, _ tokens: [String]) async throws -> Bool {
    let database = "projects/demo-prod/databases/(default)"
    let listen = """
      {"database":"\(database)","addTarget":{"documents":{"documents":["\(database)/documents/c/a"]},"targetId":2}}
      """
    let (client, reply) = try await WebChannelTestClient.handshake(
      server.server.firestorePort ?? 0, "Listen", [listen],
      headers: tokens.map { "Authorization:Bearer \($0)\r\n" }.joined())
    guard reply.status == 200 else { return false }
    let channel = try await client.open(after: 0)
    let text = try await channel.nextMessage()?.text ?? "error"
    await channel.close()
    return !text.contains("error")
  }
}
