// `make bench`, `make bench-realtime`, `make bench-large`: see Rows.swift for what each measures.

import Foundation
import NIOPosix

let arguments = CommandLine.arguments

func option(_ name: String, _ fallback: String) -> String {
  guard let at = arguments.firstIndex(of: name), at + 1 < arguments.count else { return fallback }
  return arguments[at + 1]
}

func printTable() async throws {
  guard let suite = Row.Suite(rawValue: option("--suite", "standard")) else {
    throw BenchmarkFailure("--suite is standard, realtime or large")
  }
  let setting = Setting(
    hearth: option("--hearth", "../.build/release/hearth"), own: arguments[0],
    seconds: Double(option("--seconds", "3")) ?? 3, group: MultiThreadedEventLoopGroup(numberOfThreads: 1))
  defer { setting.databases.removeAll() }
  let rounds = Int(option("--rounds", "5")) ?? 5
  let only = option("--only", "")
  let referenceOnly = arguments.contains("--reference-only")
  say("| measurement / reference | Hearth | reference | ratio | goal | Hearth's processor time a call |")
  say("|---|---|---|---|---|---|")
  for row in rows where row.suite == suite && (only.isEmpty || row.names[0].contains(only)) {
    try await row.print(setting, rounds: rounds, referenceOnly: referenceOnly)
  }
}

do {
  switch arguments.dropFirst().first {
  case "bare-http2": try await BareHTTP2Server.run()
  case "bare-websocket": try await BareWebSocketServer.run(.broadcast)
  case "bare-echo": try await BareWebSocketServer.run(.echo)
  default: try await printTable()
  }
} catch {
  FileHandle.standardError.write(Data("benchmarks: \(error)\n".utf8))
  exit(1)
}
