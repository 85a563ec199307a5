// The child: writes transactions through EmbeddedStore from several tasks at once, and notes each acknowledgement in
// a file outside the data directory, which no power cut reaches.
//
// A transaction t writes rows that only whole and right make sense (Transaction.swift), counts itself, and logs t.

import EmbeddedStore
import Glibc
import OrderedStore

/// One child's work: `DIRECTORY ACKNOWLEDGEMENTS FIRST COUNT WORKERS sync|nosync HOURS-BEHIND`.
struct Workload {
  private let directory: String
  private let acknowledgements: Acknowledgements
  private let first: Int
  private let count: Int
  private let workers: Int
  private let syncs: Bool
  /// How far the child's clock is set back.
  private let hoursBehind: UInt64

  static let databaseName = "firestore/projects/crash/databases/(default)"
  static let history = HistoryWindow.seconds(86_400)
  /// After so many refusals in a row a worker has seen enough.
  private static let refusals = 5

  init(arguments: [String]) throws {
    guard arguments.count == 7, let first = Int(arguments[2]), let count = Int(arguments[3]),
      let workers = Int(arguments[4]), let hoursBehind = UInt64(arguments[6])
    else { throw CrashError("the child got wrong arguments") }
    directory = arguments[0]
    acknowledgements = try Acknowledgements(arguments[1])
    self.first = first
    self.count = count
    self.workers = workers
    syncs = arguments[5] == "sync"
    self.hoursBehind = hoursBehind
  }

  static func options(syncs: Bool, hoursBehind: UInt64 = 0) -> EmbeddedOptions {
    let clock = StoreClock { StoreClock.system.now() - hoursBehind * 3_600_000_000 }
    // So small a memtable that tables are written and merged within one child's life.
    var options = EmbeddedOptions(
      store: StoreOptions(clock: clock, trimmingIntervalMilliseconds: 0), blockCacheBytes: 4 << 20,
      memtableBytes: 64 << 10)
    options.syncsCommits = syncs
    return options
  }

  func run() async throws {
    let database: any OrderedDatabase
    do {
      let store = try await EmbeddedStore.open(
        directory: directory, Workload.options(syncs: syncs, hoursBehind: hoursBehind))
      database = try await store.database(named: Workload.databaseName, history: Workload.history)
    } catch let error as StoreError {
      acknowledgements.note("refused open \(error)")
      return
    }
    acknowledgements.note("opened \(directory)")
    await withTaskGroup(of: Void.self) { group in
      for worker in 0..<workers {
        group.addTask {
          var refused = 0
          for number in stride(from: first + worker, to: first + count, by: workers) {
            refused = await write(Transaction(number: number), to: database) ? 0 : refused + 1
            if refused == Workload.refusals { return }
          }
        }
      }
    }
    await checkReads(database)
  }

  /// Writes a transaction and notes what came of it; returns whether it was acknowledged.
  private func write(_ transaction: Transaction, to database: any OrderedDatabase) async -> Bool {
    let faultBefore = Shim.fault
    do {
      let committed = try await database.execute(validating: nil) { try transaction.apply(to: $0) }
      acknowledgements.note("acknowledged \(transaction.number) \(committed.version)")
      if faultBefore == .log {
        acknowledgements.note("wrong \(transaction.number) was acknowledged after the log's fault")
      }
      if transaction.number % 10 == 0 {
        let reserved = try await database.reserveVersion()
        acknowledgements.note("reserved \(reserved)")
      }
      return true
    } catch let error as StoreError where error.code == .unavailable {
      acknowledgements.note("refused \(transaction.number) \(error.message)")
    } catch {
      acknowledgements.note("wrong \(transaction.number) threw \(error)")
    }
    return false
  }

  /// Reads go on after whatever failed: the counter and the rows of one transaction agree.
  private func checkReads(_ database: any OrderedDatabase) async {
    do {
      let (count, seen) = try await database.read(at: nil) { view in
        (try Transaction.count(view), try Transaction.numbers(view).count)
      }
      acknowledgements.note(
        count == seen ? "read \(count)" : "wrong read: \(seen) transactions, counter \(count)")
    } catch {
      acknowledgements.note("wrong read threw \(error)")
    }
  }
}

/// What the shim says of the faults it made; nothing without a shim.
enum Shim {
  enum Fault: Int32 {
    case none = 0
    case log = 1
    case table = 2
  }

  static var fault: Fault {
    typealias Function = @convention(c) () -> Int32
    guard let symbol = dlsym(nil, "powercut_fault") else { return .none }
    return Fault(rawValue: unsafeBitCast(symbol, to: Function.self)()) ?? .none
  }
}

/// The child's notes: one line each, appended whole.
final class Acknowledgements: Sendable {
  private let descriptor: Int32

  init(_ path: String) throws {
    descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw CrashError("cannot open \(path)") }
  }

  deinit { close(descriptor) }

  func note(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    _ = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
  }
}
