// The setting of a measurement: binaries, durations, a data directory, and servers to measure.

import Foundation
import NIOConcurrencyHelpers
import NIOCore

/// The binaries, and the duration of one run.
struct Setting: Sendable {
  var hearth: String
  /// The path of this program.
  var program: String
  var seconds: Double
  var group: any EventLoopGroup
  /// The server's processor time for one call in microseconds, as measurements report it.
  let processorTimes = NIOLockedValueBox<[Double]>([])
  /// Databases that are loaded once, for all rounds.
  var databases = LoadedDatabases()

  /// Removes and returns the reported processor times.
  func takeProcessorTimes() -> [Double] {
    processorTimes.withLockedValue { times in
      defer { times.removeAll() }
      return times
    }
  }

  /// Starts Hearth on free ports.
  /// - Parameters:
  ///   - isEmulator: whether to start an emulator, which counts the coverage of rules.
  /// - Returns: the process, and the port of the requested database.
  func startHearth(_ storage: [String], database: Bool, isEmulator: Bool = true) throws -> ChildProcess {
    let ports = [
      "--host", "127.0.0.1", "--firestore-port", "0", "--database-port", "0", "--log-level", "error",
    ]
    let mode = isEmulator ? ["serve", "--emulator"] : ["serve"]
    return try ChildProcess(hearth, mode + storage + ports, ready: "ready") { line in
      guard line.lowercased().contains(database ? "realtime" : "firestore") else { return nil }
      return line.split(whereSeparator: { !$0.isNumber }).compactMap { Int($0) }.last {
        $0 > 1024 && $0 < 65536
      }
    }
  }

  /// Starts Hearth without `--emulator` on free ports.
  /// - Parameters:
  ///   - directory: the directory of the data and the configuration.
  ///   - blocks: the blocks of the rules file; by default every caller may read and write documents.
  ///   - authConfig: the contents of the file of `--auth-config`; nil for none.
  ///   - databaseRules: the rules of the Realtime Database, whose port the process then has; nil for none.
  /// - Returns: the process with the port of Cloud Firestore, and the port of authentication.
  func startProduction(
    _ directory: String, blocks: String = "match /{path=**} { allow read, write: if true; }",
    authConfig: String? = nil, databaseRules: String? = nil
  ) throws -> (server: ChildProcess, authPort: Int) {
    func write(_ name: String, _ text: String) throws -> String {
      let path = directory + "/" + name
      try text.write(toFile: path, atomically: true, encoding: .utf8)
      return path
    }
    _ = try write(
      "firestore.rules",
      """
      rules_version = '2';
      service cloud.firestore {
        match /databases/{database}/documents { \(blocks) }
      }
      """)
    var products = #""firestore": {"rules": "firestore.rules"}"#
    if let databaseRules {
      _ = try write("database.rules.json", databaseRules)
      products += #", "database": {"rules": "database.rules.json"}"#
    }
    let config = try write("firebase.json", "{\(products)}")
    var arguments = [
      "serve", "--data", directory + "/data", "--project", "bench", "--config", config, "--host", "127.0.0.1",
      "--firestore-port", "0", "--database-port", "0", "--auth-port", "0", "--log-level", "error",
    ]
    if let authConfig { arguments += ["--auth-config", try write("auth.json", authConfig)] }
    let product = databaseRules == nil ? "Cloud Firestore" : "Realtime Database"
    var ports: [String: Int] = [:]
    let server = try ChildProcess(hearth, arguments, ready: "ready") { line in
      let port = line.split(whereSeparator: { !$0.isNumber }).compactMap { Int($0) }.last {
        $0 > 1024 && $0 < 65536
      }
      for name in [product, "Authentication"] where line.hasPrefix(name) { ports[name] = port }
      // The last line: the ports of all products are known.
      return line.hasPrefix("ready") ? ports[product] : nil
    }
    guard let authPort = ports["Authentication"] else {
      server.stop()
      throw BenchmarkFailure("the server printed no port of authentication")
    }
    return (server, authPort)
  }

  /// Starts one of this program's bare servers.
  func startBare(_ command: String) throws -> ChildProcess {
    try ChildProcess(program, [command]) { line in line.hasPrefix("port ") ? Int(line.dropFirst(5)) : nil }
  }

  func temporaryDirectory() throws -> String {
    let path = NSTemporaryDirectory() + "hearth-bench-\(UInt64.random(in: 0...UInt64.max))"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    RunCleanup.register(directory: path)
    return path
  }
}

/// Reports the server's processor time for `calls` calls.
struct ProcessorTime {
  private let server: ChildProcess
  private let before: Double?

  init(_ server: ChildProcess) {
    self.server = server
    before = server.processorSeconds()
  }

  func report(calls: Int, in setting: Setting) {
    guard let before, let now = server.processorSeconds(), calls > 0 else { return }
    setting.processorTimes.withLockedValue { $0.append((now - before) / Double(calls) * 1e6) }
  }
}

/// A counter shared by event loops.
final class SharedCounter: Sendable {
  private let box = NIOLockedValueBox(0)
  func add(_ n: Int = 1) { box.withLockedValue { $0 += n } }
  var value: Int { box.withLockedValue { $0 } }
}

/// Waits until a condition holds, by default for 30 s.
func waitUntil(_ event: @autoclosure () -> String, seconds: Int = 30, _ condition: () -> Bool) async throws {
  let deadline = ContinuousClock.now + .seconds(seconds)
  while !condition() {
    if ContinuousClock.now > deadline { throw BenchmarkFailure(event()) }
    try await Task.sleep(for: .milliseconds(20))
  }
}
