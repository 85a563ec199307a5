// All data of an emulator as one directory: by the hub, at the start and at the end, as the Firebase CLI has it done.

import FirestoreProtobuf
import Foundation
import HearthServer
import RealtimeModel
import Testing

@Suite("The emulator suite's data", .timeLimit(.minutes(2)))
struct EmulatorSuiteTests {
  private func directory() -> String { FirestoreTestServer.temporaryDirectory() }

  private func serving(
    _ change: (inout HearthConfiguration) -> Void = { _ in },
    _ body: (FirestoreTestServer) async throws -> Void
  ) async throws {
    try await FirestoreTestServer.serving {
      $0.hub = .init(port: 0)
      $0.project = "demo-test"
      change(&$0)
    } _: {
      try await body($0)
    }
  }

  /// Asks the hub, as the Firebase CLI does.
  private func export(
    _ server: FirestoreTestServer, _ path: String, targets: String = "", headers: [String] = []
  ) async throws -> RESTReply {
    try await RESTClient.request(
      server.server.hubPort ?? 0, "POST", "/_admin/export",
      body: "{\"path\":\"\(path)\",\"initiatedBy\":\"emulators:export\"\(targets)}", headers: headers)
  }

  private func realtime(
    _ server: FirestoreTestServer, _ method: String, _ target: String, _ body: String? = nil
  ) async throws -> String {
    let reply = try await RESTClient.request(
      server.server.databasePort ?? 0, method, target, body: body, headers: ["Authorization: Bearer owner"])
    #expect(reply.status == 200, "\(reply.body)")
    return reply.body
  }

