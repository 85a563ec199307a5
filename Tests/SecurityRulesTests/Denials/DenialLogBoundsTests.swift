// Tests the bounds of a denial log in memory.

import JSON
import Testing

@testable import SecurityRules

@Suite("Bounds of the denial log") struct DenialLogBoundsTests {
  private func members(_ bytes: Int) -> JSONObject { ["t": .string(String(repeating: "x", count: bytes))] }

  @Test("new entries replace the oldest ones at the limits of count and bytes")
  func eviction() {
    var limits = DenialLogLimits()
    limits.entries = 3
    limits.bytes = 1_000
    let log = DenialLog(limits)
    for _ in 0..<5 { log.append(members(10), request: nil) }
    #expect(log.entries(before: nil, count: 10).map(\.id) == [5, 4, 3])
    log.append(members(900), request: nil)
    #expect(log.entries(before: nil, count: 10).map(\.id) == [6, 5, 4])
    log.append(members(900), request: nil)
    #expect(log.entries(before: nil, count: 10).map(\.id) == [7])
    #expect(log.entry(6) == nil && log.entry(7)?.id == 7)
    #expect(log.entries(before: 7, count: 10).isEmpty)
  }

  @Test("denials above the maximum rate are only counted, without an entry in the log")
  func rate() {
    var limits = DenialLogLimits()
    limits.entriesPerSecond = 2
    let log = DenialLog(limits)
    let admitted = (0..<5).map { log.admit(at: 7_000_000 + $0) }
    #expect(admitted == [true, true, false, false, false])
    #expect(log.omittedCount == 3)
    #expect(log.admit(at: 8_000_000))
  }

  @Test("at the maximum number of logs, the log of a new database replaces the log that was idle longest")
  func databases() {
    var limits = DenialLogLimits()
    limits.logs = 2
    let logs = DenialLogs<String>(limits)
    for (index, name) in ["a", "b", "a", "c"].enumerated() {
      _ = logs.log(of: name).admit(at: Int64(index) * 1_000_000)
    }
    #expect(logs.existingLog("b") == nil)
    #expect(logs.existingLog("a") != nil && logs.existingLog("c") != nil)
  }
}
