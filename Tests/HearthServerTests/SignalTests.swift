// Tests of signals to a `hearth serve` process while it starts and while it stops.

import Foundation
import NIOCore
import Testing

@Suite("Signals to hearth serve", .timeLimit(.minutes(10)))
struct SignalTests {
  private static let manifest = "firebase-export-metadata.json"
  private static let before = #"{"version": "0.0.0"}"#

  private let directory = FileManager.default.temporaryDirectory.appendingPathComponent(
    "hearth-\(UUID().uuidString)")

  /// Starts a server that exports to a directory that already contains an export.
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

  /// Waits until a condition holds.
  private func eventually(_ event: String, _ condition: () async throws -> Bool) async throws {
    let deadline = ContinuousClock.now + .seconds(120)
    while try await !condition() {
      try #require(ContinuousClock.now < deadline, "\(event): not within two minutes")
      try await Task.sleep(for: .milliseconds(5))
    }
  }

  private func expectOldExport() throws {
    let target = directory.appendingPathComponent("export")
    #expect(try FileManager.default.contentsOfDirectory(atPath: target.path) == [Self.manifest])
    let kept = try Data(contentsOf: target.appendingPathComponent(Self.manifest))
    #expect(String(decoding: kept, as: UTF8.self) == Self.before)
  }

  @Test(
    "The first signal cancels a start, and a partial import is not exported",
    arguments: [SIGTERM, SIGINT])
  func signalDuringStart(signal: Int32) async throws {
    defer { try? FileManager.default.removeItem(at: directory) }
    let source = directory.appendingPathComponent("import")
    try FileManager.default.createDirectory(at: source, withIntermediateDirectories: true)
    var text = "{\"k\":0"
    for index in 0..<600_000 { text += ",\"k\(index)\":\(index)" }
    try Data("\(text)}".utf8).write(to: source.appendingPathComponent("wide.json"))
    let process = try start(["--import", source.path])
    // The log of an empty store is small. A larger log shows that the import is in progress.
    try await eventually("the import writes") {
      let data = directory.appendingPathComponent("data")
      let names = (try? FileManager.default.contentsOfDirectory(atPath: data.path)) ?? []
      return names.contains { name in
        guard name.hasSuffix(".log") else { return false }
        let attributes = try? FileManager.default.attributesOfItem(atPath: data.path + "/" + name)
        return (attributes?[.size] as? Int ?? 0) > 100_000
      }
    }
    // SIGHUP must not end the process. Otherwise the exit code below would show SIGHUP.
    process.signal(SIGHUP)
    process.signal(signal)
    #expect(await process.wait() == 128 + signal, "\(process.errors)")
    #expect(process.errors.contains("stopped before it was ready"), "\(process.errors)")
    #expect(!process.output.contains("ready"))
    try expectOldExport()
  }

  @Test("A second signal ends a stopping process immediately, without an export")
  func secondSignal() async throws {
    defer { try? FileManager.default.removeItem(at: directory) }
    let process = try start()
    try await process.wait(for: "ready\n")
    // The client sends a complete request and the first half of another request. A stopping server waits for the
    // second half until its grace period ends. The complete request and the first half arrive together, so the server has
    // received the first half when it answers the complete request.
    let port = try process.port(of: "Realtime Database")
    let connection = try await PlainRequest.connect(port)
    try await connection.channel.writeAndFlush(
      ByteBuffer(
        string: "GET /b.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
          + "PUT /a.json HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n\"a"))
    try await connection.begun.get()
    process.signal(SIGINT)
    // When the port refuses connections, the server is stopping. After 100 ms the second signal no longer
    // counts as a repetition of the first signal.
    try await eventually("the port closes") { await !PlainRequest.isAccepting(port) }
    try await Task.sleep(for: .milliseconds(200))
    process.signal(SIGINT)
    #expect(await process.wait() == 128 + SIGINT, "\(process.errors)")
    #expect(process.errors.contains("a second signal ended the process immediately"), "\(process.errors)")
    try expectOldExport()
    connection.channel.close(promise: nil)
  }

  @Test("Several signals within 100 ms count as one")
  func repeatedSignal() async throws {
    defer { try? FileManager.default.removeItem(at: directory) }
    let process = try start()
    try await process.wait(for: "ready\n")
    // SIGSTOP suspends the process, so that it receives both signals together when SIGCONT resumes it.
    process.signal(SIGSTOP)
    process.signal(SIGINT)
    process.signal(SIGTERM)
    process.signal(SIGCONT)
    #expect(await process.wait() == 0, "\(process.errors)")
  }
}
