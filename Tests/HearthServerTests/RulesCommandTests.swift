// Tests of the command `hearth rules` as a process, against files and running servers. A canary is a second rules file of
// a database: the server evaluates it for each request and logs different verdicts, but does not enforce it.

import Foundation
import Testing

@Suite("hearth rules", .timeLimit(.minutes(5)))
struct RulesCommandTests {
  private let directory: URL

  init() throws {
    directory = FileManager.default.temporaryDirectory.appendingPathComponent("hearth-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
  }

  private func write(_ text: String, to name: String) throws {
    try Data(text.utf8).write(to: directory.appendingPathComponent(name))
  }

  /// Runs `hearth rules` in the directory.
  private func rules(_ arguments: String...) async throws -> (code: Int32, output: String, errors: String) {
    let process = try HearthProcess(["rules"] + arguments, directory: directory)
    let code = await process.wait()
    return (code, process.output, process.errors)
  }

  private func firestoreRules(_ condition: String) -> String {
    "rules_version = '2';\nservice cloud.firestore { match /databases/{d}/documents { match /c/{id} {\n  allow read: if \(condition);\n} } }\n"
  }

  /// Starts a server, calls `body`, and stops it.
  /// - Returns: the messages of the server.
  private func serve(
    _ arguments: [String], _ body: (HearthProcess) async throws -> Void
  ) async throws -> String {
    let process = try HearthProcess(
      ["serve", "--firestore-port", "0", "--database-port", "0", "--auth-port", "0"] + arguments)
    try await process.wait(for: "ready\n")
    do { try await body(process) } catch {
      process.signal(SIGKILL)
      throw error
    }
    process.signal(SIGTERM)
    #expect(await process.wait() == 0)
    return process.errors
  }

  private func address(_ product: String, of process: HearthProcess) throws -> String {
    "http://127.0.0.1:\(try process.port(of: product))"
  }

  private func status(_ process: HearthProcess, _ product: String, _ path: String) async throws -> Substring {
    try await PlainRequest.send(try process.port(of: product), "GET \(path)").split(separator: " ")[1]
  }

  @Test("A test run reports each case, writes JUnit, and exits with 2 if a case fails")
  func test() async throws {
    defer { try? FileManager.default.removeItem(at: directory) }
    try write(firestoreRules("request.auth.uid == id"), to: "a.rules")
    try write(
      """
      {"rules": "a.rules", "cases": [
        {"name": "owner", "method": "get", "path": "c/u", "auth": {"uid": "u"}, "expect": "allow"},
        {"name": "other", "method": "get", "path": "c/u", "auth": {"uid": "v"}, "expect": "allow"}
      ]}
      """, to: "cases.json")
    let run = try await rules("test", "cases.json", "--junit", "out.xml")
    #expect(run.code == 2 && run.output.contains("ok: owner\n"))
    #expect(run.output.contains("failed: other: expected allow, but the rules deny"))
    #expect(run.output.hasSuffix("2 cases, 1 failed\n"))
    let junit = try String(contentsOf: directory.appendingPathComponent("out.xml"), encoding: .utf8)
    #expect(junit.contains(#"tests="2" failures="1""#))
    try write(firestoreRules("true"), to: "b.rules")
    #expect(try await rules("test", "cases.json", "--rules", "b.rules").code == 0)
    try write(firestoreRules("true &&"), to: "b.rules")
    let invalid = try await rules("test", "cases.json", "--rules", "b.rules")
    #expect(invalid.code == 1 && invalid.errors.hasPrefix("hearth: b.rules:3:"))
    #expect(try await rules("test", "none.json").errors == "hearth: The file none.json does not exist.\n")
  }

  @Test("`lint` exits with 2 if it finds mistakes, `diff` if verdicts differ; otherwise both exit with 0")
  func lintAndDiff() async throws {
    defer { try? FileManager.default.removeItem(at: directory) }
    try write(firestoreRules("true"), to: "open.rules")
    try write(firestoreRules("resource.data.owner == request.auth.uid"), to: "sound.rules")
    let lint = try await rules("lint", "open.rules")
    #expect(lint.code == 2 && lint.output.hasPrefix("open.rules:3:3: Everyone may read here"))
    #expect(try await rules("lint", "sound.rules").code == 0)
    try write(
      #"{"cases": [{"name": "r", "method": "get", "path": "c/d"}, {"method": "delete", "path": "c/d"}]}"#,
      to: "requests.json")
    let diff = try await rules("diff", "open.rules", "sound.rules", "--requests", "requests.json")
    #expect(diff.code == 2 && diff.output.hasPrefix("r: allow -> deny: the rules deny 'get' of c/d"))
    #expect(diff.output.hasSuffix("2 requests, 1 with another verdict\n"))
    #expect(try await rules("diff", "open.rules", "open.rules", "--requests", "requests.json").code == 0)
  }

  @Test("Rules of Cloud Firestore are deployed to an emulator, listed and rolled back")
  func firestoreDeployment() async throws {
    defer { try? FileManager.default.removeItem(at: directory) }
    try write(firestoreRules("false"), to: "closed.rules")
    try write(firestoreRules("true"), to: "open.rules")
    try write(firestoreRules("true &&"), to: "invalid.rules")
    _ = try await serve(["--emulator", "--ephemeral"]) { server in
      let target = ["--server", try address("Cloud Firestore", of: server), "--project", "demo"]
      func rules(_ arguments: String...) async throws -> (code: Int32, output: String, errors: String) {
        let process = try HearthProcess(["rules"] + arguments + target, directory: directory)
        let code = await process.wait()
        return (code, process.output, process.errors)
      }
      let document = "/v1/projects/demo/databases/(default)/documents/c/d"
      let dryRun = try await rules("deploy", "closed.rules", "--dry-run")
      #expect(dryRun.code == 0 && dryRun.output == "the rules are valid\n")
      #expect(try await status(server, "Cloud Firestore", document) == "404")
      #expect(try await rules("deploy", "closed.rules").code == 0)
      #expect(try await status(server, "Cloud Firestore", document) == "403")
      #expect(try await rules("deploy", "open.rules").output.hasSuffix(" is in force\n"))
      #expect(try await status(server, "Cloud Firestore", document) == "404")
      let invalid = try await rules("deploy", "invalid.rules")
      #expect(invalid.code == 1 && invalid.errors.hasPrefix("hearth: invalid.rules:3:"), "\(invalid.errors)")
      let history = try await rules("history").output.split(separator: "\n")
      #expect(history.count == 2 && history[0].hasSuffix("\tin force"))
      #expect(try await rules("rollback").code == 0)
      #expect(try await status(server, "Cloud Firestore", document) == "403")
      let first = history[0].split(separator: "\t")[1]
      #expect(try await rules("rollback", String(first)).output == "ruleset \(first) is in force\n")
      #expect(try await status(server, "Cloud Firestore", document) == "404")
      #expect(try await rules("rollback", "none").code == 1)
      #expect(try await rules("deploy", "closed.rules", "--database", "reports").code == 0)
      let named = "/v1/projects/demo/databases/reports/documents/c/d"
      #expect(try await status(server, "Cloud Firestore", named) == "403")
    }
  }

  @Test(
    "A canary of the Realtime Database logs verdicts that differ from those of the rules in force, and changes none"
  )
  func canary() async throws {
    defer { try? FileManager.default.removeItem(at: directory) }
    try write(#"{"rules": {".read": true, ".write": true}}"#, to: "open.json")
    try write(#"{"rules": {"a": {".read": true}}}"#, to: "closed.json")
    try write(#"{"rules": {"a": {".read": "nonsense"}}}"#, to: "invalid.json")
    let log = try await serve(["--emulator", "--ephemeral", "--project", "demo"]) { server in
      let target = ["--server", try address("Realtime Database", of: server), "--project", "demo"]
      func rules(_ arguments: String...) async throws -> (code: Int32, output: String, errors: String) {
        let process = try HearthProcess(["rules"] + arguments + target, directory: directory)
        let code = await process.wait()
        return (code, process.output, process.errors)
      }
      func read(_ path: String) async throws -> Substring {
        try await status(server, "Realtime Database", "/\(path).json?ns=demo-default-rtdb")
      }
      #expect(try await rules("deploy", "open.json", "--dry-run").output == "the rules are valid\n")
      #expect(try await rules("deploy", "open.json").code == 0)
      #expect(try await rules("deploy", "closed.json", "--canary").output.hasSuffix(" is the canary\n"))
      #expect(try await read("a") == "200")
      #expect(try await read("b") == "200")
      let history = try await rules("history", "--product", "database").output.split(separator: "\n")
      #expect(history.count == 2 && history[0].hasSuffix("\tcanary") && history[1].hasSuffix("\tin force"))
      #expect(try await rules("rollback", "--product", "database", "--canary").code == 0)
      #expect(try await read("c") == "200")
      #expect(try await rules("deploy", "closed.json").code == 0)
      #expect(try await read("b") == "401")
      #expect(try await rules("deploy", "open.json", "--canary").code == 0)
      #expect(try await read("d") == "401")
      #expect(try await rules("rollback", "--product", "database").code == 0)
      let invalid = try await rules("deploy", "invalid.json")
      #expect(invalid.code == 1 && invalid.errors.hasPrefix("hearth: invalid.json:1:"), "\(invalid.errors)")
    }
    #expect(
      log.contains("would deny the read of /b by a caller without credentials: no .read rule"), "\(log)")
    #expect(log.contains("would allow the read of /d by a caller without credentials, which is denied"))
    #expect(!log.contains("of /a by") && !log.contains("of /c by"))
  }

  @Test(
    "`replay` decides logged denials of Firestore and the Realtime Database again, by a draft of the rules")
  func replay() async throws {
    defer { try? FileManager.default.removeItem(at: directory) }
    try write(firestoreRules("false"), to: "closed.rules")
    try write(firestoreRules("id == 'd'"), to: "draft.rules")
    try write(#"{"rules": {".read": false}}"#, to: "closed.json")
    try write(#"{"rules": {"a": {".read": true}}}"#, to: "draft.json")
    _ = try await serve(["--emulator", "--ephemeral", "--project", "demo"]) { server in
      let firestore = ["--project", "demo", "--server", try address("Cloud Firestore", of: server)]
      let database = ["--project", "demo", "--server", try address("Realtime Database", of: server)]
      func rules(_ arguments: [String]) async throws -> (code: Int32, output: String, errors: String) {
        let process = try HearthProcess(["rules"] + arguments, directory: directory)
        let code = await process.wait()
        return (code, process.output, process.errors)
      }
      #expect(try await rules(["deploy", "closed.rules"] + firestore).code == 0)
      #expect(try await rules(["deploy", "closed.json"] + database).code == 0)
      for document in ["d", "e"] {
        let path = "/v1/projects/demo/databases/(default)/documents/c/\(document)"
        #expect(try await status(server, "Cloud Firestore", path) == "403")
      }
      for path in ["a", "b"] {
        #expect(
          try await status(server, "Realtime Database", "/\(path).json?ns=demo-default-rtdb") == "401")
      }
      for (file, allowed) in [("draft.rules", "c/d"), ("draft.json", "/a")] {
        let replay = try await rules(["replay", file] + firestore)
        #expect(replay.code == 2, "\(replay.errors)")
        let lines = replay.output.split(separator: "\n")
        #expect(
          lines.count == 2 && lines[0].hasPrefix("allow: ") && lines[0].contains("of \(allowed) by nobody"))
        #expect(lines.last == "2 denials, 1 allowed by the draft, 0 without the data to decide")
      }
      #expect(try await rules(["replay", "closed.rules"] + firestore).code == 0)
      try write("rules_version = '2'; service", to: "invalid.rules")
      #expect(try await rules(["replay", "invalid.rules"] + firestore).code == 1)
    }
  }

  @Test("A production server accepts rules only from an administrator")
  func production() async throws {
    defer { try? FileManager.default.removeItem(at: directory) }
    try write(firestoreRules("true"), to: "open.rules")
    let data = directory.appendingPathComponent("data").path
    _ = try await serve(["--data", data, "--project", "demo"]) { server in
      for role in ["administrator", "writer"] {
        let create = try HearthProcess(
          ["credentials", "create", role, "--data", data, "--project", "demo", "--role", role]
            + ["--output", "\(role).json"], directory: directory)
        #expect(await create.wait() == 0, "\(create.errors)")
      }
      let target = ["--server", try address("Cloud Firestore", of: server)]
      func deploy(_ arguments: String...) async throws -> (code: Int32, errors: String) {
        let process = try HearthProcess(
          ["rules", "deploy", "open.rules"] + arguments + target, directory: directory)
        return (await process.wait(), process.errors)
      }
      let document = "/v1/projects/demo/databases/(default)/documents/c/d"
      #expect(try await deploy("--project", "demo").code == 1)
      #expect(try await deploy("--credentials", "writer.json").errors.contains("role administrator"))
      #expect(try await status(server, "Cloud Firestore", document) != "404")
      let deployed = try await deploy("--credentials", "administrator.json")
      #expect(deployed.code == 0, "\(deployed.errors)")
      #expect(try await status(server, "Cloud Firestore", document) == "404")
      #expect(
        try await deploy("--credentials", "open.rules").errors.contains("is not one of a service account"))
    }
  }
}
