// Tests of the command `hearth serve` as a process: its output, its end, and its messages when it cannot
// start.

import Foundation
import NIOCore
import NIOPosix
import Testing

@Suite("hearth serve", .timeLimit(.minutes(10)))
struct ServeCommandTests {
  private static let anyPorts = ["--emulator", "--firestore-port", "0", "--database-port", "0"]

  private func temporaryDirectory() throws -> URL {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("hearth-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    return url
  }

  /// Starts a server and expects that the start fails.
  /// - Returns: the messages of the process.
  private func failedStart(
    _ arguments: [String], environment: [String: String] = [:], directory: URL? = nil
  ) async throws -> String {
    let process = try HearthProcess(["serve"] + arguments, environment: environment, directory: directory)
    let code = await process.wait()
    #expect(code != 0)
    #expect(!process.output.contains("ready"))
    return process.errors
  }

  @Test(
    "The server prints one line for each listening address, then \"ready\"", arguments: [SIGTERM, SIGINT])
  func startAndStop(signal: Int32) async throws {
    let process = try HearthProcess(["serve", "--ephemeral"] + Self.anyPorts)
    try await process.wait(for: "ready\n")
    let lines = process.output.split(separator: "\n")
    #expect(lines.last == "ready")
    #expect(lines.first?.hasPrefix("Cloud Firestore listens on http://127.0.0.1:") == true)
    let port = try process.port(of: "Cloud Firestore")
    #expect(port > 0)
    let started = ContinuousClock.now
    process.signal(signal)
    #expect(await process.wait() == 0)
    #expect(ContinuousClock.now - started < .seconds(60))
  }

  @Test("An idle open connection does not delay the end of the process")
  func idleConnection() async throws {
    let process = try HearthProcess(["serve", "--ephemeral"] + Self.anyPorts)
    try await process.wait(for: "ready\n")
    let port = try process.port(of: "Cloud Firestore")
    let idle = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .connect(host: "127.0.0.1", port: port).get()
    process.signal(SIGTERM)
    #expect(await process.wait() == 0)
    try await idle.closeFuture.get()
  }

  @Test("A second server on the same directory fails with the process ID of the first")
  func directoryInUse() async throws {
    let directory = try temporaryDirectory()
    defer { try? FileManager.default.removeItem(at: directory) }
    let data = directory.appendingPathComponent("a/b/data").path
    let first = try HearthProcess(["serve", "--data", data] + Self.anyPorts)
    try await first.wait(for: "ready\n")
    let message = try await failedStart(["--data", data] + Self.anyPorts)
    #expect(message.contains(data))
    #expect(message.contains("\(first.identifier)"))
    #expect(message.contains("--data"))
    first.signal(SIGTERM)
    #expect(await first.wait() == 0)
    // Another server can open the directory immediately after the end of the first server.
    let third = try HearthProcess(["serve", "--data", data] + Self.anyPorts)
    try await third.wait(for: "ready\n")
    third.signal(SIGKILL)
    #expect(await third.wait() == -SIGKILL)
    // A server can also open the directory after the previous server was killed.
    let fourth = try HearthProcess(["serve", "--data", data] + Self.anyPorts)
    try await fourth.wait(for: "ready\n")
    fourth.signal(SIGTERM)
    #expect(await fourth.wait() == 0)
  }

  @Test("A port in use is reported with the flag that changes it, and nothing else stays open")
  func portInUse() async throws {
    let first = try HearthProcess(["serve", "--ephemeral"] + Self.anyPorts)
    try await first.wait(for: "ready\n")
    let directory = try temporaryDirectory()
    defer { try? FileManager.default.removeItem(at: directory) }
    for (product, flag, other) in [
      ("Cloud Firestore", "--firestore-port", "--database-port"),
      ("Realtime Database", "--database-port", "--firestore-port"),
    ] {
      let port = try first.port(of: product)
      let message = try await failedStart(
        ["--data", directory.path, "--emulator", flag, "\(port)", other, "0"])
      #expect(
        message.contains("\(product): Port \(port) on 127.0.0.1 is taken by another process."), "\(message)")
      #expect(message.contains("Choose another with \(flag)"), "\(message)")
    }
    first.signal(SIGTERM)
    #expect(await first.wait() == 0)
  }

