// The log damage check detects damaged logs whose replay would lose acknowledged writes. It runs before RocksDB opens
// the directory.
//
// RocksDB replays its write-ahead log up to the first damaged record and drops the rest. This is correct
// after a power cut: the record being written is incomplete, and it was never acknowledged. But after a
// flipped bit in the middle of the log, RocksDB silently loses the acknowledged writes that follow.
//
// The store syncs each write before the next one begins. A complete record after a damaged record therefore
// proves that the damaged record had been synced and acknowledged. A damaged last record cannot be
// distinguished from a power cut.
//
// An old log that was damaged by an earlier power cut may remain although all its rows are in tables. The
// check therefore also opens the directory read-only with RocksDB. It reports damage only if this replay ends
// before the last complete record.
//
// With several logs, the manifest shows that the oldest is missing, the sequence numbers show a gap between two, and
// NewestLogRecord shows that the newest is missing.

internal import CRocksDB
internal import OrderedStore

/// The incomplete last record of a write-ahead log. RocksDB drops it when it replays the log.
struct IncompleteLogEnd: Equatable {
  /// The path of the log.
  var file: String
  /// The offset at which the record begins, in bytes.
  var offset: Int
  /// The number of bytes from the offset to the end of the file.
  var bytes: Int

  /// The report for the operator.
  var description: String {
    "the write-ahead log \(file) ends in an incomplete record: its last \(bytes) bytes, from byte \(offset), are dropped. "
      + "A power cut or a kill during a write leaves such an end, and that write was not acknowledged. If neither "
      + "happened, the disk or a copy lost the end of the file: compare with a backup"
  }
}

/// Checks the logs of a directory for damage.
struct LogDamage {
  private let directory: String
  private let names: [String]

  init(_ directory: String) throws {
    self.directory = directory
    names = try InputFile.names(in: directory)
  }

  /// Checks the manifest and the write-ahead logs.
  /// - Returns: the incomplete end of the last log; nil if every log ends with a complete record.
  /// - Throws: ``StoreError`` of code `corrupted` with the position, if acknowledged writes cannot be replayed.
  func check(_ options: OpaquePointer) throws -> IncompleteLogEnd? {
    guard let manifest = try currentManifest() else {
      try checkIsNew()
      return nil
    }
    return try checkWriteAheadLogs(options, manifest, try checkManifest(manifest))
  }

  /// The manifest that `CURRENT` names; nil without a file `CURRENT`. RocksDB validates other contents of the file.
  private func currentManifest() throws -> String? {
    guard names.contains("CURRENT") else { return nil }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64, alignment: 8)
    defer { buffer.deallocate() }
    let count = try InputFile(directory + "/CURRENT").read(into: buffer, at: 0)
    return String(decoding: buffer.prefix(count).prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
  }

  /// Checks that a directory without `CURRENT` has no data, because RocksDB would overwrite it.
  private func checkIsNew() throws {
    // After a power cut during the creation of the directory, only the first manifest may exist.
    let remaining = names.first { name in
      logNumber(name) != nil || name.hasSuffix(".sst") || NewestLogRecord.log(in: [name]) != nil
        || name.hasPrefix("MANIFEST-") && name != LogDamage.firstManifest
    }
    guard let remaining else { return }
    throw StoreError(
      .corrupted,
      "\(directory) holds \(remaining), but no file CURRENT that names the store's state; "
        + "restore the directory from a backup")
  }

  /// Checks the manifest.
  /// - Returns: the scan of the manifest.
  private func checkManifest(_ manifest: String) throws -> LogScan {
    guard names.contains(manifest) else {
      throw StoreError(
        .corrupted,
        "\(directory)/\(manifest), which CURRENT names, is missing; restore the directory from a backup")
    }
    let scan = try LogScan(directory + "/" + manifest, isManifest: true)
    // RocksDB itself detects all other damage of a manifest. It misses one case: a fragment claims more bytes than the
    // file has, although complete records follow. RocksDB takes such a fragment for an unfinished write.
    guard let offset = scan.damage, scan.damageOverruns, scan.newestAfterDamage != nil else {
      return scan
    }
    throw StoreError(
      .corrupted, "\(directory)/\(manifest) is damaged at byte \(offset); restore the directory from a backup"
    )
  }

