// Tests the coverage reports of both rule languages. For Firestore they contain the same positions as the reports of
// Google's emulator.

import Foundation
import HearthServer
import JSON
import Testing

@testable import EndpointFixture

@Suite("Rule coverage", .timeLimit(.minutes(5)))
struct RuleCoverageTests {
  private let project = "/emulator/v1/projects/demo-test"
  private let documents = "/v1/projects/demo-test/databases/(default)/documents"
  private let owner = ["Authorization: Bearer owner"]

  private let file = """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{database}/documents {
        function me() { let a = request.auth; return a != null ? a.uid : ''; }
        match /boards/{board} {
          allow get: if resource == null || resource.data.open == true;
          allow list: if resource.data.open == true && request.query.limit <= 20;
          allow create: if me() != '' && 'a' in request.resource.data;
          allow update: if (me() == 'u1') && resource.data.missing.x == 1;
        }
        match /x/{any} { allow read; }
      }
    }

    """

  private func load(_ text: String, _ server: FirestoreTestServer) async throws {
    let file = JSONValue.object(["name": .string("my.rules"), "content": .string(text)])
    let body = JSONValue.object(["rules": .object(["files": .array([file])])])
    let reply = try await server.rest(
      "PUT", project + ":securityRules", String(decoding: body.json(), as: UTF8.self))
    #expect(reply.status == 200)
  }

  /// Returns the position of an expression: its line and column, and the offsets of its start and end.
  private func position(_ node: JSONTree) -> [Int64] {
    let position = node["sourcePosition"]
    return ["line", "column", "currentOffset", "endOffset"].map { position[$0].value.int ?? -1 }
  }

  @Test(
    "The report has the positions of Google's emulator, and counts values, errors and skipped expressions")
  func report() async throws {
    try await FirestoreTestServer.serving { server in
      try await load(file, server)
      let empty = try await server.rest("GET", project + ":ruleCoverage").json
      #expect(empty["rules"]["files"][0]["name"] == .string("my.rules"))
      #expect(
        empty["report"].array?.map { position($0) } == [
          [4, 21, 109, 159], [6, 21, 212, 257], [7, 22, 281, 335], [8, 24, 361, 402], [9, 24, 428, 473],
        ])
      #expect(empty["report"][1]["values"] == .null)
      #expect(try await server.rest("GET", documents + "/boards/b1").status == 404)
      _ = try await server.rest("PATCH", documents + "/boards/b1", "{}", headers: owner)
      #expect(try await server.rest("GET", documents + "/boards/b1").status == 403)
      let report = try await server.rest("GET", project + ":ruleCoverage").json["report"]
      let get = report[1]
      #expect(get["values"][0]["value"]["boolValue"].value == .bool(true))
      #expect(get["values"][1]["value"].keys == ["undefined"] && get["values"][1]["count"] == .int(1))
      let right = get["children"][1]
      #expect(position(right) == [6, 41, 232, 257])
      #expect(right["values"].array?.map { $0["value"].keys } == [["undefined"], []])
      #expect(right["values"][1]["count"] == .int(1))
      #expect(position(right["children"][0]) == [6, 41, 232, 249])
      #expect(position(report[0]["children"][1]["children"][0]) == [4, 50, 138, 146])
      #expect(position(report[3]["children"][0]["children"][0]) == [8, 24, 361, 362])
      #expect(position(report[3]["children"][1]["children"][0]) == [8, 45, 382, 402])
      #expect(position(report[4]["children"][0]) == [9, 24, 428, 440])
    }
  }

  @Test("New rules begin a new report; its HTML form escapes the rules, its lcov form names file and lines")
  func forms() async throws {
    try await FirestoreTestServer.serving { server in
      try await load(file, server)
      _ = try await server.rest("GET", documents + "/boards/b1")
      let lcov = try await server.rest("GET", project + ":ruleCoverage.lcov")
      #expect(lcov.body.contains("SF:my.rules\n") && lcov.body.contains("DA:6,1\n"))
      #expect(lcov.body.contains("DA:7,0\n") && lcov.body.contains("BRDA:6,1,0,1\n"))
      let page = try await server.rest("GET", project + ":ruleCoverage.html")
      #expect(page.headers["content-type"] == "text/html; charset=utf-8")
      #expect(page.body.contains("1 × {&quot;boolValue&quot;:true}"))
      #expect(page.body.contains("&lt;=") && !page.body.contains("<script"))
      try await load(file.replacingOccurrences(of: "20", with: "30"), server)
      let report = try await server.rest("GET", project + ":ruleCoverage").json
      #expect(report["report"][1]["values"] == .null)
    }
  }

  @Test("Rules of the Realtime Database have a coverage report too; a production server records no coverage")
  func tree() async throws {
    try await FirestoreTestServer.servingSuite { _ in
    } _: { server in
      let port = server.server.databasePort ?? 0
      let rules = #"{"rules":{"a":{".read":"auth != null || data.val() == 'é\u0041'"}}}"#
      let stored = try await RESTClient.request(
        port, "PUT", "/.settings/rules.json?ns=n", body: rules, headers: owner)
      #expect(stored.status == 200)
      _ = try await server.realtime("PUT", "/a.json?ns=n", #""éA""#)
      #expect(try await RESTClient.request(port, "GET", "/a.json?ns=n").status == 200)
      let report = try await RESTClient.request(port, "GET", "/.inspect/coverage.json?ns=n").json
      #expect(report["rules"] == .string(rules))
      let rule = report["report"][0]
      #expect(position(rule) == [1, 25, 24, 62])
      #expect(rule["values"][0]["value"]["boolValue"].value == .bool(true))
      #expect(rule["children"].array?.map { position($0) } == [[1, 25, 24, 35], [1, 41, 40, 62]])
      #expect(rule["children"][1]["children"][0]["values"][0]["value"]["stringValue"] == .string("éA"))
      let page = try await RESTClient.request(port, "GET", "/.inspect/coverage?ns=n")
      #expect(page.status == 200 && page.body.contains("evaluated 1 times"))
    }
  }
}
