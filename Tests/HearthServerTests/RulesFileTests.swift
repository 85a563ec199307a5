// Tests of the rules files that firebase.json names: their rules are in force from the start, and a reload replaces
// them.

import Foundation
import HearthServer
import Testing

@Suite("Rules files", .timeLimit(.minutes(1)))
struct RulesFileTests {
  private func rules(_ condition: String) -> Data {
    Data(
      """
      rules_version = '2';
      service cloud.firestore {
        match /databases/{database}/documents/{document=**} { allow read: if \(condition); }
      }
      """.utf8)
  }

  private func temporaryFile() throws -> URL {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent(
      "hearth-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    return directory.appendingPathComponent("firestore.rules")
  }

  @Test("Rules are in force from the start; a reload replaces them, unless the file has an error")
  func reload() async throws {
    let file = try temporaryFile()
    defer { try? FileManager.default.removeItem(at: file.deletingLastPathComponent()) }
    try rules("false").write(to: file)
    var configuration = HearthConfiguration.forTesting()
    configuration.rulesFiles = [.init(path: file.path)]
    let server = HearthServer(configuration)
    try await server.start()
    let port = try #require(server.firestorePort)
    func status() async throws -> Substring {
      try await PlainRequest.send(port, "GET /v1/projects/demo/databases/(default)/documents/c/d", "")
        .split(separator: " ")[1]
    }
    #expect(try await status() == "403")
    try rules("true").write(to: file)
    #expect(try await status() == "403")
    await server.reloadRules()
    #expect(try await status() == "404")
    try rules("true &&").write(to: file)
    await server.reloadRules()
    #expect(try await status() == "404")
    await server.stop()
  }

  @Test("Rules of the Realtime Database are in force from the start; a reload replaces them")
  func database() async throws {
    let file = try temporaryFile()
    defer { try? FileManager.default.removeItem(at: file.deletingLastPathComponent()) }
    try Data(#"{"rules": {"a": {".read": true}}}"#.utf8).write(to: file)
    var configuration = HearthConfiguration.forTesting()
    configuration.databaseRulesFiles = [.init(path: file.path)]
    let server = HearthServer(configuration)
    try await server.start()
    let port = try #require(server.databasePort)
    func status(_ path: String) async throws -> Substring {
      try await PlainRequest.send(port, "GET /\(path).json", "").split(separator: " ")[1]
    }
    #expect(try await status("a") == "200")
    #expect(try await status("b") == "401")
    try Data(#"{"rules": {"b": {".read": true}}}"#.utf8).write(to: file)
    await server.reloadRules()
    #expect(try await status("a") == "401")
    #expect(try await status("b") == "200")
    try Data(#"{"rules": {"b": {".read": "nonsense"}}}"#.utf8).write(to: file)
    await server.reloadRules()
    #expect(try await status("b") == "200")
    await server.stop()
    let invalid = HearthServer(configuration)
    let error = await #expect(throws: HearthError.self) { try await invalid.start() }
    #expect(error.map { "\($0)" } == "\(file.path):1:28: Unknown variable 'nonsense'.")
  }

  @Test("A rules file with an error prevents the start and names file, line and column")
  func invalidFile() async throws {
    let file = try temporaryFile()
    defer { try? FileManager.default.removeItem(at: file.deletingLastPathComponent()) }
    try rules("true &&").write(to: file)
    var configuration = HearthConfiguration.forTesting()
    configuration.rulesFiles = [.init(path: file.path)]
    let server = HearthServer(configuration)
    let error = await #expect(throws: HearthError.self) { try await server.start() }
    #expect(error.map { "\($0)".hasPrefix("\(file.path):3:") } == true)
  }

  @Test("Rules remain in force after a restart without the file")
  func restart() async throws {
    let file = try temporaryFile()
    let directory = file.deletingLastPathComponent()
    defer { try? FileManager.default.removeItem(at: directory) }
    try rules("false").write(to: file)
    var configuration = HearthConfiguration.forTesting(
      storage: .directory(directory.appendingPathComponent("data").path))
    configuration.rulesFiles = [.init(path: file.path)]
    for files in [configuration.rulesFiles, []] {
      configuration.rulesFiles = files
      let server = HearthServer(configuration)
      try await server.start()
      let port = try #require(server.firestorePort)
      let document = "/v1/projects/demo/databases/(default)/documents/c/d"
      let answer = try await PlainRequest.send(port, "GET \(document)", "")
      #expect(answer.split(separator: " ")[1] == "403")
      // The first commit creates the database and stores its rules.
      let written = try await PlainRequest.send(
        port, "PATCH \(document)", "{}", headers: ["Authorization: Bearer owner"])
      #expect(written.split(separator: " ")[1] == "200")
      await server.stop()
    }
  }
}