  private func checkWriteAheadLogs(
    _ options: OpaquePointer, _ manifest: String, _ state: LogScan
  ) throws -> IncompleteLogEnd? {
    let logs = names.compactMap { name in logNumber(name).map { (name, $0) } }.sorted { $0.1 < $1.1 }
    // Logs with a number below `oldestLog` are ignored. Such a log may remain after its rows were written to tables.
    guard logs.contains(where: { $0.1 >= state.oldestLog }) || manifest == LogDamage.firstManifest else {
      throw StoreError(
        .corrupted,
        "\(directory) lacks its write-ahead log (a file such as 000004.log, of a number not below \(state.oldestLog)); "
          + "restore the directory from a backup")
    }
    try checkNewestLog(logs.last?.1, state.oldestLog)
    try checkOldestLog(logs.first { $0.1 >= state.oldestLog }?.1, manifest, state.oldestLog)
    var damage: (file: String, number: UInt64, offset: Int)?
    var unreached: UInt64?
    var end: IncompleteLogEnd?
    var isFirst = true
    // Successive logs have successive changes, because only the newest log may end in a write that was not acknowledged.
    var following: UInt64?
    var hasGap = false
    for (name, number) in logs {
      let scan = try LogScan(directory + "/" + name)
      if isFirst, number >= state.oldestLog, damage == nil, scan.damage == nil, let first = scan.first {
        try checkNoLogIsMissing(state, first, name)
        isFirst = false
      }
      if number >= state.oldestLog {
        if scan.following != nil, let first = scan.first, let following, first > following {
          // A damaged log that is not needed does not explain the gap.
          guard let damage, damage.number >= state.oldestLog else { throw gap(following, first, name) }
          hasGap = true
        }
        following = scan.following ?? following
      }
      end = scan.damage.map {
        IncompleteLogEnd(file: directory + "/" + name, offset: $0, bytes: scan.size - $0)
      }
      let afterDamage = damage == nil ? scan.newestAfterDamage : scan.newest
      unreached = [unreached, afterDamage].compactMap { $0 }.max()
      if damage == nil, let offset = scan.damage { damage = (name, number, offset) }
    }
    guard let damage, let unreached, try hasGap || replayed(options) < unreached else { return end }
    throw StoreError(
      .corrupted,
      "the write-ahead log \(directory)/\(damage.file) is damaged at byte \(damage.offset), and "
        + "acknowledged writes follow; restore the directory from a backup, or, to continue without them, truncate "
        + "the file there and remove the .log files of higher numbers"
        + (NewestLogRecord.log(in: names).map { " and the file \(NewestLogRecord.name(ofLog: $0))" } ?? ""))
  }

  /// The error for a log that does not begin with the change after the last one of the log before it.
  private func gap(_ following: UInt64, _ first: UInt64, _ log: String) -> StoreError {
    StoreError(
      .corrupted,
      "\(directory) lacks acknowledged writes: \(log) begins with change \(first), the log before it ends with "
        + "\(following &- 1); restore the directory from a backup")
  }

  /// Checks that the oldest needed log exists. A start creates its first log directly before its manifest, and
  /// the log number of that manifest may be lower. Every later log number in the manifest is that of a log.
  private func checkOldestLog(_ first: UInt64?, _ manifest: String, _ oldest: UInt64) throws {
    guard manifest != LogDamage.firstManifest, let first,
      let number = UInt64(manifest.dropFirst("MANIFEST-".count)),
      first != oldest, first > number
    else { return }
    throw StoreError(
      .corrupted,
      "\(directory) lacks its oldest write-ahead log: the manifest needs one of number "
        + (oldest > number ? "\(oldest)" : "\(oldest) to \(number)")
        + ", the first is \(first); restore the directory from a backup")
  }

  /// Checks that the recorded newest log exists, or that its rows are in tables.
  private func checkNewestLog(_ newest: UInt64?, _ oldest: UInt64) throws {
    guard let recorded = NewestLogRecord.log(in: names), recorded >= oldest, recorded > newest ?? 0 else {
      return
    }
    let record = NewestLogRecord.name(ofLog: recorded)
    throw StoreError(
      .corrupted,
      "\(directory) lacks its newest write-ahead log: according to the file \(record), log \(recorded) has acknowledged "
        + "writes, but \(newest.map { "the newest log is \($0)" } ?? "there is no log"); restore the directory from a "
        + "backup, or, to continue without these writes, remove \(record)")
  }

  /// Checks that no log is missing before the first needed log. The first sequence number of `log` must directly follow
  /// the manifest's last one, or be lower.
  private func checkNoLogIsMissing(_ state: LogScan, _ first: UInt64, _ log: String) throws {
    guard first > state.lastSequence + 1 else { return }
    throw StoreError(
      .corrupted,
      "\(directory) lacks a write-ahead log: \(log) begins with change \(first), the tables end with "
        + "\(state.lastSequence); restore the directory from a backup")
  }

  /// Returns the last sequence number that RocksDB reaches when it replays the logs. Opens the directory
  /// read-only.
  private func replayed(_ options: OpaquePointer) throws -> UInt64 {
    var database: OpaquePointer?
    try RocksError.check("reading \(directory)") { error in
      database = rocksdb_open_for_read_only(options, directory, 0, error)
    }
    guard let database else { throw StoreError.unavailable("RocksDB did not read \(directory)") }
    defer { rocksdb_close(database) }
    return rocksdb_get_latest_sequence_number(database)
  }

  private static let firstManifest = "MANIFEST-000001"

  /// The number of a write-ahead log's name; nil for other names.
  private func logNumber(_ name: String) -> UInt64? {
    name.hasSuffix(".log") ? UInt64(name.dropLast(4)) : nil
  }
}
