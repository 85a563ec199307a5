// Tells damage of the logs from what a power cut leaves, before RocksDB opens them.
//
// RocksDB replays its write-ahead log up to the first record that is not whole and drops the rest: right after a power
// cut, where nothing behind that record has been acknowledged, and a silent loss where a bit has flipped in the midst.
// The store syncs every write before the next one begins. So a whole record behind a damaged one shows that the
// damaged one had been synced, and acknowledged. (A damaged last record looks as a power cut does.)
//
// A log whose rows are in tables long since may linger, torn from an earlier cut. Therefore what lies behind a damage
// counts only if RocksDB, opening the directory to read only, does not reach it.

internal import CRocksDB
internal import OrderedStore

/// The check that a directory's logs pass before they are opened.
struct LogDamage {
  private let directory: String
  private let names: [String]

  init(_ directory: String) throws {
    self.directory = directory
    names = try InputFile.names(in: directory)
  }

  /// - Throws: ``StoreError`` of code `corrupted`, saying where, if acknowledged writes could not be replayed.
  func check(_ options: OpaquePointer) throws {
    guard let manifest = try currentManifest() else { return try checkNothingIsLeft() }
    try checkWriteAheadLogs(options, manifest, try checkManifest(manifest))
  }

  /// The name of the manifest that `CURRENT` names; nil if there is no such file. RocksDB judges other contents.
  private func currentManifest() throws -> String? {
    guard names.contains("CURRENT") else { return nil }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64, alignment: 8)
    defer { buffer.deallocate() }
    let count = try InputFile(directory + "/CURRENT").read(into: buffer, at: 0)
    return String(decoding: buffer.prefix(count).prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
  }

  /// Without `CURRENT` RocksDB would begin anew, over whatever lies there.
  private func checkNothingIsLeft() throws {
    // A cut while the directory was made leaves the first manifest at most.
    let left = names.first { name in
      logNumber(name) != nil || name.hasSuffix(".sst")
        || name.hasPrefix("MANIFEST-") && name != LogDamage.firstManifest
    }
    guard let left else { return }
    throw StoreError(
      .corrupted,
      "\(directory) holds \(left), but no file CURRENT that names the store's state; "
        + "restore the directory from a backup")
  }

  /// - Returns: what the manifest says.
  private func checkManifest(_ manifest: String) throws -> LogScan {
    guard names.contains(manifest) else {
      throw StoreError(
        .corrupted,
        "\(directory)/\(manifest), which CURRENT names, is missing; restore the directory from a backup")
    }
    let scan = try LogScan(directory + "/" + manifest, isManifest: true)
    // RocksDB finds every damage of a manifest but this one, which looks like the end of an unfinished write.
    guard let place = scan.damage, scan.damageOverruns, scan.newestBehindDamage != nil else {
      return scan
    }
    throw StoreError(
      .corrupted, "\(directory)/\(manifest) is damaged at byte \(place); restore the directory from a backup")
  }

  private func checkWriteAheadLogs(_ options: OpaquePointer, _ manifest: String, _ state: LogScan) throws {
    let logs = names.compactMap { name in logNumber(name).map { (name, $0) } }.sorted { $0.1 < $1.1 }
    // One of a lower number may linger: its rows are in tables, and it says nothing of later ones.
    guard logs.contains(where: { $0.1 >= state.oldestLog }) || manifest == LogDamage.firstManifest else {
      throw StoreError(
        .corrupted,
        "\(directory) lacks its write-ahead log (a file such as 000004.log, of a number not below \(state.oldestLog)); "
          + "restore the directory from a backup")
    }
    var damage: (file: String, place: Int)?
    var unreached: UInt64?
    var isFirst = true
    for (name, number) in logs {
      let scan = try LogScan(directory + "/" + name)
      if isFirst, number >= state.oldestLog, damage == nil, scan.damage == nil, let first = scan.first {
        try checkNothingIsBetween(state, first, name)
        isFirst = false
      }
      let behind = damage == nil ? scan.newestBehindDamage : scan.newest
      unreached = [unreached, behind].compactMap { $0 }.max()
      if damage == nil, let place = scan.damage { damage = (name, place) }
    }
    guard let damage, let unreached, try replayed(options) < unreached else { return }
    throw StoreError(
      .corrupted,
      "the write-ahead log \(directory)/\(damage.file) is damaged at byte \(damage.place), and "
        + "acknowledged writes lie behind; restore the directory from a backup, or, to go on without them, cut "
        + "the file there and remove the .log files of higher numbers")
  }

  /// The first log that is needed begins where the manifest ends, or before: with later numbers, one is missing between.
  private func checkNothingIsBetween(_ state: LogScan, _ first: UInt64, _ log: String) throws {
    guard first > state.lastSequence + 1 else { return }
    throw StoreError(
      .corrupted,
      "\(directory) lacks a write-ahead log: \(log) begins with change \(first), the tables end with "
        + "\(state.lastSequence); restore the directory from a backup")
  }

  /// The sequence number that a replay reaches; nothing is written.
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
