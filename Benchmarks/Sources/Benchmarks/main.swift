// `make bench`, `make bench-firestore`, `make bench-realtime`, `make bench-large`: see Rows.swift for the
// measurements.

import Foundation
import NIOPosix

let arguments = CommandLine.arguments

func option(_ name: String, _ fallback: String) -> String {
  guard let at = arguments.firstIndex(of: name), at + 1 < arguments.count else { return fallback }
  return arguments[at + 1]
}

/// Prints the table. A row that fails prints its reason, and the others continue.
/// - Returns: false if any row failed.
func printTable() async throws -> Bool {
  let name = option("--suite", "standard")
  let suite = Row.Suite(rawValue: name)
  guard suite != nil || name == "all" else {
    throw BenchmarkFailure("--suite is standard, firestore, realtime, large, or all for all but large")
  }
  let only = option("--only", "")
  // Smaller numbers are for trying rows out. The goals apply to these numbers.
  guard let documents = Int(option("--documents", "1000000")), documents >= 5000, documents % 1000 == 0,
    let listeners = Int(option("--listeners", "100000")), listeners > 0
  else {
    throw BenchmarkFailure("--documents is a multiple of 1,000 and at least 5,000, --listeners at least 1")
  }
  let chosen = rows(documents: documents, listeners: listeners).filter { row in
    (suite.map { $0 == row.suite } ?? (row.suite != .large))
      && (only.isEmpty || row.names.contains { $0.contains(only) })
  }
  guard !chosen.isEmpty else { throw BenchmarkFailure("no row of suite \(name) contains \"\(only)\"") }
  var setting = Setting(
    hearth: option("--hearth", "../.build/release/hearth"), program: arguments[0],
    seconds: Double(option("--seconds", "3")) ?? 3, group: MultiThreadedEventLoopGroup(numberOfThreads: 1))
  if arguments.contains("--keep") { setting.databases = LoadedDatabases(keptIn: option("--keep", "kept")) }
  let databases = setting.databases
  defer { databases.removeAll() }
  let signals = RunCleanup.cleanUpOnSignals()
  defer { for source in signals { source.cancel() } }
  let rounds = Int(option("--rounds", "5")) ?? 5
  let referenceOnly = arguments.contains("--reference-only")
  printLine(
    "| measurement / reference | Hearth | reference | ratio | goal | Hearth's processor time a call |")
  printLine("|---|---|---|---|---|---|")
  var allSucceeded = true
  for row in chosen where await !row.print(setting, rounds: rounds, referenceOnly: referenceOnly) {
    allSucceeded = false
  }
  return allSucceeded
}

// This process may be a bare server that a run has started. The run ignores SIGTERM, and the server would inherit that.
signal(SIGTERM, SIG_DFL)

do {
  switch arguments.dropFirst().first {
  case "bare-http2": try await BareHTTP2Server.run(.document)
  case "bare-streams": try await BareHTTP2Server.run(.stream)
  case "bare-websocket": try await BareWebSocketServer.run(.broadcast)
  case "bare-echo": try await BareWebSocketServer.run(.echo)
  case "hashes": try await hashForever()
  case "commits": try await CommitProbe.run(port: arguments.dropFirst(2).first.flatMap { Int($0) } ?? 0)
  default: if try await !printTable() { exit(1) }
  }
} catch {
  FileHandle.standardError.write(Data("benchmarks: \(error)\n".utf8))
  exit(1)
}
