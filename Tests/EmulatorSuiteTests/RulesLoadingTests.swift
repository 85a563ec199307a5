// Tests that security rules can be loaded into the emulator, and are then in force.

import FirestoreProtobuf
import Foundation
import JSON
import SwiftProtobuf
import Testing

@testable import EndpointFixture

@Suite("Rules of the Firestore emulator", .timeLimit(.minutes(1)))
struct RulesLoadingTests {
  private let rules = "/emulator/v1/projects/demo-test:securityRules"
  private let document = "/v1/projects/demo-test/databases/(default)/documents/users/u1"
  private let owner = ["Authorization: Bearer owner"]

  private func body(_ content: String, ignoring: Bool = false) -> String {
    let file = JSONValue.object(["name": .string("firestore.rules"), "content": .string(content)])
    let request = JSONValue.object([
      "rules": .object(["files": .array([file])]), "ignore_errors": .bool(ignoring),
    ])
    return String(decoding: request.json(), as: UTF8.self)
  }

  private func file(_ condition: String) -> String {
    """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{database}/documents {
        match /users/{user} { allow read, write: if \(condition); }
      }
    }
    """
  }

  @Test(
    "Loaded rules decide immediately, also in databases opened later; rules do not apply to the emulator's owner"
  )
  func enforcement() async throws {
    try await FirestoreTestServer.serving { server in
      #expect(try await server.rest("GET", document).status == 404)
      #expect(try await server.rest("PUT", rules, body(file("false"))).json.keys == [])
      let denied = try await server.rest("GET", document)
      #expect(denied.status == 403 && denied.error["status"] == .string("PERMISSION_DENIED"))
      let second = document.replacingOccurrences(of: "(default)", with: "second")
      #expect(try await server.rest("GET", second).status == 403)
      #expect(try await server.rest("GET", document, headers: owner).status == 404)
      let other = document.replacingOccurrences(of: "demo-test", with: "demo-other")
      #expect(try await server.rest("GET", other).status == 404)
      #expect(try await server.rest("PUT", rules, body(file("user == 'u1'"))).status == 200)
      #expect(try await server.rest("GET", document).status == 404)
    }
  }

  /// Reads a stream up to the change of a target for which a condition holds.
  private func targetChange(
    _ call: GRPCTestCall, where isWanted: (Google_Firestore_V1_TargetChange) -> Bool
  ) async throws -> Google_Firestore_V1_TargetChange {
    while true {
      let message: Proto.ListenResponse = try await call.message()
      if case .targetChange(let change)? = message.responseType, isWanted(change) { return change }
    }
  }

  @Test("A listen is removed when new rules deny it, and when a document that its rules read is deleted")
  func listeners() async throws {
    try await FirestoreTestServer.serving { server in
      let flag = "/databases/$(database)/documents/flags/open"
      _ = try await server.rest("PUT", rules, body(file("exists(\(flag))")))
      let path = "/v1/\(FirestoreTestServer.documents)/flags"
      for change in ["data", "rules"] {
        _ = try await server.rest("POST", path + "?documentId=open", "{}", headers: owner)
        let listen = try await server.client.open("Listen")
        try await listen.send(
          Proto.Listen.with {
            $0.database = FirestoreTestServer.database
            $0.addTarget.targetID = 2
            $0.addTarget.query.parent = FirestoreTestServer.documents
            $0.addTarget.query.structuredQuery.from = [.with { $0.collectionID = "users" }]
          })
        _ = try await targetChange(listen) { $0.targetChangeType == .current }
        if change == "data" {
          _ = try await server.rest("DELETE", path + "/open", headers: owner)
        } else {
          _ = try await server.rest("PUT", rules, body(file("false")))
        }
        let removed = try await targetChange(listen) { $0.targetChangeType == .remove }
        #expect(removed.targetIds == [2] && removed.cause.code == 7, "\(change)")
      }
    }
  }

  @Test("Warnings are reported, and the loaded rules can be read")
  func warnings() async throws {
    try await FirestoreTestServer.serving { server in
      let text = file("foo")
      let reply = try await server.rest("PUT", rules, body(text))
      #expect(reply.status == 200)
      #expect(reply.json["issues"][0]["severity"] == .string("WARNING"))
      #expect(reply.json["issues"][0]["description"] == .string("Invalid variable name: foo."))
      #expect(reply.json["issues"][0]["sourcePosition"]["line"] == .int(4))
      let coverage = try await server.rest("GET", "/emulator/v1/projects/demo-test:ruleCoverage")
      #expect(coverage.json["rules"]["files"][0]["content"] == .string(text))
      #expect(try await server.rest("GET", rules).json["rules"] == coverage.json["rules"])
    }
  }

  @Test("Rules with errors are rejected with line and column, and the earlier rules stay in force")
  func errors() async throws {
    try await FirestoreTestServer.serving { server in
      _ = try await server.rest("PUT", rules, body(file("false")))
      let reply = try await server.rest("PUT", rules, body(file("true &&")))
      #expect(reply.status == 400 && reply.error["status"] == .string("INVALID_ARGUMENT"))
      #expect(reply.error["message"].string?.hasPrefix("Error compiling rules:\nL4:") == true)
      let ignored = try await server.rest("PUT", rules, body(file("true &&"), ignoring: true))
      #expect(ignored.status == 200)
      #expect(ignored.json["issues"][0]["severity"] == .string("ERROR"))
      #expect(try await server.rest("GET", document).status == 403)
    }
  }

  @Test(
    "A request without files is rejected",
    arguments: ["", "{}", "{\"rules\":{\"files\":[]}}", "{\"rules\":{\"files\":[{}]}}"])
  func missingFiles(body: String) async throws {
    try await FirestoreTestServer.serving { server in
      let reply = try await server.rest("PUT", rules, body)
      #expect(reply.status == 400)
    }
  }
}
