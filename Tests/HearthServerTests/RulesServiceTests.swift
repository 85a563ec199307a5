// Tests of the Firebase Rules API through a running server: the calls of `firebase deploy` and of the Admin SDK. In this
// API a ruleset is a stored rules file, and a release names the ruleset that is in force for a database.

import FirestoreModel
import Foundation
import HearthServer
import JSON
import Testing

@Suite("Firebase Rules API", .timeLimit(.minutes(2)))
struct RulesServiceTests {
  /// A running emulator, and its Firestore port.
  private struct Server {
    let port: Int

    /// Sends a request of the emulator's owner.
    /// - Returns: the status, and the JSON of the response.
    func send(
      _ request: String, _ body: JSONObject? = nil, headers: [String] = ["Authorization: Bearer owner"]
    ) async throws -> (status: Int, json: JSONValue) {
      let text = body.map { String(decoding: JSONValue.object($0).json(), as: UTF8.self) } ?? ""
      let response = try await PlainRequest.send(port, request, text, headers: headers)
      let status = try #require(Int(response.split(separator: " ")[1]))
      let parts = response.split(separator: "\r\n\r\n", maxSplits: 1)
      return (status, parts.count > 1 ? (try? JSONValue(json: String(parts[1]))) ?? .null : .null)
    }

    /// The status of a read of a document by a caller without credentials.
    func readStatus(database: String = "(default)") async throws -> Int {
      try await send("GET /v1/projects/demo/databases/\(database)/documents/c/d", headers: []).status
    }
  }

