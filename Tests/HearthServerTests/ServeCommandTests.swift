// `hearth serve` as a process: what it prints, how it ends, and what it says when it cannot start.

import Foundation
import NIOCore
import NIOPosix
import Testing

@Suite("hearth serve", .timeLimit(.minutes(1)))
struct ServeCommandTests {
  private static let free = ["--emulator", "--firestore-port", "0", "--database-port", "0"]

  private func temporaryDirectory() throws -> URL {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("hearth-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    return url
  }

  /// Starts a server that is expected to refuse, and returns what it said.
  private func refusal(
    _ arguments: [String], environment: [String: String] = [:], directory: URL? = nil
  ) async throws -> String {
    let process = try HearthProcess(["serve"] + arguments, environment: environment, directory: directory)
    let code = await process.wait()
    #expect(code != 0)
    #expect(!process.output.contains("ready"))
    return process.errors
  }

  @Test("It prints one line for each listening address, then ready", arguments: [SIGTERM, SIGINT])
  func startAndStop(signal: Int32) async throws {
    let process = try HearthProcess(["serve", "--ephemeral"] + Self.free)
    try await process.wait(for: "ready\n")
    let lines = process.output.split(separator: "\n")
    #expect(lines.last == "ready")
    #expect(lines.first?.hasPrefix("Cloud Firestore listens on http://127.0.0.1:") == true)
    let port = try process.port(of: "Cloud Firestore")
    #expect(port > 0)
    let started = ContinuousClock.now
    process.signal(signal)
    #expect(await process.wait() == 0)
    #expect(ContinuousClock.now - started < .seconds(10))
  }

  @Test("A connection that is open and idle does not hold up the end")
  func idleConnection() async throws {
    let process = try HearthProcess(["serve", "--ephemeral"] + Self.free)
    try await process.wait(for: "ready\n")
    let port = try process.port(of: "Cloud Firestore")
    let idle = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .connect(host: "127.0.0.1", port: port).get()
    process.signal(SIGTERM)
    #expect(await process.wait() == 0)
    try await idle.closeFuture.get()
  }

  @Test("A second start on the same directory says who holds it")
  func directoryHeld() async throws {
    let directory = try temporaryDirectory()
    defer { try? FileManager.default.removeItem(at: directory) }
    let data = directory.appendingPathComponent("a/b/data").path
    let first = try HearthProcess(["serve", "--data", data] + Self.free)
    try await first.wait(for: "ready\n")
    let said = try await refusal(["--data", data] + Self.free)
    #expect(said.contains(data))
    #expect(said.contains("\(first.identifier)"))
    #expect(said.contains("--data"))
    first.signal(SIGTERM)
    #expect(await first.wait() == 0)
    // It is free again at once.
    let third = try HearthProcess(["serve", "--data", data] + Self.free)
    try await third.wait(for: "ready\n")
    third.signal(SIGKILL)
    #expect(await third.wait() == -SIGKILL)
    // Also after a kill.
    let fourth = try HearthProcess(["serve", "--data", data] + Self.free)
    try await fourth.wait(for: "ready\n")
    fourth.signal(SIGTERM)
    #expect(await fourth.wait() == 0)
  }

  @Test("A taken port says which and by what flag to change it")
  func portTaken() async throws {
    let first = try HearthProcess(["serve", "--ephemeral"] + Self.free)
    try await first.wait(for: "ready\n")
    let port = try first.port(of: "Cloud Firestore")
    let said = try await refusal(["--ephemeral", "--firestore-port", "\(port)", "--database-port", "0"])
    #expect(said.contains("\(port)"))
    #expect(said.contains("--firestore-port"))
    first.signal(SIGTERM)
    #expect(await first.wait() == 0)
  }

  @Test("A firebase.json in the working directory that names rules stops the start")
  func rulesFile() async throws {
    let directory = try temporaryDirectory()
    defer { try? FileManager.default.removeItem(at: directory) }
    try Data(#"{"firestore": {"rules": "firestore.rules"}}"#.utf8).write(
      to: directory.appendingPathComponent("firebase.json"))
    let said = try await refusal(["--ephemeral"] + Self.free, directory: directory)
    #expect(said.contains("firestore.rules"))
  }

  @Test("An emulator does not listen beyond loopback unless told to")
  func remoteEmulator() async throws {
    let said = try await refusal(["--ephemeral", "--host", "0.0.0.0"] + Self.free)
    #expect(said.contains("--allow-remote-emulator"))
  }

  @Test("Neither --data nor --ephemeral, and unusable files, are refused with what to do")
  func refusals() async throws {
    #expect(try await refusal(Self.free).contains("--data"))
    #expect(try await refusal(["--data", "/proc/nowhere"] + Self.free).contains("/proc/nowhere"))
    let tls = try await refusal(["--ephemeral", "--tls-cert", "/no.pem", "--tls-key", "/no.pem"] + Self.free)
    #expect(tls.contains("/no.pem"))
    #expect(try await refusal(["--ephemeral", "--log-level", "loud"]).contains("loud"))
  }

  @Test("Variables are read")
  func variables() async throws {
    let process = try HearthProcess(
      ["serve"],
      environment: [
        "HEARTH_EPHEMERAL": "1", "HEARTH_EMULATOR": "1", "HEARTH_FIRESTORE_PORT": "0",
        "HEARTH_DATABASE_PORT": "0",
      ])
    try await process.wait(for: "ready\n")
    process.signal(SIGTERM)
    #expect(await process.wait() == 0)
  }

  @Test("--help names every option and the defaults")
  func help() async throws {
    let process = try HearthProcess(["serve", "--help"])
    #expect(await process.wait() == 0)
    for text in [
      "--data", "--ephemeral", "--project", "--host", "--firestore-port", "8080", "--database-port", "9000",
      "--emulator", "--allow-remote-emulator", "--tls-cert", "--tls-key", "--config", "--log-level", "notice",
      "HEARTH_",
    ] {
      #expect(process.output.contains(text), "\(text)")
    }
  }
}
