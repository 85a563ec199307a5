// Tests of opening damaged data directories. Damage of acknowledged rows must be reported, never silently ignored.

import EmbeddedStore
import Foundation
import Locking
import OrderedStore
import Testing

/// A data directory in the state after a kill. Each test damages a copy of the directory.
private struct Victim {
  static let name = "firestore/projects/p/databases/(default)"
  private let scratch: ScratchDirectory
  let original: String
  /// The path of a copy that was made after the first 40 rows were written. All of these rows are in the first log.
  let beginning: String
  /// The acknowledged keys, in order. Each key has its own record in the log.
  private(set) var keys: [Key] = []
  private var values: [StoredValue] = []

  /// Makes a directory with some rows in tables and the last rows only in one or two logs.
  init(logs: Int = 1) async throws {
    scratch = try ScratchDirectory()
    let live = scratch.path + "/live"
    original = scratch.path + "/original"
    beginning = scratch.path + "/beginning"
    let store = try await EmbeddedStore.open(directory: live, Victim.options)
    let database = try await store.database(named: Victim.name, history: .activeReadersOnly)
    while try keys.count < 120 || !Victim.isSettled(live, logs: logs), keys.count < 2_000 {
      let number = keys.count
      let key = Array("row \(number)".utf8)
      let value: StoredValue = (0..<100).flatMap { _ in key }
      _ = try await database.execute(validating: nil) { try $0.set(key, value) }
      keys.append(key)
      values.append(value)
      if keys.count == 40 { try FileManager.default.copyItem(atPath: live, toPath: beginning) }
      // RocksDB writes two full memtables to a table in the background, and then removes their logs. The
      // loop waits for the end of this work, so that the directory no longer changes.
      let deadline = ContinuousClock.now + .seconds(60)
      while try Victim.logs(live).count > 2, ContinuousClock.now < deadline {
        try await Task.sleep(for: .milliseconds(5))
      }
    }
    #expect(try Victim.isSettled(live, logs: logs))
    // The store is still open, so the copied files are those that a kill would leave behind.
    try FileManager.default.copyItem(atPath: live, toPath: original)
    try await store.close()
  }

  /// Whether some rows are in tables, all other rows are in `count` logs, and the last of these logs has several records.
  private static func isSettled(_ path: String, logs count: Int) throws -> Bool {
    let names = try FileManager.default.contentsOfDirectory(atPath: path)
    let logs = try Victim.logs(path)
    guard names.contains(where: { $0.hasSuffix(".sst") }), logs.count == count, let last = logs.last else {
      return false
    }
    return try Data(contentsOf: URL(fileURLWithPath: path + "/" + last)).count > 16 << 10
  }

  /// The name of the file that records the newest write-ahead log.
  static func record(_ path: String) throws -> String {
    let records = try FileManager.default.contentsOfDirectory(atPath: path).filter {
      $0.hasPrefix("newest-log-")
    }
    #expect(records.count == 1, "\(records)")
    return try #require(records.first)
  }

  /// The name of the record of a log.
  static func record(ofLog log: String) -> String { "newest-log-" + log.dropLast(".log".count) }

