// Failing writes and syncs: the n-th of a child's life fails, for every n. From then on nothing is acknowledged,
// reads go on, and after a restart nothing acknowledged is lost, though what failed may be there or not.

import Glibc

/// What fails.
enum Fault: String {
  case write
  case sync
}

/// A run over many n.
struct Faults {
  let kind: Fault
  let numbers: ClosedRange<Int>
  let seed: UInt64

  func run() async throws -> Report {
    let disk = try Disk()
    var (refusedOpens, refusing, acknowledged, problems) = (0, 0, 0, [String]())
    for number in numbers {
      try disk.startAnew()
      let ending = try disk.run(
        // Few workers make many groups, so that the n-th write and sync come.
        first: 1, count: 500, workers: 2, syncs: true,
        [
          "POWERCUT_SEED": "\(seed &+ UInt64(number))", "POWERCUT_AT": "0",
          kind == .write ? "POWERCUT_FAIL_WRITE" : "POWERCUT_FAIL_SYNC": "\(number)",
        ])
      let notes = try Notes(disk.notes)
      acknowledged += notes.acknowledged.count
      var found = notes.wrong
      // RocksDB built with assertions ends a process whose start it could not log. Nothing was acknowledged then.
      let aborted = ending == .killed(SIGABRT) && !notes.opened
      if ending != .exited(0), !aborted { found.append("the child ended as \(ending)") }
      if aborted || notes.refusals.contains(where: { $0.hasPrefix("refused open") }) {
        refusedOpens += 1
      } else {
        if !notes.refusals.isEmpty { refusing += 1 }
        if notes.reads != 1 { found.append("reads did not go on") }
        if !notes.refusals.allSatisfy({
          $0.contains("until the server restarts") || $0.contains("writing to")
        }) {
          found.append("a refusal does not say why: \(notes.refusals.first ?? "")")
        }
      }
      do {
        let findings = try await Findings.check(disk.data, notes)
        found += findings.lost.map { "lost: \($0)" } + findings.torn.map { "torn: \($0)" }
      } catch {
        found.append("the store does not open: \(error)")
      }
      problems += found.prefix(3).map { "\(kind.rawValue) \(number): \($0)" }
    }
    let summary =
      "\(kind.rawValue)s \(numbers.lowerBound) to \(numbers.upperBound) failed one by one: \(refusedOpens) stopped the "
      + "start, \(refusing) stopped writing, \(acknowledged) transactions acknowledged, \(problems.count) problems"
    return Report(text: (problems.prefix(20) + [summary]).joined(separator: "\n"), passed: problems.isEmpty)
  }
}