  private func fill(_ server: FirestoreTestServer) async throws {
    try await server.client.commit([.set("c/a", ["n": .int(1)]), .set("c/a/s/b", ["t": .text("ä")])])
    _ = try await server.rest(
      "POST", "/v1/projects/demo-test/databases/second/documents/c?documentId=x",
      #"{"fields":{"n":{"integerValue":"7"}}}"#)
    _ = try await realtime(
      server, "PUT", "/.json?ns=demo-test-default-rtdb", #"{"a":{".value":1,".priority":2}}"#)
    _ = try await realtime(server, "PUT", "/.json?ns=other", #"{"b":[1,2]}"#)
  }

  private func expectFilled(_ server: FirestoreTestServer) async throws {
    #expect(try await server.client.get("c/a").fields["n"]?.integerValue == 1)
    #expect(try await server.client.get("c/a/s/b").fields["t"]?.stringValue == "ä")
    let other = try await server.rest("GET", "/v1/projects/demo-test/databases/second/documents/c/x")
    #expect(other.json["fields"]["n"]["integerValue"] == .string("7"))
    #expect(
      try await realtime(server, "GET", "/.json?format=export&ns=demo-test-default-rtdb")
        == #"{"a":{".value":1,".priority":2}}"#)
    #expect(try await realtime(server, "GET", "/.json?ns=other") == #"{"b":[1,2]}"#)
  }

  @Test("exports to one directory at once all succeed, and what lies there is whole")
  func atOnce() async throws {
    let path = directory()
    defer { try? FileManager.default.removeItem(atPath: path) }
    try await serving { server in
      try await fill(server)
      let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 0..<6 { group.addTask { try await export(server, path).status } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(statuses == Array(repeating: 200, count: 6))
      let names = try FileManager.default.contentsOfDirectory(atPath: path)
      #expect(!names.contains { $0.hasPrefix(".") }, "\(names)")
    }
    try await serving({ $0.importedDirectory = path }) { try await expectFilled($0) }
  }

  @Test("what the hub exports is laid out as the Firebase CLI lays it out, and is read at the next start")
  func exportAndImport() async throws {
    let path = directory()
    defer { try? FileManager.default.removeItem(atPath: path) }
    try await serving { server in
      try await fill(server)
      let reply = try await export(server, path)
      #expect(reply.status == 200 && reply.json["message"] == .string("OK"), "\(reply.body)")
    }
    let metadata = JSONTree(
      try JSONValue(json: String(contentsOfFile: "\(path)/firebase-export-metadata.json", encoding: .utf8)))
    #expect(metadata["version"].string?.isEmpty == false)
    #expect(metadata["firestore"]["path"] == .string("firestore_export"))
    #expect(
      metadata["firestore"]["metadata_file"]
        == .string("firestore_export/firestore_export.overall_export_metadata"))
    #expect(metadata["database"]["path"] == .string("database_export"))
    for file in [
      "firestore_export/firestore_export.overall_export_metadata",
      "firestore_export/all_namespaces/all_kinds/output-0", "database_export/demo-test-default-rtdb.json",
      "database_export/other.json",
    ] { #expect(FileManager.default.fileExists(atPath: "\(path)/\(file)"), "\(file)") }
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: "\(path)/database_export").count == 2)
    try await serving {
      $0.importedDirectory = path
    } _: {
      try await expectFilled($0)
    }
  }

  @Test("the bare export of one product is read, too")
  func bare() async throws {
    let path = directory()
    defer { try? FileManager.default.removeItem(atPath: path) }
    try await serving { server in
      try await fill(server)
      #expect(try await export(server, path).status == 200)
    }
    try await serving {
      $0.importedDirectory = "\(path)/firestore_export"
    } _: { server in
      let document = try await server.client.get("c/a")
      #expect(document.fields["n"]?.integerValue == 1)
      let other = try await realtime(server, "GET", "/.json?ns=other")
      #expect(other == "null")
    }
    try await serving {
      $0.importedDirectory = "\(path)/database_export/"
    } _: { server in
      let other = try await realtime(server, "GET", "/.json?ns=other")
      #expect(other == #"{"b":[1,2]}"#)
    }
  }

  @Test("an export takes the place of another, and of nothing else")
  func replacing() async throws {
    let path = directory()
    defer { try? FileManager.default.removeItem(atPath: path) }
    try await serving { server in
      try await fill(server)
      #expect(try await export(server, path).status == 200)
      _ = try await realtime(server, "DELETE", "/.json?ns=other")
      try await server.client.commit([.set("c/a", ["n": .int(2)])])
      #expect(try await export(server, path).status == 200)
      #expect(!FileManager.default.fileExists(atPath: "\(path)/database_export/other.json"))
      #expect(try await export(server, path, targets: #","targets":["database","auth"]"#).status == 200)
      let names = try FileManager.default.contentsOfDirectory(atPath: path)
      #expect(Set(names) == ["firebase-export-metadata.json", "database_export"])
      let none = try await export(server, path, targets: #","targets":["auth"]"#)
      #expect(none.status == 500)
      #expect(none.json["message"] == .string("No running emulators support import/export."))
      let foreign = path + "-foreign"
      try FileManager.default.createDirectory(atPath: foreign, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(atPath: foreign) }
      try Data([1]).write(to: URL(fileURLWithPath: "\(foreign)/thesis.txt"))
      for place in [foreign, FileManager.default.currentDirectoryPath, "/", "\(foreign)/thesis.txt"] {
        let refused = try await export(server, place)
        #expect(
          refused.status == 500 && refused.json["message"].string?.contains(place) == true, "\(refused)")
      }
      #expect(try FileManager.default.contentsOfDirectory(atPath: foreign) == ["thesis.txt"])
      let page = try await export(server, path, headers: ["Origin: https://evil.example"])
      #expect(page.status == 403)
      let port = try #require(server.server.hubPort)
      for body in ["", "[]", "{}", #"{"path":7}"#, #"{"path":"/tmp/x","targets":[1]}"#] {
        #expect(try await RESTClient.request(port, "POST", "/_admin/export", body: body).status == 500)
      }
    }
  }

  @Test("with an export at the end, the next start goes on where this one ended")
  func exportOnExit() async throws {
    let path = directory()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let change: (inout HearthConfiguration) -> Void = {
      $0.importedDirectory = path
      $0.exportOnExit = path
    }
    try await serving(change) { try await fill($0) }
    try await serving(change) { server in
      try await expectFilled(server)
      try await server.client.commit([.set("c/more", [:])])
    }
    try await serving(change) { server in
      try await expectFilled(server)
      _ = try await server.client.get("c/more")
    }
  }

  @Test("what cannot be imported stops the start, and says what is wrong")
  func refusals() async throws {
    let path = directory()
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: path) }
    let manifest = "\(path)/firebase-export-metadata.json"
    func refusal(_ change: @escaping (inout HearthConfiguration) -> Void) async -> String {
      do {
        try await serving(change) { _ in Issue.record("it started") }
        return ""
      } catch { return "\(error)" }
    }
    #expect(await refusal { $0.importedDirectory = "/none/at/all" }.contains("does not exist"))
    #expect(await refusal { $0.importedDirectory = path }.contains("holds no export"))
    for (text, word) in [
      ("junk", "no JSON object"), ("{\"firestore\":{}}", "metadata_file"),
      ("{\"firestore\":{\"metadata_file\":\"../x\"}}", "outside"),
      ("{\"firestore\":{\"metadata_file\":\"x\"}}", "Failed to parse overall export metadata file"),
      ("{\"database\":{\"path\":\"x\"}}", "does not exist"),
    ] {
      try Data(text.utf8).write(to: URL(fileURLWithPath: manifest))
      #expect(await refusal { $0.importedDirectory = path }.contains(word), "\(text)")
    }
    try FileManager.default.createDirectory(atPath: "\(path)/d", withIntermediateDirectories: true)
    try Data("{\"a\":".utf8).write(to: URL(fileURLWithPath: "\(path)/d/ns.json"))
    try Data("{\"database\":{\"path\":\"d\"}}".utf8).write(to: URL(fileURLWithPath: manifest))
    #expect(await refusal { $0.importedDirectory = path }.contains("ns.json"))
    #expect(
      await refusal {
        $0.emulator = false
        $0.importedDirectory = path
      }.contains("--emulator"))
  }

  @Test("tools find the hub by its locator file, as long as the server runs")
  func locator() async throws {
    let project = "demo-\(UUID().uuidString)"
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("hub-\(project).json")
    try await serving {
      $0.project = project
    } _: { server in
      let locator = JSONTree(try JSONValue(json: String(contentsOf: path, encoding: .utf8)))
      let port = try #require(server.server.hubPort)
      #expect(locator["origins"][0] == .string("http://127.0.0.1:\(port)"))
      #expect(locator["pid"] == .int(Int64(ProcessInfo.processInfo.processIdentifier)))
    }
    #expect(!FileManager.default.fileExists(atPath: path.path))
  }
}
