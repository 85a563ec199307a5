// Tests the denial logs that administrators read: their explanations, the replay of denials, and the rejection of other
// callers.

import Foundation
import HearthServer
import JSON
import Testing

@testable import EndpointFixture

@Suite("Denial log", .timeLimit(.minutes(5)))
struct DenialLogTests {
  private let rules = "/emulator/v1/projects/demo-test:securityRules"
  private let documents = "/v1/projects/demo-test/databases/(default)/documents"
  private let denials = "/hearth/v1/projects/demo-test/databases/(default)/denials"
  private let realtimeDenials = "/hearth/v1/projects/demo-test/instances/demo-test-default-rtdb/denials"
  private let owner = ["Authorization: Bearer owner"]

  private static func bearer(_ uid: String) -> [String] {
    let parts = [#"{"alg":"none"}"#, #"{"sub":"\#(uid)","role":"guest"}"#].map {
      Base64.encode($0.utf8, .urlSafe, padded: false)
    }
    return ["Authorization: Bearer \(parts.joined(separator: "."))."]
  }

  private func file(_ statement: String) -> String {
    """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{database}/documents {
        match /users/{user} {
          \(statement)
        }
      }
    }
    """
  }

  private func load(_ statement: String, _ server: FirestoreTestServer) async throws {
    let file = JSONValue.object(["name": .string("firestore.rules"), "content": .string(file(statement))])
    let body = JSONValue.object(["rules": .object(["files": .array([file])])])
    #expect(try await server.rest("PUT", rules, String(decoding: body.json(), as: UTF8.self)).status == 200)
  }

  private func draft(_ source: String) -> String {
    String(decoding: JSONValue.object(["source": .string(source)]).json(), as: UTF8.self)
  }

  @Test("A denied read is logged with caller, line, deciding values and the missing field")
  func read() async throws {
    try await FirestoreTestServer.serving { server in
      try await load("allow get: if request.auth.uid == user && resource.data.open;", server)
      _ = try await server.rest(
        "POST", documents + "/users?documentId=u1", #"{"fields":{"n":{"integerValue":"1"}}}"#, headers: owner)
      let denied = try await server.rest("GET", documents + "/users/u1", headers: Self.bearer("u1"))
      #expect(denied.status == 403)
      #expect(denied.error["message"] == .string("\nProperty open is undefined on object. for 'get' @ L5"))
      let log = try await server.rest("GET", denials, headers: owner)
      #expect(log.status == 200 && log.json["denials"].array?.count == 1)
      let entry = log.json["denials"][0]
      #expect(entry["operation"] == .string("get") && entry["paths"][0] == .string("users/u1"))
      #expect(entry["caller"]["uid"] == .string("u1"))
      #expect(entry["caller"]["claims"]["role"] == .string("guest"))
      #expect(entry["ruleset"].string?.count == 64)
      #expect(entry["data"]["document"]["fields"]["n"] == .string("int"))
      let statement = entry["decision"]["statements"][0]
      #expect(statement["line"] == .int(5) && statement["outcome"] == .string("error"))
      #expect(statement["fault"]["missingField"] == .string("open"))
      #expect(statement["fault"]["column"] == .int(49))
      let expressions = statement["expressions"].array ?? []
      #expect(
        expressions.contains {
          $0["expression"] == .string("request.auth.uid == user") && $0["value"] == .string("true")
        })
      let one = try await server.rest("GET", denials + "/1", headers: owner)
      #expect(one.json == entry)
      #expect(try await server.rest("GET", denials + "/2", headers: owner).status == 404)
    }
  }

  @Test("Only administrators of the project read denials")
  func callers() async throws {
    try await FirestoreTestServer.serving { server in
      try await load("allow get: if false;", server)
      _ = try await server.rest("GET", documents + "/users/u1")
      for target in [denials, denials + "/1", realtimeDenials] {
        #expect(try await server.rest("GET", target).status == 401)
        #expect(try await server.rest("GET", target, headers: Self.bearer("u1")).status == 403)
        let page = owner + ["Origin: https://example.com"]
        #expect(try await server.rest("GET", target, headers: page).status == 403)
      }
      #expect(try await server.rest("POST", denials + "/1:replay", "{}").status == 401)
    }
    try await FirestoreTestServer.serving {
      $0.emulator = false
      $0.project = "demo-test"
      $0.auth = .init(port: 0)
    } _: { server in
      let read = try await server.rest("GET", documents + "/users/u1")
      #expect(read.status == 401)
      #expect(try await server.rest("GET", denials).status == 401)
      #expect(try await server.rest("GET", denials, headers: owner).status == 401)
    }
  }

