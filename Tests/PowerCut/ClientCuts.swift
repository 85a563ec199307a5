// The client-cuts run ends clients of an SDK at random changes of their disk, such as writes and renamed files. One third
// of the clients are killed, and the disk keeps all data. For the other clients the power is cut (PowerCuts.swift). For
// half of all clients, a random sync also fails before the kill or power cut.
//
// The next start must find a prefix of the writes, in order and without a gap. After a kill they include every write
// whose event the app received; after a power cut or a failed sync, every write that is durable. The app must
// receive an error for each failed sync, and for nothing else.

import Glibc

/// A run of kills and power cuts of clients.
struct ClientCuts {
  /// The SDK of the clients.
  enum Product: String {
    case database, firestore

    /// The directory of the cache below the client's data directory.
    var cache: String {
      switch self {
      case .database: "/firebase/1%3A1%3Aios%3Aab/crash.database"
      case .firestore: "/firestore/crash-1%3A1%3Aios%3Aab/demo-crash.(default)"
      }
    }
  }

  let product: Product
  let count: Int
  let seed: UInt64
  /// The number of clients that use one cache, one after another, before the run starts with an empty cache.
  private static let clientsPerCache = 4
  private static let writes = 300

  private enum Cut: String, CaseIterable {
    case kill, drop, tear
  }

  func run() throws -> Report {
    let disk = try SimulatedDisk(below: product.cache)
    var generator = SeededRandom(seed: seed)
    var (cuts, clients, shown, durable, failures) = (0, 0, 0, 0, 0)
    // The number of the last write in the cache with which the next client starts. The disk has kept this write.
    var before = 0
    var problems: [String] = []
    while cuts < count {
      if clients % ClientCuts.clientsPerCache == 0 {
        try disk.reset()
        before = 0
      }
      clients += 1
      guard clients < 8 * count + 40 else { throw CrashError("\(clients) clients, only \(cuts) cuts") }
      // In one of four clients the cut happens early, while the cache opens.
      let cutChange = Int.random(in: 1...(clients % 4 == 0 ? 60 : 2_500), using: &generator)
      let cut = Cut.allCases[clients % 3]
      let failingSync = clients % 8 < 4 ? 0 : Int.random(in: 1...30, using: &generator)
      unlink(disk.childLogPath)
      let status = try disk.run(
        Child.sibling("hearth-crash-client"),
        [product.rawValue, "write", disk.childLogPath, "\(ClientCuts.writes)"],
        [
          "XDG_DATA_HOME": disk.root, "POWERCUT_AT": "\(cutChange)", "POWERCUT_MODE": cut.rawValue,
          "POWERCUT_SEED": "\(generator.next() >> 8)", "POWERCUT_FAIL_SYNC": "\(failingSync)",
        ], keepsAll: cut == .kill)
      guard status == .killed(SIGKILL) || status == .exited(0) else {
        throw CrashError("client \(clients) ended as \(status)")
      }
      if status == .killed(SIGKILL) { cuts += 1 }
      let written = try ClientLog(disk.childLogPath)
      let restored = try read(disk)
      shown += written.shown
      durable += written.durable
      failures += written.failures.count
      let isKill = cut == .kill && written.failures.isEmpty
      let minimum = max(before, isKill ? written.shown : written.durable)
      var found = written.wrong + restored.problems(atLeast: minimum, atMost: max(before, written.made))
      if failingSync == 0 || written.failures.count > 1 || !written.failures.allSatisfy({ $0 > 2 }) {
        found += written.failures.map { "the app received the error \($0)" }
      }
      problems += found.prefix(3).map {
        "cut \(cuts) (change \(cutChange), \(cut), sync \(failingSync)): \($0)"
      }
      before = restored.last
    }
    if durable == 0 { problems.append("no write was synced before its client ended") }
    if failures == 0, count >= 50 { problems.append("no app received an error of a failed sync") }
    let summary =
      "\(count) kills and power cuts of \(product) clients, seed \(seed): \(shown) writes seen by the app, \(durable) synced, "
      + "\(failures) failed syncs reported, \(problems.count) problems"
    return Report(text: (problems.prefix(20) + [summary]).joined(separator: "\n"), passed: problems.isEmpty)
  }

  /// Starts a client that reads a copy of the cache. Returns the log of that client.
  private func read(_ disk: SimulatedDisk) throws -> ClientLog {
    let root = try disk.copy()
    let path = disk.scratch.path + "/read"
    unlink(path)
    let status = try Child.run(
      Child.sibling("hearth-crash-client"), [product.rawValue, "read", path], ["XDG_DATA_HOME": root])
    guard status == .exited(0) else { throw CrashError("the reading client ended as \(status)") }
    return try ClientLog(path)
  }
}

/// The log of one client.
struct ClientLog {
  /// The number of the last write that the client made.
  private(set) var made = 0
  /// The number of the last write whose event the app received.
  private(set) var shown = 0
  /// The number of the last write that is durable.
  private(set) var durable = 0
  /// The lines that report a wrong entry or cannot be read.
  private(set) var wrong: [String] = []
  /// The codes of the errors of the cache that the app received.
  private(set) var failures: [Int] = []
  private var restored: [Int] = []
  private(set) var last = 0
  private var isComplete = false

  init(_ path: String) throws {
    for line in try Scratch.read(path).split(separator: "\n") {
      let words = line.split(separator: " ", maxSplits: 1)
      guard words.count == 2, let number = Int(words[1]) else {
        wrong.append(String(line))
        continue
      }
      switch words[0] {
      case "made": made = number
      case "shown": shown = number
      case "durable": durable = number
      case "failed": failures.append(number)
      case "restored": restored.append(number)
      case "last": last = number
      case "read": isComplete = true
      default: wrong.append(String(line))
      }
    }
    made = max(made, shown)
  }

  /// The problems of the writes that a reading client found.
  func problems(atLeast minimum: Int, atMost maximum: Int) -> [String] {
    var problems = wrong + failures.map { "the reading client received the error \($0)" }
    if !isComplete { problems.append("the reading client did not finish") }
    if restored.sorted() != Array(0..<restored.count).map({ $0 + 1 }) {
      problems.append("the entries are not the first ones: \(restored.sorted().suffix(5))")
    }
    if last != restored.count { problems.append("\(restored.count) entries, the last is \(last)") }
    if last < minimum { problems.append("lost: \(last) writes of at least \(minimum)") }
    if last > maximum { problems.append("\(last) writes of at most \(maximum)") }
    return problems
  }
}
