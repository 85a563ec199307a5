// `make bench`: interleaved runs of each measurement and its reference, medians, and the ratio beside its goal.

import Foundation
import NIOConcurrencyHelpers
import NIOPosix

struct Row {
  var name: String
  var goal: String
  var unit: String
  var higherIsBetter: Bool
  var measure: @Sendable (Setting) async throws -> Double
  var reference: @Sendable (Setting) async throws -> Double
}

let rows = [
  Row(
    name: "durable commits, 64 gRPC clients / bare engine, batches of 100", goal: "0.50", unit: "documents/s",
    higherIsBetter: true, measure: durableCommits, reference: bareEngine),
  Row(
    name: "GetDocument over gRPC / bare NIOHTTP2 handler", goal: "0.50", unit: "calls/s",
    higherIsBetter: true,
    measure: getDocument, reference: bareGetDocument),
  Row(
    name: "Realtime Database fan-out, 1,000 listeners / bare broadcast", goal: "0.80", unit: "messages/s",
    higherIsBetter: true, measure: { try await fanOut($0, listeners: 1000) },
    reference: { try await bareFanOut($0, listeners: 1000) }),
  Row(
    name: "memory of an idle listening connection / bare WebSocket", goal: "12 KB", unit: "bytes",
    higherIsBetter: false, measure: { try await idleConnection($0, connections: 4000) },
    reference: { try await bareIdleConnection($0, connections: 4000) }),
]

func median(_ values: [Double]) -> Double {
  let sorted = values.sorted()
  return sorted[sorted.count / 2]
}

func grouped(_ value: Double) -> String {
  var digits = String(Int(value.rounded()))
  var index = digits.count - 3
  while index > 0 {
    digits.insert(",", at: digits.index(digits.startIndex, offsetBy: index))
    index -= 3
  }
  return digits
}

let arguments = CommandLine.arguments

func option(_ name: String, _ fallback: String) -> String {
  guard let at = arguments.firstIndex(of: name), at + 1 < arguments.count else { return fallback }
  return arguments[at + 1]
}

func printTable() async throws {
  let setting = Setting(
    hearth: option("--hearth", "../.build/release/hearth"), own: arguments[0],
    seconds: Double(option("--seconds", "3")) ?? 3, group: MultiThreadedEventLoopGroup(numberOfThreads: 1))
  let rounds = Int(option("--rounds", "5")) ?? 5
  let only = option("--only", "")
  let referenceOnly = arguments.contains("--reference-only")
  say("| measurement / reference | Hearth | reference | ratio | goal | Hearth's processor time a call |")
  say("|---|---|---|---|---|---|")
  for row in rows where only.isEmpty || row.name.contains(only) {
    var measured: [Double] = []
    var reference: [Double] = []
    var processor: [Double] = []
    for _ in 0..<rounds {
      if !referenceOnly {
        setting.processorTimes.withLockedValue { $0.removeAll() }
        measured.append(try await row.measure(setting))
        processor += setting.processorTimes.withLockedValue { $0 }
      }
      reference.append(try await row.reference(setting))
    }
    let (a, b) = (measured.isEmpty ? 0 : median(measured), median(reference))
    let ratio = String(format: "%.2f", a / max(b, 1))
    let time = processor.isEmpty ? "" : "\(grouped(median(processor))) µs"
    say("| \(row.name) | \(grouped(a)) \(row.unit) | \(grouped(b)) | \(ratio) | \(row.goal) | \(time) |")
  }
}

do {
  switch arguments.dropFirst().first {
  case "bare-http2": try await BareHTTP2Server.run()
  case "bare-websocket": try await BareWebSocketServer.run()
  default: try await printTable()
  }
} catch {
  FileHandle.standardError.write(Data("benchmarks: \(error)\n".utf8))
  exit(1)
}