  @Test("A logged decision is replayed with the current rules and with a draft")
  func replay() async throws {
    try await FirestoreTestServer.serving { server in
      try await load("allow create: if request.resource.data.n < 3;", server)
      let denied = try await server.rest(
        "POST", documents + "/users?documentId=u1", #"{"fields":{"n":{"integerValue":"7"}}}"#)
      #expect(denied.status == 403)
      let entry = try await server.rest("GET", denials + "/1", headers: owner).json
      #expect(entry["operation"] == .string("commit") && entry["decision"]["method"] == .string("create"))
      #expect(entry["data"]["before"] == .null && entry["data"]["after"]["fieldCount"] == .int(1))
      #expect(entry["replay"]["isRecorded"].value == .bool(true))
      let replay = denials + "/1:replay"
      let same = try await server.rest("POST", replay, "{}", headers: owner).json
      #expect(same["verdict"] == .string("DENY") && same["ruleset"] == entry["ruleset"])
      let limit = same["decision"]["statements"][0]["expressions"].array ?? []
      #expect(limit.contains { $0["value"] == .string("7") })
      let draft = try await server.rest(
        "POST", replay, self.draft(file("allow write: if request.resource.data.n == 7;")), headers: owner)
      #expect(draft.json["verdict"] == .string("ALLOW") && draft.json["isDraft"].value == .bool(true))
      let lookup = "exists(/databases/$(database)/documents/users/other)"
      let unknown = try await server.rest(
        "POST", replay, self.draft(file("allow write: if \(lookup);")), headers: owner)
      #expect(unknown.json["verdict"] == .string("UNKNOWN"))
      #expect(unknown.json["notRecorded"][0] == .string("users/other"))
      #expect(try await server.rest("POST", replay, self.draft("service"), headers: owner).status == 400)
      try await load("allow create: if true;", server)
      let afterLoad = try await server.rest("POST", replay, headers: owner)
      #expect(afterLoad.json["verdict"] == .string("ALLOW"))
    }
  }

  @Test("A denied request that is too large to be recorded is logged with the reason, and cannot be replayed")
  func largeRequest() async throws {
    try await FirestoreTestServer.serving { server in
      try await load("allow write: if false;", server)
      let text = String(repeating: "x", count: 100_000)
      _ = try await server.rest(
        "POST", documents + "/users?documentId=u1", #"{"fields":{"s":{"stringValue":"\#(text)"}}}"#)
      let entry = try await server.rest("GET", denials + "/1", headers: owner).json
      #expect(entry["replay"]["isRecorded"].value == .bool(false))
      #expect(entry["replay"]["reason"].string?.contains("at most 65536") == true)
      let replay = try await server.rest("POST", denials + "/1:replay", headers: owner)
      #expect(replay.status == 400 && replay.error["status"] == .string("FAILED_PRECONDITION"))
    }
  }

  @Test("A denied query and an administrative operation are logged, the newest first, in pages")
  func pages() async throws {
    try await FirestoreTestServer.serving { server in
      try await load("allow list: if resource.data.open == true;", server)
      let query = #"{"structuredQuery":{"from":[{"collectionId":"users"}]}}"#
      #expect(try await server.rest("POST", documents + ":runQuery", query).error["code"] == .int(403))
      #expect(try await server.rest("POST", documents + ":listCollectionIds", "{}").status == 403)
      let first = try await server.rest("GET", denials + "?pageSize=1", headers: owner).json
      #expect(first["denials"].array?.count == 1)
      #expect(first["denials"][0]["operation"] == .string("listCollections"))
      let token = first["nextPageToken"].string ?? ""
      let second = try await server.rest(
        "GET", denials + "?pageSize=1&pageToken=\(token)", headers: owner
      ).json
      #expect(second["denials"][0]["operation"] == .string("list"))
      #expect(second["denials"][0]["decision"]["method"] == .string("list"))
    }
  }

  @Test("A denied operation of the Realtime Database is logged with rule, location and values, and replayed")
  func tree() async throws {
    try await FirestoreTestServer.servingSuite { _ in
    } _: { server in
      let port = server.server.databasePort ?? 0
      let tree = "?ns=demo-test-default-rtdb"
      let file = """
        {
          "rules": {
            ".read": "auth.uid == 'boss'",
            "a": {
              ".write": true,
              "$k": { ".validate": "newData.isNumber() && newData.val() < root.child('limit').val()" }
            }
          }
        }
        """
      let stored = try await RESTClient.request(
        port, "PUT", "/.settings/rules.json" + tree, body: file, headers: owner)
      #expect(stored.status == 200)
      _ = try await server.realtime("PUT", "/limit.json" + tree, "5")
      let denied = try await RESTClient.request(port, "PUT", "/a/x.json" + tree, body: "9")
      #expect(denied.status == 401 && !denied.body.contains("limit"))
      let read = try await RESTClient.request(port, "GET", "/limit.json" + tree, headers: Self.bearer("u1"))
      #expect(read.status == 401)
      let log = try await server.rest("GET", realtimeDenials, headers: owner).json
      #expect(log["denials"].array?.count == 2)
      let reading = log["denials"][0]["decision"]["statements"][0]
      #expect(reading["rule"] == .string(".read") && reading["location"] == .string("/"))
      #expect(reading["line"] == .int(3))
      #expect(reading["expressions"].array?.contains { $0["value"] == .string("'u1'") } == true)
      let statement = log["denials"][1]["decision"]["statements"][0]
      #expect(statement["rule"] == .string(".validate") && statement["location"] == .string("/a/x"))
      let limit = statement["expressions"].array?.first {
        $0["expression"] == .string("root.child('limit').val()")
      }
      #expect(limit?["value"] == .string("5") && limit?["line"] == .int(6))
      #expect(limit?["column"] == .int(67))
      #expect(log["denials"][1]["data"][0]["after"] == .string("number"))
      let replay = realtimeDenials + "/1:replay"
      #expect(
        try await server.rest("POST", replay, headers: owner).json["verdict"] == .string("DENY"))
      let draft = self.draft(file.replacingOccurrences(of: "<", with: ">"))
      #expect(
        try await server.rest("POST", replay, draft, headers: owner).json["verdict"] == .string("ALLOW"))
    }
  }
}
