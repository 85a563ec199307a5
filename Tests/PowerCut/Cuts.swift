// Power cuts: a child writes until the shim ends it at a random change of the disk; what the shim's image holds is
// opened and verified; the next child goes on with that image, so that recoveries are cut too.

import Glibc

/// The disk that forgets: the compiled shim and the directories it works on.
struct Disk {
  let scratch: Scratch
  private let shim: String

  init() throws {
    scratch = try Scratch()
    shim = scratch.path + "/shim.so"
    let source = #filePath.split(separator: "/").dropLast().map { "/" + $0 }.joined() + "/shim.c"
    for compiler in ["clang", "cc", "gcc"] {
      let ending = try? Child.run(
        compiler, ["-O1", "-shared", "-fPIC", "-o", shim, source, "-ldl", "-lpthread"])
      if ending == .exited(0) { return }
    }
    throw CrashError("no C compiler made \(source): clang comes with Swift")
  }

  /// The data directory of the next child.
  var data: String { scratch.path + "/data" }
  /// The children's notes since the last ``startAnew()``.
  var notes: String { scratch.path + "/notes" }

  /// Forgets everything.
  func startAnew() throws {
    _ = try scratch.empty("data")
    unlink(notes)
  }

  /// Runs a child on the directory; afterwards the directory is what the disk was left with.
  func run(
    first: Int, count: Int, workers: Int, syncs: Bool, _ shimSettings: [String: String]
  ) throws -> Ending {
    let image = try scratch.empty("image")
    var environment = shimSettings
    environment["LD_PRELOAD"] = shim
    environment["POWERCUT_DIR"] = data
    environment["POWERCUT_IMAGE"] = image
    environment["POWERCUT_OBJECTS"] = try scratch.empty("objects")
    let ending = try Child.run(
      Child.own, ["write", data, notes, "\(first)", "\(count)", "\(workers)", syncs ? "sync" : "nosync"],
      environment)
    try Scratch.move(image, to: data)
    return ending
  }
}

/// A run of power cuts.
struct Cuts {
  let count: Int
  let seed: UInt64
  let syncs: Bool
  /// The children that go on with one directory before it starts anew.
  private static let chain = 8
  private static let transactions = 240

  func run() async throws -> Report {
    let disk = try Disk()
    var dice = Dice(seed: seed)
    var (acknowledged, inTheMiddle, problems) = (0, 0, [String]())
    var (lost, torn) = (0, 0)
    for cut in 0..<count {
      if cut % Cuts.chain == 0 { try disk.startAnew() }
      // Sometimes while the store opens, mostly while it writes.
      let at = Int.random(in: 1...(cut % 4 == 0 ? 60 : 600), using: &dice)
      let mode = cut % 2 == 0 ? "drop" : "tear"
      let ending = try disk.run(
        first: 1 + cut % Cuts.chain * Cuts.transactions, count: Cuts.transactions, workers: 8, syncs: syncs,
        ["POWERCUT_AT": "\(at)", "POWERCUT_MODE": mode, "POWERCUT_SEED": "\(dice.next() >> 8)"])
      guard ending == .killed(SIGKILL) || ending == .exited(0) else {
        throw CrashError("the child of cut \(cut) ended as \(ending)")
      }
      if ending == .killed(SIGKILL) { inTheMiddle += 1 }
      let notes = try Notes(disk.notes)
      do {
        let findings = try await Findings.check(disk.data, notes)
        lost += findings.lost.count
        torn += findings.torn.count
        problems += (findings.lost.prefix(3) + findings.torn.prefix(3) + notes.wrong.prefix(3)).map {
          "cut \(cut) (change \(at), \(mode)): \($0)"
        }
        torn += notes.wrong.count
        if cut % Cuts.chain == Cuts.chain - 1 || cut == count - 1 { acknowledged += notes.acknowledged.count }
        if !findings.lost.isEmpty || !findings.torn.isEmpty { try disk.startAnew() }
      } catch {
        lost += notes.acknowledged.count
        torn += 1
        problems.append("cut \(cut) (change \(at), \(mode)): the store does not open: \(error)")
        try disk.startAnew()
      }
    }
    let summary =
      "\(count) power cuts (\(inTheMiddle) in the middle of the work), \(acknowledged) acknowledged transactions, "
      + "sync \(syncs ? "on" : "off"), seed \(seed): \(lost) lost, \(torn) torn"
    return Report(
      text: (problems.prefix(20) + [summary]).joined(separator: "\n"), passed: lost == 0 && torn == 0)
  }
}