  private func withServer(_ body: (Server) async throws -> Void) async throws {
    let server = HearthServer(.forTesting())
    try await server.start()
    do { try await body(Server(port: try #require(server.firestorePort))) } catch {
      await server.stop()
      throw error
    }
    await server.stop()
  }

  private func source(_ condition: String) -> JSONObject {
    let text = """
      rules_version = '2';
      service cloud.firestore {
        match /databases/{database}/documents { match /c/{id} { allow read: if \(condition); } }
      }
      """
    let files: [JSONValue] = [.object(["name": .string("firestore.rules"), "content": .string(text)])]
    return ["source": .object(["files": .array(files)])]
  }

  private func release(_ ruleset: JSONValue?, _ id: String = "cloud.firestore") -> JSONObject {
    ["name": .string("projects/demo/releases/\(id)"), "rulesetName": ruleset ?? .null]
  }

  @Test("The calls of `firebase deploy --only firestore:rules` check, store and release rules")
  func deploy() async throws {
    try await withServer { server in
      #expect(try await server.readStatus() == 404)
      let root = "/v1/projects/demo"
      let before = try await server.send("GET \(root)/releases?pageSize=10")
      #expect(before.status == 200 && before.json["releases"]?.array?.isEmpty == true)
      #expect(try await server.send("POST \(root):test", source("false")).json.object?.isEmpty == true)
      let created = try await server.send("POST \(root)/rulesets", source("false"))
      #expect(created.status == 200)
      let name = try #require(created.json["name"])
      #expect(name.string?.hasPrefix("projects/demo/rulesets/") == true)
      #expect(try await server.readStatus() == 404)
      // The CLI updates the release first, and creates it after any error.
      let update: JSONObject = ["release": .object(release(name))]
      #expect(try await server.send("PATCH \(root)/releases/cloud.firestore", update).status == 404)
      let first = try await server.send("POST \(root)/releases", release(name))
      #expect(first.status == 200 && first.json["name"]?.string == "projects/demo/releases/cloud.firestore")
      #expect(try await server.readStatus() == 403)
      #expect(try await server.send("POST \(root)/releases", release(name)).status == 409)
      // The next deployment compares the source of the release with the file.
      let listed = try await server.send("GET \(root)/releases?pageSize=10").json["releases"]?.array ?? []
      #expect(listed.map { $0["rulesetName"] } == [name])
      let content = try await server.send("GET /v1/\(name.string ?? "")").json["source"]
      #expect(content == source("false")["source"])
      let next = try await server.send("POST \(root)/rulesets", source("true")).json["name"]
      let updated = try await server.send(
        "PATCH \(root)/releases/cloud.firestore", ["release": .object(release(next))])
      #expect(updated.status == 200 && updated.json["rulesetName"] == next)
      #expect(try await server.readStatus() == 404)
    }
  }

  @Test("Errors and warnings of a source have positions, and a source with errors is not stored")
  func issues() async throws {
    try await withServer { server in
      let answer = try await server.send("POST /v1/projects/demo:test", source("true &&"))
      let issue = try #require(answer.json["issues"]?.array?.first)
      #expect(answer.status == 200 && issue["severity"]?.string == "ERROR")
      #expect(issue["sourcePosition"]?["fileName"]?.string == "firestore.rules")
      #expect(issue["sourcePosition"]?["line"]?.int == 3 && issue["sourcePosition"]?["column"]?.int != nil)
      let created = try await server.send("POST /v1/projects/demo/rulesets", source("true &&"))
      #expect(created.status == 400 && created.json["error"]?["status"]?.string == "INVALID_ARGUMENT")
      let warned = try await server.send("POST /v1/projects/demo:test", source("unknown"))
      #expect(warned.json["issues"]?.array?.first?["severity"]?.string == "WARNING")
      #expect(try await server.send("POST /v1/projects/demo/rulesets", [:]).status == 400)
      #expect(try await server.send("GET /v1/projects/demo/rulesets").json.object?.isEmpty == true)
    }
  }

  @Test("The calls of the Admin SDK list, read and delete rulesets; the ruleset in force cannot be deleted")
  func rulesets() async throws {
    try await withServer { server in
      let root = "/firebaserules.googleapis.com/v1/projects/demo"
      var names: [JSONValue] = []
      for number in 1...5 {
        names.append(
          try #require(
            try await server.send("POST \(root)/rulesets", source("\(number) == 1")).json["name"]))
      }
      var listed: [JSONValue] = []
      var token = ""
      repeat {
        let page = try await server.send("GET \(root)/rulesets?pageSize=2&pageToken=\(token)")
        #expect(page.status == 200)
        let rulesets = page.json["rulesets"]?.array ?? []
        #expect(rulesets.allSatisfy { $0["source"] == nil && $0["createTime"] != nil })
        listed += rulesets.compactMap { $0["name"] }
        token = page.json["nextPageToken"]?.string ?? ""
      } while !token.isEmpty
      #expect(listed == names.reversed())
      _ = try await server.send("POST \(root)/releases", release(names[0]))
      let id = names[0].string?.split(separator: "/").last ?? ""
      let inForce = try await server.send("DELETE \(root)/rulesets/\(id)")
      #expect(inForce.status == 400 && inForce.json["error"]?["status"]?.string == "FAILED_PRECONDITION")
      let other = names[1].string?.split(separator: "/").last ?? ""
      #expect(try await server.send("DELETE \(root)/rulesets/\(other)").status == 200)
      #expect(try await server.send("GET \(root)/rulesets/\(other)").status == 404)
      #expect(try await server.send("GET \(root)/rulesets?pageToken=eA").status == 400)
    }
  }

  @Test("A named database has its own release; deleting a release takes its rules out of force")
  func namedDatabase() async throws {
    try await withServer { server in
      let root = "/v1/projects/demo"
      let name = try await server.send("POST \(root)/rulesets", source("false")).json["name"]
      let id = "cloud.firestore/reports"
      #expect(try await server.send("POST \(root)/releases", release(name, id)).status == 200)
      #expect(try await server.readStatus(database: "reports") == 403)
      #expect(try await server.readStatus() == 404)
      let read = try await server.send("GET \(root)/releases/\(id)")
      #expect(read.status == 200 && read.json["rulesetName"] == name)
      let filtered = try await server.send("GET \(root)/releases?filter=name%3Dcloud.firestore%2Fr*")
      #expect(filtered.json["releases"]?.array?.count == 1)
      #expect(
        try await server.send("GET \(root)/releases?filter=name%3Dx").json["releases"]?.array?.isEmpty == true
      )
      #expect(try await server.send("DELETE \(root)/releases/\(id)").status == 200)
      #expect(try await server.readStatus(database: "reports") == 404)
      #expect(try await server.send("GET \(root)/releases/\(id)").status == 404)
    }
  }

