// The newest-log record durably names the newest write-ahead log that has acknowledged writes.
//
// RocksDB's manifest names the oldest log that a start must replay, but not the newest. If several logs are needed and the
// newest is missing, RocksDB replays the others and starts. LogDamage compares the logs with this record instead.
//
// The record is the name of an empty file, such as `newest-log-000123`. A rename replaces the record, so a power cut leaves
// the old or the new one, and no content can be damaged.
//
// RocksDB begins a new log only when it replaces the memtable, inside a write or in the background, and then increments the
// number of its super version. (Flushes and compactions increment it too.) As long as this number does not change, no log
// was created. After a change the directory is listed.
//
// Invariants
//   1. When a write is acknowledged, the durable record names the log of the write or a newer one.
//   2. The record names only logs whose names are durable. A power cut therefore never removes the recorded log.
//
// Decision: docs/decisions/0044-newest-log.md

internal import CRocksDB
import Locking

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Glibc
#endif
internal import OrderedStore

/// The record of the newest log of an open directory.
final class NewestLogRecord: Sendable {
  private struct State {
    /// The recorded log; nil without a record.
    var log: UInt64?
    /// The number of RocksDB's super version at the beginning of the last completed ``update(for:)``.
    var superVersion: UInt64?
    /// The first failure. A sync that follows a failed one may report success although the record is not durable, so a
    /// failure is final.
    var failure: StoreError?
  }

  private static let prefix = "newest-log-"
  private let directory: String
  private let descriptor: Int32
  private let state: Guarded<State>

  /// Opens the record of a directory, which need not exist yet.
  init(_ directory: String) throws {
    self.directory = directory
    descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw NewestLogRecord.failure("cannot open \(directory)") }
    state = Guarded(State())
    let log = NewestLogRecord.log(in: try InputFile.names(in: directory))
    state.withLock { $0.log = log }
  }

  deinit { close(descriptor) }

  /// Returns the newest log that the names of a directory's files record; nil without a record.
  static func log(in names: [String]) -> UInt64? {
    names.compactMap { name in
      guard name.hasPrefix(prefix), let log = UInt64(name.dropFirst(prefix.count)) else { return nil }
      return NewestLogRecord.name(ofLog: log) == name ? log : nil
    }.max()
  }

  /// Returns the name of the record of a log.
  static func name(ofLog log: UInt64) -> String {
    let digits = String(log)
    return prefix + String(repeating: "0", count: max(6 - digits.count, 0)) + digits
  }

  /// Records the newest log if it has changed. Called after each write and before its acknowledgement, by any thread.
  /// - Throws: ``StoreError`` with the system's reason; every later call throws it too.
  func update(for database: OpaquePointer) throws {
    // Concurrent writes wait until the record is durable, because it may be that of their log.
    let failure = state.withLock { state -> StoreError? in
      guard state.failure == nil else { return state.failure }
      var number: UInt64 = 0
      let isKnown = rocksdb_property_int(database, "rocksdb.current-super-version-number", &number) == 0
      guard !isKnown || number != state.superVersion else { return nil }
      state.failure = recordNewestLog(&state)
      state.superVersion = isKnown ? number : nil
      return state.failure
    }
    if let failure { throw failure }
  }

  private func recordNewestLog(_ state: inout State) -> StoreError? {
    do {
      let logs = try InputFile.names(in: directory, suffix: ".log").compactMap { UInt64($0.dropLast(4)) }
      guard let newest = logs.max(), newest > state.log ?? 0 else { return nil }
      try record(newest, insteadOf: state.log)
      state.log = newest
      return nil
    } catch {
      return error as? StoreError ?? StoreError.unavailable("\(error)")
    }
  }

  private func record(_ log: UInt64, insteadOf old: UInt64?) throws {
    let action = "cannot record the newest write-ahead log"
    // Another thread may have begun this log just now, and its name may not be durable yet.
    guard fsync(descriptor) == 0 else { throw NewestLogRecord.failure(action) }
    let path = directory + "/" + NewestLogRecord.name(ofLog: log)
    if let old {
      guard rename(directory + "/" + NewestLogRecord.name(ofLog: old), path) == 0 else {
        throw NewestLogRecord.failure(action)
      }
    } else {
      let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
      guard file >= 0 else { throw NewestLogRecord.failure(action) }
      defer { close(file) }
      guard fsync(file) == 0 else { throw NewestLogRecord.failure(action) }
    }
    guard fsync(descriptor) == 0 else { throw NewestLogRecord.failure(action) }
  }

  private static func failure(_ action: String, _ code: Int32 = errno) -> StoreError {
    StoreError.unavailable("\(action): \(String(cString: strerror(code)))")
  }
}
