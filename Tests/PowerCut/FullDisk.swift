// The full-disk run lets a child process fill a file system of 4 MiB in memory. When the disk is full, the
// store must acknowledge nothing, reads must succeed, and the error message must name the reason. After a
// restart with more space, every acknowledged transaction must exist.

import Glibc

/// A run on a small file system.
struct FullDisk {
  let seed: UInt64

  func run() async throws -> Report {
    let scratch = try Scratch()
    let data = try scratch.makeEmptyDirectory("data")
    guard mount("tmpfs", data, "tmpfs", 0, "size=4m") == 0 else {
      return Report(
        text:
          "skipped: mounting a small file system is not permitted here (\(String(cString: strerror(errno))))",
        passed: true)
    }
    defer { umount2(data, Int32(MNT_DETACH)) }
    let path = scratch.path + "/notes"
    let exitStatus = try Child.run(
      Child.ownPath, ["write", data, path, "\(Transaction.firstLarge)", "5000", "8", "sync", "0"])
    let childLog = try ChildLog(path)
    var problems = childLog.wrong
    if exitStatus != .exited(0) { problems.append("the child ended as \(exitStatus)") }
    if childLog.reads != 1 { problems.append("reads failed") }
    if childLog.failures.isEmpty { problems.append("the disk did not fill up") }
    if let unclear = childLog.failures.first(where: { !$0.contains("No space left") }) {
      problems.append("a failure does not report the full disk: \(unclear)")
    }
    guard mount("tmpfs", data, "tmpfs", UInt(MS_REMOUNT), "size=64m") == 0 else {
      throw CrashError("cannot enlarge the file system")
    }
    let findings = try await Findings.check(data, childLog)
    problems += findings.lost.map { "lost: \($0)" } + findings.torn.map { "torn: \($0)" }
    let summary =
      "a full file system of 4 MiB: \(childLog.acknowledged.count) transactions acknowledged before, "
      + "\(childLog.failures.count) failed after, \(problems.count) problems"
    return Report(text: (problems.prefix(20) + [summary]).joined(separator: "\n"), passed: problems.isEmpty)
  }
}