  @Test(
    "A firebase.json with rules that cannot be loaded prevents the start, in the working directory or named by option",
    arguments: [
      ("firestore", "firestore.rules", "firestore.rules, which firebase.json names, does not exist"),
      ("database", "database.rules.json", "database.rules.json, which firebase.json names, does not exist"),
    ])
  func rulesFile(section: String, name: String, expectedText: String) async throws {
    let directory = try temporaryDirectory()
    defer { try? FileManager.default.removeItem(at: directory) }
    let file = directory.appendingPathComponent("firebase.json")
    try Data("{\"\(section)\": {\"rules\": \"\(name)\"}}".utf8).write(to: file)
    // The file is found in the working directory, by flag and by variable, also with --emulator.
    for message in [
      try await failedStart(["--ephemeral"] + Self.anyPorts, directory: directory),
      try await failedStart(["--ephemeral", "--config", file.path] + Self.anyPorts),
      try await failedStart(["--ephemeral"] + Self.anyPorts, environment: ["HEARTH_CONFIG": file.path]),
    ] {
      #expect(message.contains(name) && message.contains(expectedText), "\(message)")
    }
  }

  @Test("An emulator listens on other addresses than loopback only with --allow-remote-emulator")
  func remoteEmulator() async throws {
    let message = try await failedStart(["--ephemeral", "--host", "0.0.0.0"] + Self.anyPorts)
    #expect(message.contains("--allow-remote-emulator"))
  }

  @Test("Missing storage and unusable files are rejected with advice")
  func invalidArguments() async throws {
    #expect(try await failedStart(Self.anyPorts).contains("--data"))
    #expect(try await failedStart(["--data", "/proc/nowhere"] + Self.anyPorts).contains("/proc/nowhere"))
    let tls = try await failedStart(
      ["--ephemeral", "--tls-cert", "/no.pem", "--tls-key", "/no.pem"] + Self.anyPorts)
    #expect(tls.contains("/no.pem"))
    #expect(try await failedStart(["--ephemeral", "--log-level", "loud"]).contains("loud"))
    let config = try await failedStart(["--ephemeral", "--config", "/proc"] + Self.anyPorts)
    #expect(config.contains("The configuration file /proc cannot be read: it is a directory"), "\(config)")
  }

