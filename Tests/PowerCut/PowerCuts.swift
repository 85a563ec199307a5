// The power-cuts run lets child processes write until a simulated power cut. The simulated disk (shim.c) ends
// each child at a random change of the disk, and keeps an image of the data that a real disk would retain.
// The run opens and verifies a copy of the image. The next child continues with the original image, so that power cuts
// also interrupt recoveries. Each child's clock is one hour behind the clock of the previous child.

import Glibc

/// The simulated disk: the directories of a run, and the compiled shim, a library that replaces the file functions of
/// the C library in child processes.
struct SimulatedDisk {
  let scratch: Scratch
  private let shim: String
  /// The path of the data directory below `root`; empty if the data directory is `root`.
  private let subdirectory: String

  /// Compiles the shim.
  ///
  /// - Parameter subdirectory: the path of the data directory below the directory that children receive.
  init(below subdirectory: String = "") throws {
    self.subdirectory = subdirectory
    scratch = try Scratch()
    shim = scratch.path + "/shim.so"
    let source = #filePath.split(separator: "/").dropLast().map { "/" + $0 }.joined() + "/shim.c"
    for compiler in ["clang", "cc", "gcc"] {
      let exitStatus = try? Child.run(
        compiler, ["-O1", "-shared", "-fPIC", "-o", shim, source, "-ldl", "-lpthread"])
      if exitStatus == .exited(0) { return }
    }
    throw CrashError("no C compiler made \(source): clang comes with Swift")
  }

  /// The directory that the next child receives.
  var root: String { scratch.path + "/data" }
  /// The directory that the shim simulates.
  var data: String { root + subdirectory }
  /// The path of the file in which the children have recorded acknowledgements since the last ``reset()``.
  var childLogPath: String { scratch.path + "/notes" }

  /// Removes all data.
  func reset() throws {
    try Scratch.makeDirectories(subdirectory, below: scratch.makeEmptyDirectory("data"))
    unlink(childLogPath)
  }

  /// Copies the data directory. The caller may open and change the copy.
  ///
  /// - Returns: the copy's root.
  func copy() throws -> String {
    let path = try scratch.makeEmptyDirectory("copy")
    try Scratch.makeDirectories(subdirectory, below: path)
    try Scratch.copy(data, to: path + subdirectory)
    return path
  }

  /// Runs a child on the directory. Afterwards the directory contains only the data that the disk retained.
  func run(
    _ subject: Subject = .transactions, first: Int, count: Int, workers: Int, syncs: Bool,
    hoursBehind: Int = 0,
    _ shimSettings: [String: String]
  ) throws -> ExitStatus {
    try run(
      Child.ownPath,
      [
        subject.childCommand, data, childLogPath, "\(first)", "\(count)", "\(workers)",
        syncs ? "sync" : "nosync",
        "\(hoursBehind)",
      ], shimSettings)
  }

  /// Runs a program on the directory.
  ///
  /// - Parameter keepsAll: whether the directory keeps what the program wrote, as after a kill.
  func run(
    _ program: String, _ arguments: [String], _ shimSettings: [String: String], keepsAll: Bool = false
  ) throws -> ExitStatus {
    let image = try scratch.makeEmptyDirectory("image")
    var environment = shimSettings
    environment["LD_PRELOAD"] = shim
    environment["POWERCUT_DIR"] = data
    environment["POWERCUT_IMAGE"] = image
    environment["POWERCUT_OBJECTS"] = try scratch.makeEmptyDirectory("objects")
    let exitStatus = try Child.run(program, arguments, environment)
    if !keepsAll { try Scratch.move(image, to: data) }
    return exitStatus
  }
}

/// The data that a child writes.
enum Subject {
  /// Rows of a database (Workload.swift).
  case transactions
  /// Users and service accounts (AccountWorkload.swift).
  case accounts

  /// The command of the child.
  var childCommand: String {
    switch self {
    case .transactions: "write"
    case .accounts: "write-accounts"
    }
  }

  /// The number of steps of a child.
  var steps: Int {
    switch self {
    case .transactions: 240
    case .accounts: 160
    }
  }

  /// The highest number of the disk change at which a child's power cut may happen. Most children make that many
  /// changes.
  var maximumChange: Int {
    switch self {
    case .transactions: 450
    case .accounts: 250
    }
  }
}

/// A run of power cuts.
struct PowerCuts {
  var subject = Subject.transactions
  let count: Int
  let seed: UInt64
  let syncs: Bool
  /// The number of children that use one directory, one after another, before the run starts with an empty directory.
  private static let childrenPerDirectory = 8

  /// The findings so far.
  private struct Tally {
    var acknowledged = 0
    var lost = 0
    var torn = 0
    var problems: [String] = []
  }

