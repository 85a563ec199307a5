// Tests the emulator's paths on the Firestore port: clearing databases, and security rules.

import FirestoreProtobuf
import HearthServer
import JSON
import RealtimeModel
import SwiftProtobuf
import Testing

@testable import EmulatorSuite
@testable import EndpointFixture

@Suite("Emulator HTTP interface", .timeLimit(.minutes(10)))
struct EmulatorTests {
  private let clear = "/emulator/v1/" + FirestoreTestServer.documents

  private func names(_ server: FirestoreTestServer, _ database: String) async throws -> [String] {
    let reply = try await server.rest(
      "POST", "/v1/\(database)/documents:runQuery",
      "{\"structuredQuery\":{\"from\":[{\"allDescendants\":true}],\"select\":{\"fields\":[{\"fieldPath\":\"__name__\"}]}}}"
    )
    return reply.json.array?.compactMap {
      $0["document"]["name"].string?.split(separator: "/documents/").last
    }
    .map(String.init) ?? []
  }

  @Test("Clearing a database keeps other databases; clearing an unknown database succeeds")
  func clearing() async throws {
    try await FirestoreTestServer.serving { server in
      let other = "projects/demo-test/databases/Other"
      try await server.client.commit([.set("a/b", [:]), .set("a/b/c/d", [:]), .set("x/none/y/z", [:])])
      #expect(try await server.rest("PATCH", "/v1/\(other)/documents/a/b", "{}").status == 200)
      let reply = try await server.rest("DELETE", clear)
      #expect(reply.status == 200 && reply.body == "{}\n")
      #expect(try await names(server, FirestoreTestServer.database).isEmpty)
      #expect(try await names(server, other) == ["a/b"])
      #expect(
        try await server.rest("DELETE", "/emulator/v1/projects/p/databases/new/documents").status == 200)
      #expect(try await server.rest("GET", clear).status == 404)
      #expect(try await server.rest("POST", "/reset", "").body == "Resetting...\n")
      #expect(try await names(server, other).isEmpty)
    }
  }

  @Test(
    "Clearing a path deletes a document with its subcollections, or a collection",
    arguments: [
      ("/a/b", ["a/c", "x/y"]), ("/a", ["x/y"]), ("/a/b/sub", ["a/b", "a/c", "x/y"]), ("/none", []),
    ])
  func subtrees(path: String, rest: [String]) async throws {
    try await FirestoreTestServer.serving { server in
      try await server.client.commit(["a/b", "a/b/sub/s", "a/c", "x/y"].map { .set($0, [:]) })
      #expect(try await server.rest("DELETE", clear + path).status == 200)
      let left = try await names(server, FirestoreTestServer.database)
      #expect(left.sorted() == (rest.isEmpty ? ["a/b", "a/b/sub/s", "a/c", "x/y"] : rest))
    }
  }

  @Test("Listeners receive a cleared database as one snapshot, also during a transaction")
  func listeners() async throws {
    try await FirestoreTestServer.serving { server in
      try await server.client.commit((0..<50).map { .set("c/d\($0)", [:]) })
      let begun = try await server.rest("POST", "/v1/\(FirestoreTestServer.documents):beginTransaction", "{}")
      let token = try #require(begun.json["transaction"].string)
      _ = try await server.rest(
        "POST", "/v1/\(FirestoreTestServer.documents):batchGet",
        "{\"transaction\":\"\(token)\",\"documents\":[\"\(FirestoreTestServer.documents)/c/d1\"]}")
      let listen = try await server.client.open("Listen")
      try await listen.send(
        Proto.Listen.with {
          $0.database = FirestoreTestServer.database
          $0.addTarget.targetID = 2
          $0.addTarget.query.parent = FirestoreTestServer.documents
          $0.addTarget.query.structuredQuery.from = [.with { $0.collectionID = "c" }]
        })
      let found = try await Self.snapshot(listen).filter {
        if case .documentChange? = $0.responseType { true } else { false }
      }
      #expect(found.count == 50)
      #expect(try await server.rest("DELETE", clear).status == 200)
      let gone = try await Self.snapshot(listen).filter {
        if case .documentDelete? = $0.responseType { true } else { false }
      }
      #expect(gone.count == 50)
    }
  }

  /// Returns the responses of a stream up to the next consistent snapshot that is not empty.
  private static func snapshot(_ call: GRPCTestCall) async throws -> [Proto.Listened] {
    var seen: [Proto.Listened] = []
    while true {
      let message: Proto.Listened = try await call.message()
      seen.append(message)
      guard case .targetChange(let change)? = message.responseType, change.targetIds.isEmpty,
        change.hasReadTime
      else { continue }
      if seen.contains(where: { if case .targetChange? = $0.responseType { false } else { true } }) {
        return seen
      }
    }
  }

  private let rules = "/emulator/v1/projects/demo-test:securityRules"

  private func body(_ content: String, ignoring: Bool = false) -> String {
    let file = JSONValue.object(["name": .string("firestore.rules"), "content": .string(content)])
    let request = JSONValue.object([
      "rules": .object(["files": .array([file])]), "ignore_errors": .bool(ignoring),
    ])
    return String(decoding: request.json(), as: UTF8.self)
  }

  static let valid = """
    rules_version = '2';
    // Comments, /* of both kinds */
    service cloud.firestore {
      match /databases/{database}/documents {
        function owns(user) { let a = [1, 2]; return request.auth.uid == user && a.size() > 0; }
        match /users/{user=**} {
          allow read, write: if owns(user) || get(/databases/$(database)/documents/a/b).data['x'] == "}";
          allow list;
        }
      }
    }
    """

  @Test("Rules may begin with a byte-order mark")
  func byteOrderMark() { #expect(RulesForm.fault(in: "\u{FEFF}" + Self.valid) == nil) }

  @Test("Valid rules are accepted with the warning that they are not enforced")
  func acceptedRules() async throws {
    try await FirestoreTestServer.serving { server in
      let reply = try await server.rest("PUT", rules, body(Self.valid))
      #expect(reply.status == 200)
      #expect(reply.json["issues"][0]["severity"] == .string("WARNING"))
      #expect(reply.json["issues"][0]["description"].string?.contains("not enforced") == true)
      let coverage = try await server.rest("GET", "/emulator/v1/projects/demo-test:ruleCoverage")
      #expect(coverage.json["rules"]["files"][0]["content"] == .string(Self.valid))
      #expect(coverage.json["report"] == .array([]))
      #expect(try await server.rest("GET", rules).json["rules"] == coverage.json["rules"])
    }
  }

  @Test(
    "Invalid rules are rejected with their position, or reported if errors are ignored",
    arguments: [
      (
        "service cloud.firestore { match /a/{b} { allow read: if; } }",
        "L1:56 Missing conditional expression after 'if'."
      ),
      ("service cloud.firestore {\n  match /a {", "L2:12 Missing the end of '{'."),
      ("service cloud.firestore { match a { } }", "L1:33 Missing the path of 'match': it begins with '/'."),
      (
        "service cloud.firestore { allow sing; }",
        "L1:33 Missing what to allow: read, write, get, list, create, update or delete."
      ),
      ("service cloud.firestore { } )", "L1:29 Unexpected ')'."),
      ("'open", "L1:1 Missing the end of a string."),
      ("/* open", "L1:1 Missing the end of a comment."), ("", "L1:1 Missing 'service cloud.firestore'."),
      ("nonsense", "L1:1 Unexpected text outside of a service."),
      // A byte-order mark does not count as a column.
      ("\u{FEFF}nonsense", "L1:1 Unexpected text outside of a service."),
    ])
  func invalidRules(text: String, message: String) async throws {
    try await FirestoreTestServer.serving { server in
      let reply = try await server.rest("PUT", rules, body(text))
      #expect(reply.status == 400 && reply.error["status"] == .string("INVALID_ARGUMENT"))
      #expect(reply.error["message"] == .string("Error compiling rules: " + message))
      let ignored = try await server.rest("PUT", rules, body(text, ignoring: true))
      #expect(ignored.status == 200)
      #expect(ignored.json["issues"][0]["severity"] == .string("ERROR"))
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

  @Test("Damaged rules never crash the syntax check")
  func damage() {
    var random = SystemRandomNumberGenerator()
    let sample = Array(Self.valid.utf8)
    for _ in 0..<3000 {
      var text = sample
      for _ in 0..<Int.random(in: 1...5, using: &random) {
        let index = Int.random(in: 0..<text.count, using: &random)
        if Bool.random(using: &random) {
          text.remove(at: index)
        } else {
          text[index] = sample.randomElement(using: &random) ?? 0
        }
      }
      _ = RulesForm.fault(in: String(decoding: text, as: UTF8.self))
    }
    #expect(RulesForm.fault(in: Self.valid) == nil)
  }

  @Test("A database is created by the first use of its name, and databases share no documents")
  func databases() async throws {
    try await FirestoreTestServer.serving { server in
      let names = [
        "projects/one/databases/(default)", "projects/one/databases/x", "projects/Two/databases/X_y",
      ]
      for (index, name) in names.enumerated() {
        let body = "{\"fields\":{\"n\":{\"integerValue\":\(index)}}}"
        #expect(try await server.rest("PATCH", "/v1/\(name)/documents/a/b", body).status == 200)
      }
      for (index, name) in names.enumerated() {
        let read = try await server.rest("GET", "/v1/\(name)/documents/a/b")
        #expect(read.json["fields"]["n"]["integerValue"] == .string("\(index)"))
      }
    }
  }
}
