// Tests of reloading several index files: either all take effect, or none.

import Foundation
import HearthServer
import Logging
import NIOConcurrencyHelpers
import Testing

@Suite("Reloading index files", .timeLimit(.minutes(5)))
struct IndexReloadTests {
  /// Records log messages.
  private struct LineRecorder: LogHandler {
    let lines: NIOLockedValueBox<[String]>
    var metadata = Logger.Metadata()
    var logLevel = Logger.Level.notice

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { lines.withLockedValue { $0.append("\(event.message)") } }
  }

  @Test("If one of several index files is invalid, nothing changes and the log names the file's database")
  func invalidFileChangesNothing() async throws {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent(
      "hearth-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    let files = ["a.json", "b.json"].map { directory.appendingPathComponent($0) }
    for file in files { try Data("{}".utf8).write(to: file) }
    var configuration = HearthConfiguration.forTesting()
    configuration.indexMode = .strict
    configuration.indexFiles = [.init(path: files[0].path), .init(database: "b", path: files[1].path)]
    let lines = NIOLockedValueBox<[String]>([])
    let server = HearthServer(configuration, log: Logger(label: "test") { _ in LineRecorder(lines: lines) })
    try await server.start()
    let port = try #require(server.firestorePort)
    /// Sends a query that needs an index.
    func response() async throws -> String {
      try await PlainRequest.send(
        port, "POST /v1/projects/demo/databases/(default)/documents:runQuery",
        """
        {"structuredQuery": {"from": [{"collectionId": "c"}], "orderBy": [
          {"field": {"fieldPath": "x"}}, {"field": {"fieldPath": "y"}}]}}
        """)
    }
    #expect(try await response().contains("requires an index"))
    let index = """
      {"indexes": [{"collectionGroup": "c", "queryScope": "COLLECTION", "fields": [
        {"fieldPath": "x", "order": "ASCENDING"}, {"fieldPath": "y", "order": "ASCENDING"}]}]}
      """
    try Data(index.utf8).write(to: files[0])
    // Each field override is valid, but their number exceeds the limit.
    let overrides = (0..<201).map { #"{"collectionGroup": "c", "fieldPath": "f\#($0)", "indexes": []}"# }
    try Data(#"{"fieldOverrides": [\#(overrides.joined(separator: ","))]}"#.utf8).write(to: files[1])
    await server.reloadIndexes()
    #expect(try await response().contains("requires an index"))
    let last = lines.withLockedValue { $0.last ?? "" }
    #expect(
      last.hasPrefix("the indexes stay unchanged: The indexes of the database b cannot be set"), "\(last)")
    #expect(last.contains("at most 200"), "\(last)")
    try Data("{}".utf8).write(to: files[1])
    await server.reloadIndexes()
    // The server builds the index in the background, so the query is repeated until it succeeds.
    let deadline = ContinuousClock.now + .seconds(120)
    while try await !response().hasPrefix("HTTP/1.1 200 "), ContinuousClock.now < deadline {
      try await Task.sleep(for: .milliseconds(5))
    }
    #expect(try await response().hasPrefix("HTTP/1.1 200 "))
    #expect(lines.withLockedValue { $0.last } == "the index files were read again")
    await server.stop()
  }
}