  /// The names of a directory's write-ahead logs, the oldest first.
  static func logs(_ path: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path).filter { $0.hasSuffix(".log") }.sorted()
  }

  static var options: EmbeddedOptions {
    EmbeddedOptions(
      store: StoreOptions(trimmingIntervalMilliseconds: 0), blockCacheBytes: 1 << 20, memtableBytes: 64 << 10)
  }

  /// The store's reports while it opens a directory.
  static func reports(openingAt path: String) async throws -> [String] {
    let reports = Guarded<[String]>([])
    var options = Victim.options
    options.store.report = { text in reports.withLock { $0.append(text) } }
    try await EmbeddedStore.open(directory: path, options).close()
    return reports.withLock { $0 }
  }

  var files: [String] {
    get throws { try FileManager.default.contentsOfDirectory(atPath: original).sorted() }
  }

  /// The name of the write-ahead log, which contains the last rows.
  var log: String { get throws { try #require(try Victim.logs(original).last) } }

  func bytes(_ file: String) throws -> Data {
    try Data(contentsOf: URL(fileURLWithPath: original + "/" + file))
  }

  /// Makes a new copy of the directory, which the test may damage.
  func copy() throws -> String {
    let path = scratch.path + "/copy"
    try? FileManager.default.removeItem(atPath: path)
    try FileManager.default.copyItem(atPath: original, toPath: path)
    return path
  }

  enum Outcome {
    /// The store opens, and contains the first rows in the order of writing; the associated value is their number.
    case rows(Int)
    case failed(StoreError)
    /// The store opens, but a row is missing although a later row exists.
    case notAPrefix
  }

  /// Opens a directory and reads every row.
  func open(_ path: String) async throws -> Outcome {
    do {
      let store = try await EmbeddedStore.open(directory: path, Victim.options)
      do {
        let database = try await store.database(named: Victim.name, history: .activeReadersOnly)
        let found = try await database.read(at: nil) { [keys, values] view in
          try zip(keys, values).map { try view.get($0)?.value == $1 }
        }
        try await store.close()
        let count = found.prefix { $0 }.count
        return found.dropFirst(count).contains(true) ? .notAPrefix : .rows(count)
      } catch {
        try await store.close()
        throw error
      }
    } catch let error as StoreError {
      return .failed(error)
    }
  }

  /// Opens a damaged directory twice. Expects each time that all rows exist, or that opening fails with a
  /// typed error.
  /// - Returns: the error, if the directory could not be opened.
  @discardableResult
  func expectNoSilentLoss(_ path: String, _ what: String, mayLoseLast: Bool = false) async throws
    -> StoreError?
  {
    var errors: [StoreError] = []
    for _ in 0..<2 {
      switch try await open(path) {
      case .rows(let count):
        #expect(
          count >= keys.count - (mayLoseLast ? 1 : 0),
          "\(what): \(count) of \(keys.count) rows, without an error")
      case .notAPrefix: Issue.record("\(what): rows are missing in the middle")
      case .failed(let error):
        #expect([.corrupted, .unavailable].contains(error.code), "\(what): \(error)")
        errors.append(error)
      }
    }
    #expect(errors.count != 1, "\(what): failed only once")
    return errors.first
  }
}

@Suite("Damaged files of the embedded store")
struct DamageTests {
  @Test(
    "With a flipped bit in any file, opening fails with a typed error or no row is lost", arguments: [1, 2])
  func flippedBits(logs: Int) async throws {
    let victim = try await Victim(logs: logs)
    let newest = try victim.log
    for file in try victim.files {
      let original = try victim.bytes(file)
      for _ in 0..<(original.isEmpty ? 0 : 8) {
        var bytes = original
        let at = Int.random(in: 0..<bytes.count)
        let bit = UInt8(1) << UInt8.random(in: 0..<8)
        bytes[at] ^= bit
        let path = try victim.copy()
        try bytes.write(to: URL(fileURLWithPath: path + "/" + file))
        // A damaged last record looks the same as a power cut during its write.
        try await victim.expectNoSilentLoss(
          path, "\(file), byte \(at) of \(bytes.count), bit \(bit)", mayLoseLast: file == newest)
      }
    }
  }