  @Test("A small address space stops the start with advice")
  func addressSpace() async throws {
    let process = try HearthProcess(
      ["serve", "--ephemeral", "--emulator"] + Self.anyPorts, addressSpace: 1 << 20)
    #expect(await process.wait() == 1)
    #expect(
      process.errors.contains("limited to 1024 MiB") && process.errors.contains("ulimit -v"),
      "\(process.errors)")
  }

  @Test("Environment variables whose names begin with HEARTH_ configure the server")
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

  /// Every option with its documented default.
  private static let options: [String: String?] = [
    "--data": nil, "--ephemeral": nil, "--project": "demo-project", "--host": "127.0.0.1",
    "--firestore-port": "8080", "--database-port": "9000", "--auth-port": "9099",
    "--auth-config": nil, "--hub-port": "4400", "--emulator": nil,
    "--allow-remote-emulator": nil, "--accept-clock": nil, "--allow-host": nil, "--allow-origin": nil,
    "--indexes": "automatic",
    "--import": nil, "--export-on-exit": nil,
    "--tls-cert": nil, "--tls-key": nil, "--config": "firebase.json", "--limits": nil,
    "--log-level": "notice",
  ]

  @Test("--help lists exactly the existing options, with their defaults")
  func help() async throws {
    let process = try HearthProcess(["serve", "--help"])
    #expect(await process.wait() == 0)
    // In the help text, an option's entry begins with its name and extends to the next option.
    var entries: [String: String] = [:]
    var current = ""
    for line in process.output.split(separator: "\n") {
      let text = line.drop { $0 == " " }
      if line.hasPrefix("  -"), let name = text.split(separator: " ").first(where: { $0.hasPrefix("--") }) {
        current = String(name)
      }
      entries[current, default: ""] += text + " "
    }
    entries[""] = nil
    #expect(Set(entries.keys) == Set(Self.options.keys).union(["--help"]))
    for (name, preset) in Self.options {
      if let preset { #expect(entries[name]?.contains("(default: \(preset)") == true, "\(name)") }
    }
    #expect(process.output.contains("HEARTH_"))
  }

  @Test("Unknown options, and options without their value, are rejected")
  func unknownOptions() async throws {
    #expect(try await failedStart(["--ephemeral", "--rules", "x"]).contains("--rules"))
    for (name, _) in Self.options
    where !["--ephemeral", "--emulator", "--allow-remote-emulator", "--accept-clock"].contains(name) {
      #expect(try await failedStart([name]).contains(name), "\(name)")
    }
  }

  @Test("Each option has the effect that --help documents")
  func optionEffects() async throws {
    let directory = try temporaryDirectory()
    defer { try? FileManager.default.removeItem(at: directory) }
    let data = directory.appendingPathComponent("data").path
    let file = directory.appendingPathComponent("other.json")
    try Data(#"{"emulators": {"firestore": {"host": "127.0.0.4"}}}"#.utf8).write(to: file)

    /// Runs a server while `body` runs, and stops it.
    /// - Returns: the ended process, which has the output.
    func run(_ arguments: [String], _ body: (HearthProcess) async throws -> Void) async throws
      -> HearthProcess
    {
      let process = try HearthProcess(
        ["serve", "--firestore-port", "0", "--database-port", "0", "--auth-port", "0"] + arguments)
      try await process.wait(for: "ready\n")
      try await body(process)
      process.signal(SIGTERM)
      #expect(await process.wait() == 0, "\(arguments): \(process.errors)")
      return process
    }
    func rest(_ process: HearthProcess, _ request: String, _ body: String = "") async throws -> String {
      try await PlainRequest.send(try process.port(of: "Realtime Database"), request, body)
    }

    _ = try await run(["--ephemeral"]) { process in
      let denied = try await rest(process, "PUT /a.json", "1")
      #expect(denied.hasPrefix("HTTP/1.1 401 "))
    }
    _ = try await run(["--data", data, "--emulator", "--project", "demo-tea"]) { process in
      let written = try await rest(process, "PUT /a.json", "1")
      #expect(written.hasPrefix("HTTP/1.1 200 "))
      // A request without a namespace has written to the project's default namespace.
      let read = try await rest(process, "GET /a.json?ns=demo-tea-default-rtdb")
      #expect(read.hasSuffix("1"))
    }
    _ = try await run(["--data", data, "--emulator"]) { process in
      let read = try await rest(process, "GET /a.json?ns=demo-tea-default-rtdb")
      #expect(read.hasSuffix("1"))
    }
    let hosted = try await run(["--ephemeral", "--emulator", "--host", "127.0.0.3"]) { _ in }
    #expect(hosted.output.components(separatedBy: "http://127.0.0.3:").count == 5)
    let remote = try await run(
      ["--ephemeral", "--emulator", "--host", "0.0.0.0", "--allow-remote-emulator"]) { _ in }
    #expect(remote.output.contains("http://0.0.0.0:"))
    let configured = try await run(["--ephemeral", "--emulator", "--config", file.path]) { _ in }
    #expect(configured.output.contains("Cloud Firestore listens on http://127.0.0.4:"))
    #expect(configured.output.contains("Realtime Database listens on http://127.0.0.1:"))
  }
}
