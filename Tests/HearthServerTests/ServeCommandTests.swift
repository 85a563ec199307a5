// `hearth serve` as a process: what it prints, how it ends, and what it says when it cannot start.

import Foundation
import NIOCore
import NIOPosix
import Testing

@Suite("hearth serve", .timeLimit(.minutes(10)))
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
    #expect(ContinuousClock.now - started < .seconds(60))
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

  @Test("A taken port says which and by what flag to change it, and nothing else is held meanwhile")
  func portTaken() async throws {
    let first = try HearthProcess(["serve", "--ephemeral"] + Self.free)
    try await first.wait(for: "ready\n")
    let directory = try temporaryDirectory()
    defer { try? FileManager.default.removeItem(at: directory) }
    for (product, flag, other) in [
      ("Cloud Firestore", "--firestore-port", "--database-port"),
      ("Realtime Database", "--database-port", "--firestore-port"),
    ] {
      let port = try first.port(of: product)
      let said = try await refusal(["--data", directory.path, "--emulator", flag, "\(port)", other, "0"])
      #expect(said.contains("\(product): Port \(port) on 127.0.0.1 is taken by another process."), "\(said)")
      #expect(said.contains("Choose another with \(flag)"), "\(said)")
    }
    first.signal(SIGTERM)
    #expect(await first.wait() == 0)
  }

  @Test(
    "A firebase.json that names rules stops the start, wherever it lies",
    arguments: [("firestore", "firestore.rules"), ("database", "database.rules.json")])
  func rulesFile(section: String, name: String) async throws {
    let directory = try temporaryDirectory()
    defer { try? FileManager.default.removeItem(at: directory) }
    let file = directory.appendingPathComponent("firebase.json")
    try Data("{\"\(section)\": {\"rules\": \"\(name)\"}}".utf8).write(to: file)
    // Found in the working directory, named by flag, named by variable: also while an emulator is asked for.
    for said in [
      try await refusal(["--ephemeral"] + Self.free, directory: directory),
      try await refusal(["--ephemeral", "--config", file.path] + Self.free),
      try await refusal(["--ephemeral"] + Self.free, environment: ["HEARTH_CONFIG": file.path]),
    ] {
      #expect(
        said.contains("names the rules file '\(name)'") && said.contains("does not enforce rules"), "\(said)")
      #expect(said.contains("--config"), "\(said)")
    }
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
    let config = try await refusal(["--ephemeral", "--config", "/proc"] + Self.free)
    #expect(config.contains("The configuration file /proc cannot be read: it is a directory"), "\(config)")
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

  /// Every option, with its default as it is told.
  private static let options: [String: String?] = [
    "--data": nil, "--ephemeral": nil, "--project": "demo-project", "--host": "127.0.0.1",
    "--firestore-port": "8080", "--database-port": "9000", "--hub-port": "4400", "--emulator": nil,
    "--allow-remote-emulator": nil, "--indexes": "automatic", "--import": nil, "--export-on-exit": nil,
    "--tls-cert": nil, "--tls-key": nil, "--config": "firebase.json", "--limits": nil,
    "--log-level": "notice",
  ]

  @Test("--help lists exactly the options there are, with their defaults")
  func help() async throws {
    let process = try HearthProcess(["serve", "--help"])
    #expect(await process.wait() == 0)
    // An option's entry begins with it; what follows belongs to it until the next.
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

  @Test("An option that is none is refused, and so is each that has a value without one")
  func unknownOptions() async throws {
    #expect(try await refusal(["--ephemeral", "--rules", "x"]).contains("--rules"))
    for (name, _) in Self.options
    where !["--ephemeral", "--emulator", "--allow-remote-emulator"].contains(name) {
      #expect(try await refusal([name]).contains(name), "\(name)")
    }
  }

  @Test("Every option that --help lists does what it says")
  func effects() async throws {
    let directory = try temporaryDirectory()
    defer { try? FileManager.default.removeItem(at: directory) }
    let data = directory.appendingPathComponent("data").path
    let file = directory.appendingPathComponent("other.json")
    try Data(#"{"emulators": {"firestore": {"host": "127.0.0.4"}}}"#.utf8).write(to: file)

    /// Runs a server and returns what it printed, logged, and left of a write.
    func run(_ arguments: [String], _ body: (HearthProcess) async throws -> Void) async throws
      -> HearthProcess
    {
      let process = try HearthProcess(["serve", "--firestore-port", "0", "--database-port", "0"] + arguments)
      try await process.wait(for: "ready\n")
      try await body(process)
      process.signal(SIGTERM)
      #expect(await process.wait() == 0, "\(arguments): \(process.errors)")
      return process
    }
    func rest(_ process: HearthProcess, _ request: String, _ body: String = "") async throws -> String {
      try await PlainRequest.answer(try process.port(of: "Realtime Database"), request, body)
    }

    _ = try await run(["--ephemeral"]) { process in
      let denied = try await rest(process, "PUT /a.json", "1")
      #expect(denied.hasPrefix("HTTP/1.1 401 "))
    }
    _ = try await run(["--data", data, "--emulator", "--project", "demo-tea"]) { process in
      let written = try await rest(process, "PUT /a.json", "1")
      #expect(written.hasPrefix("HTTP/1.1 200 "))
      // A request that names no database reaches that of the project.
      let read = try await rest(process, "GET /a.json?ns=demo-tea-default-rtdb")
      #expect(read.hasSuffix("1"))
    }
    _ = try await run(["--data", data, "--emulator"]) { process in
      let read = try await rest(process, "GET /a.json?ns=demo-tea-default-rtdb")
      #expect(read.hasSuffix("1"))
    }
    let hosted = try await run(["--ephemeral", "--emulator", "--host", "127.0.0.3"]) { _ in }
    #expect(hosted.output.components(separatedBy: "http://127.0.0.3:").count == 4)
    let remote = try await run(
      ["--ephemeral", "--emulator", "--host", "0.0.0.0", "--allow-remote-emulator"]) { _ in }
    #expect(remote.output.contains("http://0.0.0.0:"))
    let configured = try await run(["--ephemeral", "--emulator", "--config", file.path]) { _ in }
    #expect(configured.output.contains("Cloud Firestore listens on http://127.0.0.4:"))
    #expect(configured.output.contains("Realtime Database listens on http://127.0.0.1:"))
  }
}
