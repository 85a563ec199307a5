// A full disk: a file system of 4 MiB in memory fills up under a child. Nothing is acknowledged once it is full,
// reads go on, the message says why, and with more room nothing acknowledged is lost.

import Glibc

/// A run on a small file system.
struct FullDisk {
  let seed: UInt64

  func run() async throws -> Report {
    let scratch = try Scratch()
    let data = try scratch.empty("data")
    guard mount("tmpfs", data, "tmpfs", 0, "size=4m") == 0 else {
      return Report(
        text:
          "skipped: mounting a small file system is not permitted here (\(String(cString: strerror(errno))))",
        passed: true)
    }
    defer { umount2(data, Int32(MNT_DETACH)) }
    let path = scratch.path + "/notes"
    let ending = try Child.run(
      Child.own, ["write", data, path, "\(Transaction.firstLarge)", "5000", "8", "sync", "0"])
    let notes = try Notes(path)
    var problems = notes.wrong
    if ending != .exited(0) { problems.append("the child ended as \(ending)") }
    if notes.reads != 1 { problems.append("reads did not go on") }
    if notes.refusals.isEmpty { problems.append("the disk did not fill up") }
    if let silent = notes.refusals.first(where: { !$0.contains("No space left") }) {
      problems.append("a refusal does not say that the disk is full: \(silent)")
    }
    guard mount("tmpfs", data, "tmpfs", UInt(MS_REMOUNT), "size=64m") == 0 else {
      throw CrashError("cannot give the file system more room")
    }
    let findings = try await Findings.check(data, notes)
    problems += findings.lost.map { "lost: \($0)" } + findings.torn.map { "torn: \($0)" }
    let summary =
      "a full file system of 4 MiB: \(notes.acknowledged.count) transactions acknowledged before, "
      + "\(notes.refusals.count) refused after, \(problems.count) problems"
    return Report(text: (problems.prefix(20) + [summary]).joined(separator: "\n"), passed: problems.isEmpty)
  }
}