  func run() async throws -> Report {
    let disk = try SimulatedDisk()
    var generator = SeededRandom(seed: seed)
    var tally = Tally()
    var (cuts, children) = (0, 0)
    try disk.reset()
    while cuts < count {
      // In one of four children the cut happens early, while the store opens. In the other children it happens while
      // the store writes. A child that completes before its cut is not counted as a cut.
      let cutChange = Int.random(in: 1...(children % 4 == 0 ? 60 : subject.maximumChange), using: &generator)
      let mode = children % 2 == 0 ? "drop" : "tear"
      let position = children % PowerCuts.childrenPerDirectory
      children += 1
      guard children < 8 * count + 40 else { throw CrashError("\(children) children, only \(cuts) cuts") }
      let exitStatus = try disk.run(
        subject, first: 1 + position * subject.steps, count: subject.steps, workers: 8, syncs: syncs,
        // The store keeps revocations for an hour by its clock, so the clock must not go back when the subject is accounts.
        hoursBehind: subject == .accounts ? 0 : position,
        ["POWERCUT_AT": "\(cutChange)", "POWERCUT_MODE": mode, "POWERCUT_SEED": "\(generator.next() >> 8)"])
      guard exitStatus == .killed(SIGKILL) || exitStatus == .exited(0) else {
        throw CrashError("the child of cut \(cuts) ended as \(exitStatus)")
      }
      if exitStatus == .killed(SIGKILL) { cuts += 1 }
      let (isIntact, acknowledged) = await verify(disk, "cut \(cuts) (change \(cutChange), \(mode))", &tally)
      if !isIntact || position == PowerCuts.childrenPerDirectory - 1 || cuts == count {
        tally.acknowledged += acknowledged
        if cuts < count {
          try disk.reset()
          children += PowerCuts.childrenPerDirectory - 1 - position
        }
      }
    }
    return report(tally)
  }

  /// Cuts the power at each change of a range, and each time begins with an empty directory. Unlike ``run()``, this
  /// method also cuts the power at every step of the store's change from a full log file to a new log file.
  func runEach(_ changes: ClosedRange<Int>) async throws -> Report {
    let disk = try SimulatedDisk()
    var tally = Tally()
    for at in changes {
      for mode in ["drop", "tear"] {
        try disk.reset()
        let exitStatus = try disk.run(
          subject, first: 1, count: subject.steps, workers: 2, syncs: syncs,
          ["POWERCUT_AT": "\(at)", "POWERCUT_MODE": mode, "POWERCUT_SEED": "\(seed &+ UInt64(at))"])
        guard exitStatus == .killed(SIGKILL) || exitStatus == .exited(0) else {
          throw CrashError("the child of change \(at) ended as \(exitStatus)")
        }
        tally.acknowledged += await verify(disk, "change \(at), \(mode)", &tally).acknowledged
      }
    }
    return report(tally)
  }

  /// Opens a copy of the image and verifies it against the acknowledgements.
  /// - Returns: whether the verification found no problem, and the number of acknowledgements.
  private func verify(
    _ disk: SimulatedDisk, _ name: String, _ tally: inout Tally
  ) async -> (isIntact: Bool, acknowledged: Int) {
    var acknowledged = 0
    do {
      let findings: Findings
      switch subject {
      case .transactions:
        let childLog = try ChildLog(disk.childLogPath)
        acknowledged = childLog.acknowledged.count
        var found = try await Findings.check(try disk.copy(), childLog)
        found.torn += childLog.wrong
        findings = found
      case .accounts:
        (findings, acknowledged) = try await Findings.checkAccounts(
          try disk.copy(), log: disk.childLogPath)
      }
      tally.lost += findings.lost.count
      tally.torn += findings.torn.count
      let found = findings.lost.prefix(3) + findings.torn.prefix(3)
      tally.problems += found.map { "\(name): \($0)" }
      return (found.isEmpty, acknowledged)
    } catch {
      tally.lost += acknowledged
      tally.torn += 1
      tally.problems.append("\(name): the store does not open: \(error)")
      return (false, acknowledged)
    }
  }

  private func report(_ tally: Tally) -> Report {
    let steps = subject == .accounts ? "changes of accounts" : "transactions"
    let summary =
      "\(count) power cuts, \(tally.acknowledged) acknowledged \(steps), sync \(syncs ? "on" : "off"), "
      + "seed \(seed): \(tally.lost) lost, \(tally.torn) torn"
    return Report(
      text: (tally.problems.prefix(20) + [summary]).joined(separator: "\n"),
      passed: tally.lost == 0 && tally.torn == 0)
  }
}