  @Test("If the older of two logs is missing or was shortened at any position, opening fails")
  func olderLog() async throws {
    let victim = try await Victim(logs: 2)
    let log = try #require(try Victim.logs(victim.original).first)
    let bytes = try victim.bytes(log)
    let path = try victim.copy()
    try FileManager.default.removeItem(atPath: path + "/" + log)
    let missing = try #require(try await victim.expectNoSilentLoss(path, "without \(log)"))
    #expect(
      missing.code == .corrupted && missing.message.contains("lacks its oldest write-ahead log"), "\(missing)"
    )
    var whole = 0
    for kept in [0, 1, bytes.count / 3, bytes.count / 2, bytes.count - 1000, bytes.count - 1] {
      let path = try victim.copy()
      try bytes.prefix(kept).write(to: URL(fileURLWithPath: path + "/" + log))
      let error = try #require(try await victim.expectNoSilentLoss(path, "\(kept) bytes of \(log)"))
      #expect(error.code == .corrupted, "\(error)")
      guard let place = error.message.firstMatch(of: /damaged at byte ([0-9]+)/).flatMap({ Int($0.1) }) else {
        continue
      }
      whole = place
      // The same log, cut exactly between two records.
      try bytes.prefix(place).write(to: URL(fileURLWithPath: path + "/" + log))
      let cut = try #require(try await victim.expectNoSilentLoss(path, "\(place) bytes of \(log)"))
      #expect(cut.code == .corrupted && cut.message.contains("lacks"), "\(cut)")
    }
    #expect(whole > 0, "no cut was between two records")
  }

  @Test("With any file missing, opening fails with a typed error or no row is lost", arguments: [1, 2])
  func missingFiles(logs: Int) async throws {
    let victim = try await Victim(logs: logs)
    for file in try victim.files {
      let path = try victim.copy()
      try FileManager.default.removeItem(atPath: path + "/" + file)
      try await victim.expectNoSilentLoss(path, "without \(file)")
    }
    let path = try victim.copy()
    for file in try victim.files
    where file == "CURRENT" || file.hasPrefix("MANIFEST-") || file.hasSuffix(".sst") {
      try FileManager.default.removeItem(atPath: path + "/" + file)
    }
    try await victim.expectNoSilentLoss(path, "with its log alone")
  }

  @Test("A missing log is detected although an older log, whose rows are in tables, exists")
  func missingLogAfterOldLog() async throws {
    let victim = try await Victim()
    let old = try victim.log
    // The next start writes all rows from the log to tables, and begins a new log for later writes.
    let path = try victim.copy()
    let store = try await EmbeddedStore.open(directory: path)
    let database = try await store.database(named: Victim.name, history: .activeReadersOnly)
    _ = try await database.execute(validating: nil) { try $0.set([1], [1]) }
    try await store.close()
    let logs = try FileManager.default.contentsOfDirectory(atPath: path).filter { $0.hasSuffix(".log") }
    #expect(logs.count == 1 && logs != [old])
    for log in logs { try FileManager.default.removeItem(atPath: path + "/" + log) }
    try victim.bytes(old).write(to: URL(fileURLWithPath: path + "/" + old))
    guard case .failed(let error) = try await victim.open(path) else {
      Issue.record("it opens without acknowledged rows")
      return
    }
    #expect(error.code == .corrupted && error.message.contains("write-ahead log"), "\(error)")
  }

  @Test("If two logs are needed and the first is missing, opening fails")
  func missingFirstLog() async throws {
    let victim = try await Victim()
    let path = try victim.copy()
    // According to the manifest of the early copy, no rows are in tables. Both logs are needed, and the first
    // one is missing.
    let names = try FileManager.default.contentsOfDirectory(atPath: victim.beginning)
    try FileManager.default.removeItem(atPath: path + "/" + Victim.record(victim.original))
    for name in names where !name.hasSuffix(".log") {
      try? FileManager.default.removeItem(atPath: path + "/" + name)
      try FileManager.default.copyItem(atPath: victim.beginning + "/" + name, toPath: path + "/" + name)
    }
    guard case .failed(let error) = try await victim.open(path) else {
      Issue.record("it opens without acknowledged rows")
      return
    }
    #expect(error.code == .corrupted && error.message.contains("lacks its oldest"), "\(error)")
    // With the first log and without the second, opening cannot detect a loss, and finds all rows of the first log.
    for name in names where name.hasSuffix(".log") {
      try FileManager.default.copyItem(atPath: victim.beginning + "/" + name, toPath: path + "/" + name)
    }
    try FileManager.default.removeItem(atPath: path + "/" + victim.log)
    guard case .rows(40) = try await victim.open(path) else {
      Issue.record("the rows of the log are not all there")
      return
    }
  }

  @Test("Damage inside the log is reported with its position, and the rows before it can be recovered")
  func rowsBeforeDamage() async throws {
    let victim = try await Victim()
    let log = try victim.log
    let path = try victim.copy()
    var bytes = try victim.bytes(log)
    bytes[bytes.count / 2] ^= 1
    try bytes.write(to: URL(fileURLWithPath: path + "/" + log))
    let error = try #require(try await victim.expectNoSilentLoss(path, "half of \(log)"))
    let place = try #require(error.message.firstMatch(of: /damaged at byte ([0-9]+)/).flatMap { Int($0.1) })
    #expect(place > 0 && place <= bytes.count / 2 && error.message.contains(log), "\(error)")
    try bytes.prefix(place).write(to: URL(fileURLWithPath: path + "/" + log))
    guard case .rows(let count) = try await victim.open(path) else {
      Issue.record("the log that was cut does not open")
      return
    }
    #expect(count > 0 && count < victim.keys.count)
  }

  @Test("After the older of two logs is truncated as the error says, the rows before the damage can be read")
  func rowsBeforeDamageOfTwoLogs() async throws {
    let victim = try await Victim(logs: 2)
    let logs = try Victim.logs(victim.original)
    let path = try victim.copy()
    var bytes = try victim.bytes(logs[0])
    bytes[bytes.count / 2] ^= 1
    try bytes.write(to: URL(fileURLWithPath: path + "/" + logs[0]))
    let error = try #require(try await victim.expectNoSilentLoss(path, "half of \(logs[0])"))
    let record = try Victim.record(path)
    #expect(error.message.contains(logs[0]) && error.message.contains(record), "\(error)")
    let offset = try #require(error.message.firstMatch(of: /damaged at byte ([0-9]+)/).flatMap { Int($0.1) })
    try bytes.prefix(offset).write(to: URL(fileURLWithPath: path + "/" + logs[0]))
    for file in logs.dropFirst() + [record] { try FileManager.default.removeItem(atPath: path + "/" + file) }
    for _ in 0..<2 {
      guard case .rows(let count) = try await victim.open(path) else {
        Issue.record("the truncated log does not open")
        return
      }
      #expect(count > 0 && count < victim.keys.count)
    }
  }

  @Test("A log that ends inside a record opens, and the dropped bytes are reported")
  func incompleteEnd() async throws {
    let victim = try await Victim()
    #expect(try await Victim.reports(openingAt: victim.copy()) == [])
    let log = try victim.log
    let bytes = try victim.bytes(log)
    let path = try victim.copy()
    try bytes.dropLast(1).write(to: URL(fileURLWithPath: path + "/" + log))
    let report = try #require(try await Victim.reports(openingAt: path).first)
    let place = try #require(report.firstMatch(of: /last ([0-9]+) bytes, from byte ([0-9]+)/))
    #expect(
      Int(place.1).map { $0 + (Int(place.2) ?? 0) } == bytes.count - 1 && report.contains(log), "\(report)")
    #expect(try await Victim.reports(openingAt: path) == [], "the second start has nothing to drop")
  }

  @Test("A damaged old log whose rows are in tables does not prevent opening")
  func damagedOldLog() async throws {
    let victim = try await Victim()
    let log = try victim.log
    let path = try victim.copy()
    guard case .rows(victim.keys.count) = try await victim.open(path) else {
      Issue.record("the store does not open")
      return
    }
    #expect(!FileManager.default.fileExists(atPath: path + "/" + log), "the log is still in use")
    for damaged in [0, 100, 5000] {
      var bytes = try victim.bytes(log)
      bytes[damaged] ^= 4
      try bytes.dropLast(damaged).write(to: URL(fileURLWithPath: path + "/" + log))
      guard case .rows(victim.keys.count) = try await victim.open(path) else {
        Issue.record("an old log, damaged at byte \(damaged), matters")
        return
      }
    }
  }
}

