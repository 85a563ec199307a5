// The verification of a reopened store. Every acknowledged transaction must be complete, at its version. All
// other transactions must be complete or absent. Log, counter, overwritten rows and history must agree with
// the transactions.

import EmbeddedStore
import Glibc
import OrderedStore

/// The acknowledgements of the children.
struct ChildLog {
  /// The acknowledged transactions, by number, with their versions.
  var acknowledged: [Int: Version] = [:]
  var newestReserved = Version.zero
  /// The lines in which a child recorded a wrong result.
  var wrong: [String] = []
  var failures: [String] = []
  var reads = 0
  var opened = false

  init(_ path: String) throws {
    for line in try Scratch.read(path).split(separator: "\n") {
      let words = line.split(separator: " ", maxSplits: 2)
      guard words.count >= 2 else { continue }
      switch words[0] {
      case "acknowledged":
        guard let number = Int(words[1]), words.count == 3, let version = UInt64(words[2]) else { continue }
        acknowledged[number] = Version(microseconds: version)
      case "reserved":
        newestReserved = max(newestReserved, Version(microseconds: UInt64(words[1]) ?? 0))
      case "refused": failures.append(String(line))
      case "read": reads += 1
      case "opened": opened = true
      default: wrong.append(String(line))
      }
    }
  }
}

/// The findings about one image, the data that the simulated disk retained at a power cut.
struct Findings {
  /// The acknowledged data that is missing.
  var lost: [String] = []
  /// The data that is incomplete, or contradicts other data.
  var torn: [String] = []
  /// The number of transactions in the log.
  var present = 0

  /// Opens a directory and verifies it against the acknowledgements.
  static func check(_ directory: String, _ childLog: ChildLog) async throws -> Findings {
    let store = try await EmbeddedStore.open(directory: directory, Workload.options(syncs: true))
    let database = try await store.database(named: Workload.databaseName, history: Workload.history)
    var findings = Findings()
    let log = try await database.log(after: .zero, limit: .max)
    let versions = log.map(\.version)
    if versions != Set(versions).sorted() { findings.torn.append("the log is out of order") }
    let logged = Dictionary(
      log.map { (Transaction.number($0.payload), $0.version) }, uniquingKeysWith: { first, _ in first })
    findings.present = logged.count
    findings.compareAcknowledged(childLog, logged, database.latestVersion)
    findings.torn += try await database.read(at: nil) { try Findings.torn($0, logged) }
    // This checks history: at some past versions, the counter must equal the number of commits up to that
    // version.
    for index in stride(from: 0, to: log.count, by: max(log.count / 6, 1)) {
      let count = try await database.read(at: log[index].version) { try Transaction.count($0) }
      if count != index + 1 { findings.torn.append("at \(log[index].version) the counter reads \(count)") }
    }
    try await store.close()
    return findings
  }

  private mutating func compareAcknowledged(_ childLog: ChildLog, _ logged: [Int: Version], _ latest: Version)
  {
    for (number, version) in childLog.acknowledged {
      if logged[number] == nil {
        lost.append("transaction \(number) acknowledged at \(version)")
      } else if logged[number] != version {
        torn.append("transaction \(number) acknowledged at \(version) is logged at another version")
      }
    }
    if let newest = childLog.acknowledged.values.max(), newest > latest {
      lost.append("version \(newest): the newest is \(latest)")
    }
    if childLog.newestReserved > latest {
      lost.append("reservation \(childLog.newestReserved): the newest is \(latest)")
    }
  }

  private static func torn(_ view: any ReadView, _ logged: [Int: Version]) throws -> [String] {
    var torn: [String] = []
    for (number, version) in logged {
      for (key, value) in Transaction(number: number).rows {
        let row = try view.get(key)
        if row != VersionedValue(value: value, writtenAt: version) {
          torn.append("transaction \(number), row \(key)")
        }
      }
    }
    let numbers = try Transaction.numbers(view)
    if numbers != Set(logged.keys) {
      torn.append("rows without a log record: \(numbers.subtracting(logged.keys).sorted())")
    }
    let count = try Transaction.count(view)
    if count != logged.count { torn.append("the counter reads \(count) of \(logged.count)") }
    for residue in 0..<7 {
      let newest = logged.filter { $0.key % 7 == residue }.max { $0.value < $1.value }
      let hotRow = try view.get([UInt8(ascii: "h"), UInt8(residue)])
      if hotRow?.value != newest.map({ Transaction.bytes($0.key) }) { torn.append("the hot row \(residue)") }
    }
    return torn
  }
}