  @Test("A test call decides each case of its suite, with the case's stored document and mocked functions")
  func testSuite() async throws {
    try await withServer { server in
      let text = """
        rules_version = '2';
        service cloud.firestore { match /databases/{db}/documents {
          match /c/{id} {
            allow get: if resource.data.owner == request.auth.uid;
            allow create: if get(/databases/$(db)/documents/u/$(request.auth.uid)).data.admin;
          }
        } }
        """
      func suite(_ cases: String) throws -> JSONObject {
        let files: [JSONValue] = [.object(["name": .string("f"), "content": .string(text)])]
        return [
          "source": .object(["files": .array(files)]),
          "testSuite": .object(["testCases": try JSONValue(json: cases)]),
        ]
      }
      let path = #""path": "/databases/(default)/documents/c/d", "auth": {"uid": "a", "token": {}}"#
      let mock =
        #"{"function": "get", "args": [{"exactValue": "/databases/(default)/documents/u/a"}], "result": {"value": {"data": {"admin": true}}}}"#
      let answer = try await server.send(
        "POST /v1/projects/demo:test",
        suite(
          """
          [{"expectation": "ALLOW", "request": {"method": "get", \(path)}, "resource": {"data": {"owner": "a"}}},
           {"expectation": "ALLOW", "request": {"method": "get", \(path)}, "resource": {"data": {"owner": "b"}}},
           {"expectation": "DENY", "request": {"method": "get", \(path)}},
           {"expectation": "ALLOW", "request": {"method": "create", \(path), "resource": {"data": {}}}, "functionMocks": [\(mock)]},
           {"expectation": "DENY", "request": {"method": "create", \(path), "resource": {"data": {}}}}]
          """))
      let results = answer.json["testResults"]?.array ?? []
      #expect(
        results.compactMap { $0["state"]?.string } == ["SUCCESS", "FAILURE", "SUCCESS", "SUCCESS", "SUCCESS"])
      #expect(results[1]["errorPosition"]?["line"]?.int == 4)
      #expect(results[1]["debugMessages"]?.array?.isEmpty == false)
      #expect(results[3]["functionCalls"]?.array?.count == 1)
      for bad in [
        #"[{"request": {"method": "get", \#(path)}}]"#, #"[{"expectation": "ALLOW"}]"#,
        #"[{"expectation": "ALLOW", "request": {"method": "get", "path": "/c/d"}}]"#, "[1]",
      ] { #expect(try await server.send("POST /v1/projects/demo:test", suite(bad)).status == 400, "\(bad)") }
    }
  }

  @Test("Rules of other services and compiled rules return 501; unknown paths return 404")
  func unimplemented() async throws {
    try await withServer { server in
      let root = "/v1/projects/demo"
      let storage = try await server.send("GET \(root)/releases/firebase.storage/bucket")
      #expect(storage.status == 501 && storage.json["error"]?["status"]?.string == "UNIMPLEMENTED")
      #expect(try await server.send("GET \(root)/releases/cloud.firestore:getExecutable").status == 501)
      #expect(try await server.send("GET \(root)/nothing").status == 404)
    }
  }

  @Test("Callers other than the owner, and pages of other machines, have no access")
  func access() async throws {
    try await withServer { server in
      let user = "Authorization: Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJ1In0."
      for request in [
        "GET /v1/projects/demo/rulesets", "POST /v1/projects/demo/rulesets", "GET /v1/projects/demo/releases",
        "POST /v1/projects/demo/releases", "PATCH /v1/projects/demo/releases/cloud.firestore",
        "DELETE /v1/projects/demo/releases/cloud.firestore", "POST /v1/projects/demo:test",
        "GET /v1/projects/demo/releases/cloud.firestore:history", "DELETE /v1/projects/demo/rulesets/x",
      ] {
        let page = ["Authorization: Bearer owner", "Origin: https://evil.example"]
        for (headers, status) in [([], 401), ([user], 403), (page, 403)] {
          let answer = try await server.send(request, [:], headers: headers)
          #expect(answer.status == status, "\(request) \(headers)")
        }
      }
    }
  }
}
