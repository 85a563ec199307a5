// What signals do to the real process while it starts and while it stops.

import Foundation
import NIOCore
import Testing

@Suite("Signals to hearth serve", .timeLimit(.minutes(10)))
struct SignalTests {
  private static let manifest = "firebase-export-metadata.json"
  private static let before = #"{"version": "0.0.0"}"#

  private let directory = FileManager.default.temporaryDirectory.appendingPathComponent(
    "hearth-\(UUID().uuidString)")

  /// Starts a server that exports to a directory in which an export lies already.
  private func start(_ arguments: [String] = []) throws -> HearthProcess {
    let target = directory.appendingPathComponent("export")
    try FileManager.default.createDirectory(at: target, withIntermediateDirectories: true)
    try Data(Self.before.utf8).write(to: target.appendingPathComponent(Self.manifest))
    return try HearthProcess(
      [
        "serve", "--emulator", "--firestore-port", "0", "--database-port", "0", "--hub-port", "0",
        "--data", directory.appendingPathComponent("data").path, "--export-on-exit", target.path,
      ] + arguments)
  }

  private func expectOldExport() throws {
    let target = directory.appendingPathComponent("export")
    #expect(try FileManager.default.contentsOfDirectory(atPath: target.path) == [Self.manifest])
    let kept = try Data(contentsOf: target.appendingPathComponent(Self.manifest))
    #expect(String(decoding: kept, as: UTF8.self) == Self.before)
  }

  @Test(
    "A start is given up at the first signal, and half an import is not exported",
    arguments: [SIGTERM, SIGINT])
  func duringStart(signal: Int32) async throws {
    defer { try? FileManager.default.removeItem(at: directory) }
    let source = directory.appendingPathComponent("import")
    try FileManager.default.createDirectory(at: source, withIntermediateDirectories: true)
    var text = "{\"k\":0"
    for index in 0..<600_000 { text += ",\"k\(index)\":\(index)" }
    try Data("\(text)}".utf8).write(to: source.appendingPathComponent("wide.json"))
    let process = try start(["--import", source.path])
    let deadline = ContinuousClock.now + .seconds(120)
    while !FileManager.default.fileExists(atPath: directory.appendingPathComponent("data").path),
      ContinuousClock.now < deadline
    {
      try await Task.sleep(for: .milliseconds(10))
    }
    // The server has begun to open what it serves; this does not end it.
    process.signal(SIGHUP)
    try await Task.sleep(for: .milliseconds(500))
    process.signal(signal)
    #expect(await process.wait() == 128 + signal, "\(process.errors)")
    #expect(process.errors.contains("stopped before it was ready"), "\(process.errors)")
    #expect(!process.output.contains("ready"))
    try expectOldExport()
  }

  @Test("A second signal ends a stop at once, without the export that it would have ended with")
  func secondSignal() async throws {
    defer { try? FileManager.default.removeItem(at: directory) }
    let process = try start()
    try await process.wait(for: "ready\n")
    // Half a request, which a stop waits for.
    let half = try await PlainRequest.deaf(
      try process.port(of: "Realtime Database"),
      Array("PUT /a.json HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n\"a".utf8))
    try await Task.sleep(for: .milliseconds(500))
    process.signal(SIGINT)
    try await Task.sleep(for: .milliseconds(500))
    process.signal(SIGINT)
    #expect(await process.wait() == 128 + SIGINT, "\(process.errors)")
    #expect(process.errors.contains("ended at once by a second signal"), "\(process.errors)")
    try expectOldExport()
    half.close(promise: nil)
  }

  @Test("One signal that is passed on twice is one")
  func echo() async throws {
    defer { try? FileManager.default.removeItem(at: directory) }
    let process = try start()
    try await process.wait(for: "ready\n")
    process.signal(SIGINT)
    process.signal(SIGTERM)
    #expect(await process.wait() == 0, "\(process.errors)")
  }
}
