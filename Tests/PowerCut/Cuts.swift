// Power cuts: a child writes until the shim ends it at a random change of the disk; a copy of what the shim's image
// holds is opened and verified; the next child goes on with the image itself, so that recoveries are cut too. Each
// child's clock is an hour behind that of the one before.

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

  /// A copy of the data directory, to be opened and changed at will.
  func copy() throws -> String {
    let path = try scratch.empty("copy")
    try Scratch.copy(data, to: path)
    return path
  }

  /// Runs a child on the directory; afterwards the directory is what the disk was left with.
  func run(
    first: Int, count: Int, workers: Int, syncs: Bool, hoursBehind: Int = 0, _ shimSettings: [String: String]
  ) throws -> Ending {
    let image = try scratch.empty("image")
    var environment = shimSettings
    environment["LD_PRELOAD"] = shim
    environment["POWERCUT_DIR"] = data
    environment["POWERCUT_IMAGE"] = image
    environment["POWERCUT_OBJECTS"] = try scratch.empty("objects")
    let ending = try Child.run(
      Child.own,
      [
        "write", data, notes, "\(first)", "\(count)", "\(workers)", syncs ? "sync" : "nosync",
        "\(hoursBehind)",
      ], environment)
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

  /// What has been found so far.
  private struct Tally {
    var acknowledged = 0
    var lost = 0
    var torn = 0
    var problems: [String] = []
  }

  func run() async throws -> Report {
    let disk = try Disk()
    var dice = Dice(seed: seed)
    var tally = Tally()
    var (cuts, children) = (0, 0)
    try disk.startAnew()
    while cuts < count {
      // Sometimes while the store opens, mostly while it writes. Some children end before: that is no cut.
      let at = Int.random(in: 1...(children % 4 == 0 ? 60 : 450), using: &dice)
      let mode = children % 2 == 0 ? "drop" : "tear"
      let place = children % Cuts.chain
      children += 1
      guard children < 8 * count + 40 else { throw CrashError("\(children) children, only \(cuts) cuts") }
      let ending = try disk.run(
        first: 1 + place * Cuts.transactions, count: Cuts.transactions, workers: 8, syncs: syncs,
        hoursBehind: place,
        ["POWERCUT_AT": "\(at)", "POWERCUT_MODE": mode, "POWERCUT_SEED": "\(dice.next() >> 8)"])
      guard ending == .killed(SIGKILL) || ending == .exited(0) else {
        throw CrashError("the child of cut \(cuts) ended as \(ending)")
      }
      if ending == .killed(SIGKILL) { cuts += 1 }
      let notes = try Notes(disk.notes)
      let isWhole = await verify(disk, notes, "cut \(cuts) (change \(at), \(mode))", &tally)
      if !isWhole || place == Cuts.chain - 1 || cuts == count {
        tally.acknowledged += notes.acknowledged.count
        if cuts < count {
          try disk.startAnew()
          children += Cuts.chain - 1 - place
        }
      }
    }
    return report(tally)
  }

  /// Opens a copy of the image and holds it against the notes; returns whether nothing is wrong.
  private func verify(_ disk: Disk, _ notes: Notes, _ name: String, _ tally: inout Tally) async -> Bool {
    do {
      let findings = try await Findings.check(try disk.copy(), notes)
      tally.lost += findings.lost.count
      tally.torn += findings.torn.count + notes.wrong.count
      let found = findings.lost.prefix(3) + findings.torn.prefix(3) + notes.wrong.prefix(3)
      tally.problems += found.map { "\(name): \($0)" }
      return found.isEmpty
    } catch {
      tally.lost += notes.acknowledged.count
      tally.torn += 1
      tally.problems.append("\(name): the store does not open: \(error)")
      return false
    }
  }

  private func report(_ tally: Tally) -> Report {
    let summary =
      "\(count) power cuts, \(tally.acknowledged) acknowledged transactions, sync \(syncs ? "on" : "off"), "
      + "seed \(seed): \(tally.lost) lost, \(tally.torn) torn"
    return Report(
      text: (tally.problems.prefix(20) + [summary]).joined(separator: "\n"),
      passed: tally.lost == 0 && tally.torn == 0)
  }
}
