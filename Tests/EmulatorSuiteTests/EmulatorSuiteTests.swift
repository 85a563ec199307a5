// Tests exports and imports of all emulator data: by the hub, at the start and on exit, in the Firebase CLI's
// layout. The manifest, firebase-export-metadata.json, lists the parts of an export.

import FirestoreProtobuf
import Foundation
import HearthServer
import JSON
import RealtimeModel
import Testing

@testable import EndpointFixture

@Suite("Emulator suite exports", .timeLimit(.minutes(2)))
struct EmulatorSuiteTests {
  @Test("Concurrent exports to one directory succeed, and the result is complete")
  func concurrentExports() async throws {
    let path = FirestoreTestServer.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: path) }
    try await FirestoreTestServer.servingSuite { server in
      try await server.fill()
      let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 0..<6 { group.addTask { try await server.export(path).status } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(statuses == Array(repeating: 200, count: 6))
      let names = try FileManager.default.contentsOfDirectory(atPath: path)
      #expect(!names.contains { $0.hasPrefix(".") }, "\(names)")
    }
    try await FirestoreTestServer.servingSuite({ $0.importedDirectory = path }) {
      try await $0.expectFilled()
    }
  }

  @Test("An export of the hub has the Firebase CLI's layout, and is imported at the next start")
  func exportAndImport() async throws {
    let path = FirestoreTestServer.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: path) }
    try await FirestoreTestServer.servingSuite { server in
      try await server.fill()
      let reply = try await server.export(path)
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
    try await FirestoreTestServer.servingSuite {
      $0.importedDirectory = path
    } _: {
      try await $0.expectFilled()
    }
  }

  @Test("An export omits empty databases")
  func emptyDatabases() async throws {
    let path = FirestoreTestServer.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: path) }
    try await FirestoreTestServer.servingSuite { server in
      try await server.fill()
      for name in ["demo-a/databases/(default)", "demo-test/databases/aaa", "demo-z/databases/zzz"] {
        _ = try await server.rest("PATCH", "/v1/projects/\(name)/documents/c/x", "{}")
        _ = try await server.rest("DELETE", "/v1/projects/\(name)/documents/c/x")
      }
      #expect(try await server.export(path).status == 200)
    }
    let metadata = JSONTree(
      try JSONValue(json: String(contentsOfFile: "\(path)/firebase-export-metadata.json", encoding: .utf8)))
    let others = metadata["hearth"]["databases"].array ?? []
    #expect(others.map(\.["database"].string) == ["projects/demo-test/databases/second"])
    #expect(try FileManager.default.contentsOfDirectory(atPath: "\(path)/other_databases") == ["0"])
    try await FirestoreTestServer.servingSuite({ $0.importedDirectory = path }) {
      try await $0.expectFilled()
    }
  }

  @Test("The export of a single product is imported")
  func singleProduct() async throws {
    let path = FirestoreTestServer.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: path) }
    try await FirestoreTestServer.servingSuite { server in
      try await server.fill()
      #expect(try await server.export(path).status == 200)
    }
    try await FirestoreTestServer.servingSuite {
      $0.importedDirectory = "\(path)/firestore_export"
    } _: { server in
      let document = try await server.client.get("c/a")
      #expect(document.fields["n"]?.integerValue == 1)
      let other = try await server.realtime("GET", "/.json?ns=other")
      #expect(other == "null")
    }
    try await FirestoreTestServer.servingSuite {
      $0.importedDirectory = "\(path)/database_export/"
    } _: { server in
      let other = try await server.realtime("GET", "/.json?ns=other")
      #expect(other == #"{"b":[1,2]}"#)
    }
  }

  @Test("An export replaces an earlier export; a directory with other contents is rejected")
  func replacing() async throws {
    let path = FirestoreTestServer.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: path) }
    try await FirestoreTestServer.servingSuite { server in
      try await server.fill()
      #expect(try await server.export(path).status == 200)
      _ = try await server.realtime("DELETE", "/.json?ns=other")
      try await server.client.commit([.set("c/a", ["n": .int(2)])])
      #expect(try await server.export(path).status == 200)
      #expect(!FileManager.default.fileExists(atPath: "\(path)/database_export/other.json"))
      #expect(try await server.export(path, targets: #","targets":["database","auth"]"#).status == 200)
      let names = try FileManager.default.contentsOfDirectory(atPath: path)
      #expect(Set(names) == ["firebase-export-metadata.json", "database_export"])
      let none = try await server.export(path, targets: #","targets":["auth"]"#)
      #expect(none.status == 500)
      #expect(none.json["message"] == .string("No running emulators support import/export."))
      let foreign = path + "-foreign"
      try FileManager.default.createDirectory(atPath: foreign, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(atPath: foreign) }
      try Data([1]).write(to: URL(fileURLWithPath: "\(foreign)/thesis.txt"))
      for directory in [foreign, FileManager.default.currentDirectoryPath, "/", "\(foreign)/thesis.txt"] {
        let rejected = try await server.export(directory)
        #expect(
          rejected.status == 500 && rejected.json["message"].string?.contains(directory) == true,
          "\(rejected)")
      }
      #expect(try FileManager.default.contentsOfDirectory(atPath: foreign) == ["thesis.txt"])
      let page = try await server.export(path, headers: ["Origin: https://evil.example"])
      #expect(page.status == 403)
      let port = try #require(server.server.hubPort)
      for body in ["", "[]", "{}", #"{"path":7}"#, #"{"path":"/tmp/x","targets":[1]}"#] {
        #expect(try await RESTClient.request(port, "POST", "/_admin/export", body: body).status == 500)
      }
    }
  }

  @Test("With an export on exit, the next start has the same data")
  func exportOnExit() async throws {
    let path = FirestoreTestServer.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let change: (inout HearthConfiguration) -> Void = {
      $0.importedDirectory = path
      $0.exportOnExit = path
    }
    try await FirestoreTestServer.servingSuite(change) { try await $0.fill() }
    try await FirestoreTestServer.servingSuite(change) { server in
      try await server.expectFilled()
      try await server.client.commit([.set("c/more", [:])])
    }
    try await FirestoreTestServer.servingSuite(change) { server in
      try await server.expectFilled()
      _ = try await server.client.get("c/more")
    }
  }

  @Test("An unusable export-on-exit directory stops the start, and is not changed")
  func unusableExportDirectory() async throws {
    let path = FirestoreTestServer.temporaryDirectory()
    let files = FileManager.default
    try files.createDirectory(atPath: path, withIntermediateDirectories: true)
    defer { try? files.removeItem(atPath: path) }
    try Data([1]).write(to: URL(fileURLWithPath: "\(path)/thesis.txt"))
    let long = "\(path)/" + String(repeating: "x", count: 300)
    let above = "the current directory or one above it"
    for (directory, expectedText) in [
      (".", above), ("..", above), ("/", above), (files.currentDirectoryPath, above),
      ("", "path of a directory"),
      ("/etc", "holds no export"), (path, "holds no export"), ("\(path)/thesis.txt", "is no directory"),
      ("/dev/null/x", "cannot make the directory /dev/null/x: Not a directory"), (long, "File name too long"),
    ] {
      let error = await FirestoreTestServer.startError { $0.exportOnExit = directory }
      #expect(error.contains(expectedText) && error.contains(" (--export-on-exit)"), "\(directory): \(error)")
    }
    // The directory of the server's data.
    let data = "\(path)/data"
    let error = await FirestoreTestServer.startError {
      $0.storage = .directory(data)
      $0.exportOnExit = data
    }
    #expect(error.contains("holds no export"), "\(error)")
    #expect(try files.contentsOfDirectory(atPath: path).sorted() == ["data", "thesis.txt"])
  }

  @Test("The directory of an export on exit is created at the exit, with its parents")
  func createdExportDirectory() async throws {
    let path = FirestoreTestServer.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let target = "\(path)/not/yet"
    try await FirestoreTestServer.servingSuite {
      $0.exportOnExit = target
    } _: { server in
      try await server.fill()
      #expect(!FileManager.default.fileExists(atPath: path))
    }
    try await FirestoreTestServer.servingSuite({ $0.importedDirectory = target }) {
      try await $0.expectFilled()
    }
  }

  @Test("An invalid import stops the start with its reason")
  func invalidImports() async throws {
    let path = FirestoreTestServer.temporaryDirectory()
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: path) }
    let manifest = "\(path)/firebase-export-metadata.json"
    #expect(
      await FirestoreTestServer.startError { $0.importedDirectory = "/none/at/all" }.contains(
        "does not exist"))
    #expect(await FirestoreTestServer.startError { $0.importedDirectory = path }.contains("holds no export"))
    for (text, expectedText) in [
      ("junk", "no JSON object"), ("{\"firestore\":{}}", "metadata_file"),
      ("{\"firestore\":{\"metadata_file\":\"../x\"}}", "outside"),
      ("{\"firestore\":{\"metadata_file\":\"x\"}}", "/x: No such file or directory"),
      ("{\"database\":{\"path\":\"x\"}}", "/x: No such file or directory"),
    ] {
      try Data(text.utf8).write(to: URL(fileURLWithPath: manifest))
      #expect(
        await FirestoreTestServer.startError { $0.importedDirectory = path }.contains(expectedText), "\(text)"
      )
    }
    try FileManager.default.createDirectory(atPath: "\(path)/d", withIntermediateDirectories: true)
    try Data("{\"a\":".utf8).write(to: URL(fileURLWithPath: "\(path)/d/ns.json"))
    try Data("{\"database\":{\"path\":\"d\"}}".utf8).write(to: URL(fileURLWithPath: manifest))
    #expect(await FirestoreTestServer.startError { $0.importedDirectory = path }.contains("ns.json"))
    #expect(
      await FirestoreTestServer.startError {
        $0.emulator = false
        $0.importedDirectory = path
      }.contains("--emulator"))
  }

  @Test("A namespace may have the manifest's name, and the manifest is never imported as a namespace")
  func namedAsManifest() async throws {
    let path = FirestoreTestServer.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let target = "/.json?ns=firebase-export-metadata"
    try await FirestoreTestServer.servingSuite { server in
      _ = try await server.realtime("PUT", target, #"{"database":{"path":"x"}}"#)
      #expect(try await server.export(path).status == 200)
    }
    try await FirestoreTestServer.servingSuite({ $0.importedDirectory = path }) { server in
      let found = try await server.realtime("GET", target)
      #expect(found == #"{"database":{"path":"x"}}"#)
    }
    // The manifest may also be in the directory of the namespaces, and name this directory itself. The import then
    // skips the manifest and imports the other files.
    try FileManager.default.removeItem(atPath: "\(path)/database_export/firebase-export-metadata.json")
    try Data("7".utf8).write(to: URL(fileURLWithPath: "\(path)/database_export/other.json"))
    for name in [".", "./", "././"] {
      let manifest = URL(fileURLWithPath: "\(path)/database_export/firebase-export-metadata.json")
      try Data(#"{"database":{"path":"\#(name)"}}"#.utf8).write(to: manifest)
      try await FirestoreTestServer.servingSuite({ $0.importedDirectory = "\(path)/database_export" }) {
        server in
        let found = try await (server.realtime("GET", target), server.realtime("GET", "/.json?ns=other"))
        #expect(found == ("null", "7"), "\(name)")
      }
    }
  }

  @Test("The error of a failed export has the path, the action and the reason")
  func failures() async throws {
    let path = FirestoreTestServer.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: path) }
    try await FirestoreTestServer.servingSuite { server in
      try await server.fill()
      let rejected = try await server.export("/dev/null/x")
      #expect(rejected.status == 500)
      #expect(
        rejected.json["message"] == .string("cannot make the directory /dev/null/x: Not a directory"))
      let file = "/dev/null"
      #expect(try await server.export(file).json["message"] == .string("/dev/null is no directory."))
    }
  }

  @Test("While the server runs, a temporary file (the locator) has the address of the hub and the process ID")
  func locator() async throws {
    let project = "demo-\(UUID().uuidString)"
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("hub-\(project).json")
    try await FirestoreTestServer.servingSuite {
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
