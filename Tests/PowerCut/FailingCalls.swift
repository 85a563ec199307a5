// The failing-calls run makes the n-th write or sync of a child process fail, for every n. After the failure
// the store must acknowledge nothing, and reads must succeed. After a restart every acknowledged transaction
// must exist. The transaction whose write failed may exist or not.

import Glibc

/// The kind of call that fails.
enum Fault: String {
  case write
  case sync
}

/// A run that starts one child process for each n of a range.
struct FailingCalls {
  let kind: Fault
  let numbers: ClosedRange<Int>
  let seed: UInt64

  func run() async throws -> Report {
    let disk = try SimulatedDisk()
    var (failedOpens, failedWrites, acknowledged, problems) = (0, 0, 0, [String]())
    for number in numbers {
      try disk.reset()
      let exitStatus = try disk.run(
        // With few workers, few transactions share a write. The child therefore makes enough writes and syncs
        // to reach the n-th.
        first: 1, count: 500, workers: 2, syncs: true,
        [
          "POWERCUT_SEED": "\(seed &+ UInt64(number))", "POWERCUT_AT": "0",
          kind == .write ? "POWERCUT_FAIL_WRITE" : "POWERCUT_FAIL_SYNC": "\(number)",
        ])
      let childLog = try ChildLog(disk.childLogPath)
      acknowledged += childLog.acknowledged.count
      var found = childLog.wrong
      // A RocksDB built with assertions aborts the process if it cannot write its info log at the start. The
      // child has then acknowledged nothing.
      let aborted = exitStatus == .killed(SIGABRT) && !childLog.opened
      if exitStatus != .exited(0), !aborted { found.append("the child ended as \(exitStatus)") }
      if aborted || childLog.failures.contains(where: { $0.hasPrefix("refused open") }) {
        failedOpens += 1
      } else {
        if !childLog.failures.isEmpty { failedWrites += 1 }
        if childLog.reads != 1 { found.append("reads failed") }
        if !childLog.failures.allSatisfy({
          $0.contains("until the server restarts") || $0.contains("writing to")
        }) {
          found.append("a failure does not have its reason: \(childLog.failures.first ?? "")")
        }
      }
      do {
        let findings = try await Findings.check(disk.data, childLog)
        found += findings.lost.map { "lost: \($0)" } + findings.torn.map { "torn: \($0)" }
      } catch {
        found.append("the store does not open: \(error)")
      }
      problems += found.prefix(3).map { "\(kind.rawValue) \(number): \($0)" }
    }
    let summary =
      "\(kind.rawValue)s \(numbers.lowerBound) to \(numbers.upperBound) failed one by one: \(failedOpens) stopped the "
      + "start, \(failedWrites) stopped writing, \(acknowledged) transactions acknowledged, \(problems.count) problems"
    return Report(text: (problems.prefix(20) + [summary]).joined(separator: "\n"), passed: problems.isEmpty)
  }
}