/// Tests of the newest-log record: an empty file whose name contains the number of the newest write-ahead log.
@Suite("File that records the newest log")
struct NewestLogTests {
  @Test(
    "If the newest log is missing, opening fails; after the file that names it is removed, the older rows can be read"
  )
  func missingNewestLog() async throws {
    let victim = try await Victim(logs: 2)
    let path = try victim.copy()
    let log = try #require(try Victim.logs(path).last)
    let record = try Victim.record(path)
    #expect(record == Victim.record(ofLog: log))
    try FileManager.default.removeItem(atPath: path + "/" + log)
    let error = try #require(try await victim.expectNoSilentLoss(path, "without \(log)"))
    #expect(error.code == .corrupted && error.message.contains(record), "\(error)")
    try FileManager.default.removeItem(atPath: path + "/" + record)
    guard case .rows(let count) = try await victim.open(path) else {
      Issue.record("without its record it does not open")
      return
    }
    #expect((1..<victim.keys.count).contains(count), "\(count) rows")
  }

  @Test(
    "Each acknowledged write is in the recorded log or an older log, also directly after RocksDB began a new log"
  )
  func recordAfterEachWrite() async throws {
    let scratch = try ScratchDirectory()
    let live = scratch.path + "/live"
    var switches = 0
    for start in 0..<2 {
      let store = try await EmbeddedStore.open(directory: live, Victim.options)
      let database = try await store.database(named: Victim.name, history: .activeReadersOnly)
      var newest = ""
      for number in 0..<300 {
        // Few or many rows follow the beginning of a new log.
        let count = [1, 1, 40, 3][number % 4]
        _ = try await database.execute(validating: nil) { state in
          for row in 0..<count {
            try state.set(Array("\(start) \(number) \(row)".utf8), Array(repeating: 7, count: 300))
          }
        }
        let log = try #require(try Victim.logs(live).last)
        #expect(try Victim.record(live) == Victim.record(ofLog: log), "write \(number) of start \(start)")
        guard log != newest else { continue }
        newest = log
        switches += 1
        // RocksDB writes no table before it has a third log, so the files do not change while they are copied.
        guard switches == 2 else { continue }
        let copy = scratch.path + "/copy"
        try FileManager.default.copyItem(atPath: live, toPath: copy)
        #expect(try Victim.logs(copy).count == 2)
        try FileManager.default.removeItem(atPath: copy + "/" + log)
        let error = await #expect(throws: StoreError.self) {
          try await EmbeddedStore.open(directory: copy, Victim.options).close()
        }
        #expect(error?.code == .corrupted && error?.message.contains("newest") == true, "\(error as Any)")
      }
      try await store.close()
    }
    #expect(switches > 10)
  }

  @Test(
    "A directory that records no log or an older log opens with all rows, and the next write records its own log"
  )
  func directoryOfAnotherVersion() async throws {
    let victim = try await Victim(logs: 2)
    let oldest = try #require(try Victim.logs(victim.original).first)
    for older in [nil, Victim.record(ofLog: oldest), "newest-log-000001", "newest-log-", "newest-log-x1"] {
      let path = try victim.copy()
      let record = path + "/" + (try Victim.record(path))
      if let older {
        try FileManager.default.moveItem(atPath: record, toPath: path + "/" + older)
      } else {
        try FileManager.default.removeItem(atPath: record)
      }
      guard case .rows(victim.keys.count) = try await victim.open(path) else {
        Issue.record("rows are missing with \(older ?? "no record")")
        continue
      }
      let store = try await EmbeddedStore.open(directory: path, Victim.options)
      let database = try await store.database(named: Victim.name, history: .activeReadersOnly)
      _ = try await database.execute(validating: nil) { try $0.set([1], [1]) }
      let log = try #require(try Victim.logs(path).last)
      #expect(
        FileManager.default.fileExists(atPath: path + "/" + Victim.record(ofLog: log)), "\(older ?? "")")
      try await store.close()
    }
  }

  @Test("If a directory records several logs, the one with the highest number must exist")
  func severalRecords() async throws {
    let victim = try await Victim(logs: 2)
    let path = try victim.copy()
    let log = try #require(try Victim.logs(path).last)
    for other in ["newest-log-000001", "newest-log-000002"] {
      #expect(FileManager.default.createFile(atPath: path + "/" + other, contents: nil))
    }
    try FileManager.default.removeItem(atPath: path + "/" + log)
    let error = try #require(try await victim.expectNoSilentLoss(path, "several records"))
    #expect(error.code == .corrupted && error.message.contains(Victim.record(ofLog: log)), "\(error)")
  }

  @Test(
    "A directory in which only the record of the newest log is left is rejected, and nothing is created in it"
  )
  func onlyTheRecord() async throws {
    let scratch = try ScratchDirectory()
    let directory = scratch.path + "/data"
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    try Data().write(to: URL(fileURLWithPath: directory + "/newest-log-000123"))
    let error = await #expect(throws: StoreError.self) {
      try await EmbeddedStore.open(directory: directory, Victim.options)
    }
    #expect(
      error?.code == .corrupted && error?.message.contains("newest-log-000123") == true,
      "\(String(describing: error))")
    #expect(try !FileManager.default.contentsOfDirectory(atPath: directory).contains("CURRENT"))
  }

  @Test("If the newest log cannot be recorded, the write fails, and so do all later writes")
  func failedRecord() async throws {
    let scratch = try ScratchDirectory()
    let store = try await EmbeddedStore.open(directory: scratch.path, Victim.options)
    let database = try await store.database(named: Victim.name, history: .activeReadersOnly)
    _ = try await database.execute(validating: nil) { try $0.set([0], [0]) }
    // The store renames the record when a new log begins, which fails if another program has removed the file.
    try FileManager.default.removeItem(atPath: scratch.path + "/" + Victim.record(scratch.path))
    var acknowledged = 0
    var failures: [StoreError] = []
    for number in UInt8(0)..<100 {
      do {
        _ = try await database.execute(validating: nil) {
          try $0.set([1, number], Array(repeating: 7, count: 3000))
        }
        acknowledged += 1
        #expect(failures.isEmpty, "write \(number) succeeded after a failure")
      } catch let error as StoreError {
        failures.append(error)
      }
    }
    #expect(acknowledged > 10 && failures.count > 10)
    #expect(failures.first?.message.contains("newest write-ahead log") == true, "\(failures.first as Any)")
    try? await store.close()
  }
}
