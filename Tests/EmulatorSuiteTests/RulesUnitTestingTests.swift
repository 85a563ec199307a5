// Sends the requests that @firebase/rules-unit-testing sends to the emulators: discovery, loading rules, contexts,
// clearing.

import Foundation
import HearthServer
import JSON
import Testing

@testable import EndpointFixture

@Suite("Calls of rules-unit-testing", .timeLimit(.minutes(1)))
struct RulesUnitTestingTests {
  private let documents = "/v1/projects/demo-test/databases/(default)/documents"
  private let owner = ["Authorization: Bearer owner"]

  private let rules = """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{database}/documents/users/{user} {
        allow read, write: if request.auth.uid == user && request.auth.token.email_verified;
      }
    }
    """

  /// The token of `authenticatedContext`, which was issued in 1970 and is not signed.
  private func context(_ user: String) -> [String] {
    let payload = """
      {"iss":"https://securetoken.google.com/demo-test","aud":"demo-test","iat":0,"exp":3600,"auth_time":0,
      "sub":"\(user)","user_id":"\(user)","firebase":{"sign_in_provider":"custom","identities":{}},
      "email_verified":true}
      """
    let parts = [#"{"alg":"none","type":"JWT"}"#, payload].map {
      Base64.encode($0.utf8, .urlSafe, padded: false)
    }
    return ["Authorization: Bearer \(parts.joined(separator: "."))."]
  }

  @Test(
    "A test environment finds the emulators, loads rules, acts as users or without rules, and clears the data"
  )
  func environment() async throws {
    try await FirestoreTestServer.servingSuite { _ in
    } _: { server in
      let hub = server.server.hubPort ?? 0
      // initializeTestEnvironment: the hub names host and port of each emulator.
      let found = try await RESTClient.request(hub, "GET", "/emulators").json
      let port = try #require(found["firestore"]["port"].value.int.map(Int.init))
      let databasePort = try #require(found["database"]["port"].value.int.map(Int.init))
      #expect(found["firestore"]["host"] == .string("127.0.0.1"))
      // loadFirestoreRules: the file has no name, and the request has no credentials.
      let file = JSONValue.object(["content": .string(rules)])
      let body = JSONValue.object(["rules": .object(["files": .array([file])])])
      let loaded = try await RESTClient.request(
        port, "PUT", "/emulator/v1/projects/demo-test:securityRules",
        body: String(decoding: body.json(), as: UTF8.self))
      #expect(loaded.status == 200)
      // loadDatabaseRules: a namespace with the project's name.
      let tree =
        #"{"rules":{"users":{"$user":{".read":"auth.uid === $user",".write":"auth.uid === $user"}}}}"#
      let stored = try await RESTClient.request(
        databasePort, "PUT", "/.settings/rules.json?ns=demo-test", body: tree, headers: owner)
      #expect(stored.status == 200)

      // withSecurityRulesDisabled acts as the owner. The contexts act as users or as callers without credentials.
      let document = documents + "/users/alice"
      let field = #"{"fields":{"n":{"integerValue":"1"}}}"#
      #expect(try await server.rest("PATCH", document, field, headers: owner).status == 200)
      #expect(try await server.rest("GET", document, headers: context("alice")).status == 200)
      for headers in [context("bob"), []] {
        // assertFails reads the code.
        let denied = try await server.rest("GET", document, headers: headers)
        #expect(denied.status == 403 && denied.error["status"] == .string("PERMISSION_DENIED"))
      }
      let value = "/users/alice.json?ns=demo-test"
      #expect(
        try await RESTClient.request(databasePort, "PUT", value, body: "1", headers: context("alice")).status
          == 200)
      #expect(try await RESTClient.request(databasePort, "GET", value, headers: context("bob")).status == 401)

      // withFunctionTriggersDisabled
      for path in ["disable", "enable"] {
        let reply = try await RESTClient.request(hub, "PUT", "/functions/\(path)BackgroundTriggers")
        #expect(reply.status == 200)
      }
      // clearFirestore: without credentials. Rules stay.
      let cleared = try await server.rest(
        "DELETE", "/emulator/v1/projects/demo-test/databases/(default)/documents")
      #expect(cleared.status == 200)
      #expect(try await server.rest("GET", document, headers: context("alice")).status == 404)
      #expect(try await server.rest("GET", document, headers: context("bob")).status == 403)
      // clearDatabase: the owner sets the root to null.
      #expect(
        try await RESTClient.request(databasePort, "PUT", "/.json?ns=demo-test", body: "null", headers: owner)
          .status == 200)
      #expect(
        try await RESTClient.request(databasePort, "GET", value, headers: context("alice")).json == .null)
    }
  }
}
