// Tests a client whose server process is killed and started again: it reconnects, and restores its writes and
// listens.

import FirebaseCore
import Foundation
import Testing

@testable import FirebaseDatabase

/// A server process. It runs the executable next to the test bundle, or the executable
/// that the environment variable HEARTH_BIN names.
private struct Server {
  let process = Process()
  let port: Int

  init(data: URL, port: Int = 0) throws {
    let executable = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
    process.executableURL =
      ProcessInfo.processInfo.environment["HEARTH_BIN"].map { URL(fileURLWithPath: $0) }
      ?? executable.appendingPathComponent("hearth")
    process.arguments = [
      "serve", "--emulator", "--data", data.path, "--firestore-port", "0", "--database-port", "\(port)",
      "--hub-port", "0",
    ]
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    var text = ""
    while !text.contains("ready"), case let bytes = output.fileHandleForReading.availableData, !bytes.isEmpty
    {
      text += String(decoding: bytes, as: UTF8.self)
    }
    let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("Realtime Database") })
    self.port = try #require(line.split { !$0.isNumber }.compactMap { Int($0) }.last { $0 > 1_024 })
  }

  func kill() {
    Foundation.kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }
}

@Suite("Client of a killed server", .timeLimit(.minutes(10)))
struct KillTests {
  @Test("after SIGKILL the client reconnects, and no acknowledged or pending write is lost")
  func killed() async throws {
    let data = FileManager.default.temporaryDirectory.appendingPathComponent(
      "hearth-kill-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: data) }
    var server = try Server(data: data)
    defer { server.kill() }
    let writer = try Client(port: server.port, namespace: "demo-kill")
    let reader = try Client(port: server.port, namespace: "demo-kill")
    let seen = reader.ref.child("list").recordValues()
    for n in 0..<20 { _ = try await within { try await writer.ref.child("list/a\(n)").setValue(n) } }
    let all = Dictionary(uniqueKeysWithValues: (0..<20).map { ("a\($0)", $0) })
    let before = canonicalJSON(all)
    _ = try await seen.first { $0 == before }
    server.kill()
    let answered = Recorder<Bool>()
    writer.ref.child("list/meanwhile").setValue(1) { error, _ in answered.record(error == nil) }
    server = try Server(data: data, port: server.port)
    #expect(try await answered.next(within: 60))
    let after = canonicalJSON(all.merging(["meanwhile": 1]) { old, _ in old })
    _ = try await seen.first(within: 60) { $0 == after }
    await writer.close()
    await reader.close()
  }
}
