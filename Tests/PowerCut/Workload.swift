// The workload of a child process: several concurrent tasks write transactions through EmbeddedStore. The
// child appends each acknowledgement to a file outside the data directory, which simulated power cuts do not
// affect.
//
// Transaction t writes rows that can be verified (Transaction.swift), increments the counter, and logs t.

import EmbeddedStore
import Glibc
import OrderedStore

/// The command-line arguments of a child process:
/// `DIRECTORY ACKNOWLEDGEMENTS FIRST COUNT WORKERS sync|nosync HOURS-BEHIND`.
struct ChildArguments {
  let directory: String
  /// The path of the file of acknowledgements.
  let acknowledgements: String
  let first: Int
  let count: Int
  let workers: Int
  let syncs: Bool
  /// The time by which the child's clock is behind, in hours.
  let hoursBehind: UInt64

  init(_ arguments: [String]) throws {
    guard arguments.count == 7, let first = Int(arguments[2]), let count = Int(arguments[3]),
      let workers = Int(arguments[4]), let hoursBehind = UInt64(arguments[6])
    else { throw CrashError("the child has invalid arguments") }
    directory = arguments[0]
    acknowledgements = arguments[1]
    self.first = first
    self.count = count
    self.workers = workers
    syncs = arguments[5] == "sync"
    self.hoursBehind = hoursBehind
  }
}

/// The work of one child, see ``ChildArguments``.
struct Workload {
  private let arguments: ChildArguments
  private let acknowledgements: ChildLogWriter

  static let databaseName = "firestore/projects/crash/databases/(default)"
  static let history = HistoryWindow.seconds(86_400)
  /// The number of consecutive failures after which a worker stops.
  private static let maximumFailures = 5

  init(arguments: [String]) throws {
    self.arguments = try ChildArguments(arguments)
    acknowledgements = try ChildLogWriter(self.arguments.acknowledgements)
  }

  static func clock(hoursBehind: UInt64) -> StoreClock {
    StoreClock { StoreClock.system.now() - hoursBehind * 3_600_000_000 }
  }

  static func options(syncs: Bool, hoursBehind: UInt64 = 0) -> EmbeddedOptions {
    let clock = Self.clock(hoursBehind: hoursBehind)
    // The memtable (RocksDB's table in memory) is so small that one child writes several tables to disk and merges them.
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
        directory: arguments.directory,
        Workload.options(syncs: arguments.syncs, hoursBehind: arguments.hoursBehind))
      database = try await store.database(named: Workload.databaseName, history: Workload.history)
    } catch let error as StoreError {
      acknowledgements.append("refused open \(error)")
      return
    }
    acknowledgements.append("opened \(arguments.directory)")
    await withTaskGroup(of: Void.self) { group in
      for worker in 0..<arguments.workers {
        group.addTask {
          var failedCount = 0
          for number in stride(
            from: arguments.first + worker, to: arguments.first + arguments.count, by: arguments.workers)
          {
            failedCount = await write(Transaction(number: number), to: database) ? 0 : failedCount + 1
            if failedCount == Workload.maximumFailures { return }
          }
        }
      }
    }
    await checkReads(database)
  }

  /// Writes a transaction and records its outcome.
  /// - Returns: whether it was acknowledged.
  private func write(_ transaction: Transaction, to database: any OrderedDatabase) async -> Bool {
    let faultBefore = Shim.fault
    do {
      let committed = try await database.execute(validating: nil) { try transaction.apply(to: $0) }
      acknowledgements.append("acknowledged \(transaction.number) \(committed.version)")
      if faultBefore == .log {
        acknowledgements.append("wrong \(transaction.number) was acknowledged after a fault of the log")
      }
      if transaction.number % 10 == 0 {
        let reserved = try await database.reserveVersion()
        acknowledgements.append("reserved \(reserved)")
      }
      return true
    } catch let error as StoreError where error.code == .unavailable {
      acknowledgements.append("refused \(transaction.number) \(error.message)")
    } catch {
      acknowledgements.append("wrong \(transaction.number) threw \(error)")
    }
    return false
  }

  /// Checks that reads succeed after a failure, and that the counter and the rows of a transaction agree.
  private func checkReads(_ database: any OrderedDatabase) async {
    do {
      let (count, seen) = try await database.read(at: nil) { view in
        (try Transaction.count(view), try Transaction.numbers(view).count)
      }
      acknowledgements.append(
        count == seen ? "read \(count)" : "wrong read: \(seen) transactions, counter \(count)")
    } catch {
      acknowledgements.append("wrong read threw \(error)")
    }
  }
}

/// The simulated disk of this process, which is the shim (shim.c). `fault` is the kind of the last injected fault; `none` if
/// the process runs without the shim.
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

/// The acknowledgements of the child: one line each, appended atomically.
final class ChildLogWriter: Sendable {
  private let descriptor: Int32

  init(_ path: String) throws {
    descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw CrashError("cannot open \(path)") }
  }

  deinit { close(descriptor) }

  func append(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    _ = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
  }
}
