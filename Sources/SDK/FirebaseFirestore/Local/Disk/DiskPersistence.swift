// The persistence on disk: one SQLite file with one connection.
//
// A group of changes is one transaction in a write-ahead log. A committed group survives the end of the
// program. After a power cut the file has the state after some earlier group. A group that queued a write is
// synced in the background. After a failed sync the cache is copied to a new file (CacheReplacement.swift).
//
// Invariants: after the first failure in a group nothing is read or written until the group is rolled back.
// Between groups the state in memory is that of the last committed group.

import FirestoreModel
import Foundation
import GRDB
import GRDBSQLite
import SwiftProtobuf

// SAFETY: the sync engine uses the persistence only on its queue.
/// Stores everything in a database file.
final class DiskPersistence: Persistence, @unchecked Sendable {
  /// The state in memory that a rollback restores.
  struct State {
    var user: UserID = nil
    var lastRemoteVersion: ModelTimestamp = .epoch
    var indexes: [FieldIndex: Int64] = [:]
    /// The numbers of the collections that were used so far.
    var collections: [ResourcePath: Int64] = [:]
    var paths: [Int64: ResourcePath] = [:]
    /// The end of the reserved sequence numbers. A run before a restart may have used any number below it.
    var reservedSequence = 0
  }

  let database: DatabaseName
  let folder: CacheFolder
  private let observer: CacheObserver
  private let sync: LogSync.Sync
  private var queue: DatabaseQueue?
  /// Syncs the open file's log. Each file has a new object.
  private var log: LogSync
  /// Whether the failed sync of `log` was reported to the observer.
  private var isFailedSyncReported = false
  private var isClosed = false
  /// Whether the current group queues a write, which must survive a power cut.
  var queuesWrite = false
  private var failure: (any Error)?
  private var operation: StoreOperation?
  var state = State()
  private var committedState = State()
  // These numbers are never used twice, not even after a rollback.
  var nextBatch: BatchID = 1
  var lastTarget: TargetID = 0
  var sequence = 0

  /// Opens the cache of a folder. A damaged file is renamed, and an empty file replaces it.
  ///
  /// - Parameters:
  ///   - observer: receives the failures of the file.
  ///   - sync: writes a file's data to the disk.
  /// - Throws: the error of the file system or of SQLite if no cache can be opened.
  init(
    _ folder: CacheFolder, database: DatabaseName, observer: CacheObserver = CacheObserver(),
    sync: @escaping LogSync.Sync = LogSync.sync
  ) throws {
    self.folder = folder
    self.database = database
    self.observer = observer
    self.sync = sync
    log = LogSync(of: folder.file, sync: sync, failed: observer.syncFailed)
    do {
      try open()
    } catch let error where DiskPersistence.isDamage(error) {
      try moveDamaged(error)
      try open()
    }
  }

  // MARK: Opening

  private func open() throws {
    try CacheReplacement(file: folder.file, sync: sync).finish()
    if !FileManager.default.fileExists(atPath: folder.file.path) {
      // SQLite gives the log the permissions of the file.
      guard
        FileManager.default.createFile(
          atPath: folder.file.path, contents: nil, attributes: [.posixPermissions: 0o600])
      else { throw CacheFolderError.unusable(folder.url, "the file cannot be created") }
    }
    var configuration = GRDB.Configuration()
    configuration.allowsUnsafeTransactions = true
    configuration.label = "firestore.cache"
    configuration.prepareDatabase { db in
      try db.execute(sql: "PRAGMA locking_mode = EXCLUSIVE")
      // This takes effect only in an empty file.
      try db.execute(sql: "PRAGMA auto_vacuum = INCREMENTAL")
      _ = try String.fetchOne(db, sql: "PRAGMA journal_mode = WAL")
      try db.execute(sql: "PRAGMA synchronous = NORMAL")
    }
    log = LogSync(of: folder.file, sync: sync, failed: observer.syncFailed)
    isFailedSyncReported = false
    let hasOldLog = DiskPersistence.hasContents(folder.file.path + "-wal")
    let queue = try DatabaseQueue(path: folder.file.path, configuration: configuration)
    try queue.unsafeReentrantWrite { db in
      try DiskSchema.migrate(db)
      try load(db)
      if hasOldLog { try applyOldLog(db) }
      reportFailedCheckpoints(of: db)
    }
    self.queue = queue
    committedState = state
  }

  private static func hasContents(_ path: String) -> Bool {
    let attributes = try? FileManager.default.attributesOfItem(atPath: path)
    return (attributes?[.size] as? Int ?? 0) > 0
  }

  /// Copies the log of a killed process to the file, and empties the log. A sync of that log may have failed.
  /// Then a later sync may succeed although some of the log's data is not on the disk.
  private func applyOldLog(_ db: Database) throws {
    let code = DiskPersistence.checkpoint(db.sqliteConnection, nil, log, mode: SQLITE_CHECKPOINT_TRUNCATE)
    guard code != SQLITE_OK else { return }
    let error = DatabaseError(resultCode: ResultCode(rawValue: code))
    if DiskPersistence.isDamage(error) { throw error }
    log.fail("the log of the last start: \(error)")
  }

  /// The number of pages in the log above which a commit starts a checkpoint. It is SQLite's default.
  private static let pagesBetweenCheckpoints = 1_000

  /// Replaces SQLite's automatic checkpoint, because SQLite ignores a failed sync in it. The next sync may
  /// then succeed although data is lost. This checkpoint records the failure.
  private func reportFailedCheckpoints(of db: Database) {
    // SAFETY: `log` outlives the hook. `closeFile` removes the hook, and `open` replaces `log` only after
    // that.
    sqlite3_wal_hook(
      db.sqliteConnection,
      { log, connection, name, pages in
        guard pages >= DiskPersistence.pagesBetweenCheckpoints, let log else { return SQLITE_OK }
        DiskPersistence.checkpoint(connection, name, Unmanaged<LogSync>.fromOpaque(log).takeUnretainedValue())
        return SQLITE_OK
      }, Unmanaged.passUnretained(log).toOpaque())
  }

  /// Copies the log to the file, and records a failed sync. Returns SQLite's result code.
  @discardableResult
  private static func checkpoint(
    _ connection: OpaquePointer?, _ name: UnsafePointer<CChar>?, _ log: LogSync,
    mode: CInt = SQLITE_CHECKPOINT_PASSIVE
  ) -> CInt {
    let code = sqlite3_wal_checkpoint_v2(connection, name, mode, nil, nil)
    if ResultCode(rawValue: code) == .SQLITE_IOERR_FSYNC { log.fail("a checkpoint: error \(code)") }
    return code
  }

  private func load(_ db: Database) throws {
    let user = state.user
    state = State()
    state.user = user
    if let time = try Data.fetchOne(db, sql: "SELECT value FROM counters WHERE name = 'remote_version'") {
      state.lastRemoteVersion = try ModelTimestamp(column: time)
    }
    for row in try Row.fetchAll(db, sql: "SELECT number, definition FROM field_indexes") {
      state.indexes[try FieldIndex(column: row.at(1))] = try row.at(0)
    }
    let reserved = try number(
      "SELECT value FROM counters WHERE name = 'sequence'", upTo: DiskPersistence.maximumSequence, in: db)
    sequence = max(sequence, reserved)
    state.reservedSequence = reserved
    _ = try number("SELECT MIN(number) FROM batches", upTo: DiskPersistence.maximumBatch, in: db)
    let batch = try number("SELECT MAX(number) FROM batches", upTo: DiskPersistence.maximumBatch, in: db)
    nextBatch = max(nextBatch, batch + 1)
    _ = try number("SELECT MIN(number) FROM targets", upTo: DiskPersistence.maximumTarget, in: db)
    let target = try number("SELECT MAX(number) FROM targets", upTo: DiskPersistence.maximumTarget, in: db)
    lastTarget = max(lastTarget, TargetID(target))
  }

  // No client reaches these numbers. A larger number in a file is damage, and counting on from it would
  // overflow.
  private static let maximumSequence = 1 << 62
  private static let maximumBatch = 1 << 62
  private static let maximumTarget = Int(TargetID.max) / 2

  /// Reads a number that must be between zero and a maximum. Returns zero if the query has no result.
  ///
  /// - Throws: `DamagedRow` or `RowDecodingError` for another value.
  private func number(_ sql: String, upTo maximum: Int, in db: Database) throws -> Int {
    guard let row = try Row.fetchOne(db, sql: sql), let number = try row.decode(Int?.self, atIndex: 0) else {
      return 0
    }
    guard (0...maximum).contains(number) else { throw DamagedRow(description: "a number is out of range") }
    return number
  }

  /// Renames the damaged file. Its contents are lost, even if no empty file can be opened afterwards.
  private func moveDamaged(_ error: any Error) throws {
    closeFile()
    let url = try folder.quarantine()
    let user = state.user
    state = State()
    state.user = user
    committedState = state
    observer.failed(.damaged(reason: "\(error)", url: url))
  }

  // MARK: Failed syncs

  func repair() throws(PersistenceFailure) {
    guard !isClosed, queue == nil || log.failure != nil else { return }
    if let failure = log.failure, !isFailedSyncReported { observer.failed(.unsynced(failure)) }
    isFailedSyncReported = true
    do {
      if let queue {
        try CacheReplacement(file: folder.file, sync: sync).write(from: queue)
        // The copy is valid from here on, so the old file must not change any more.
        closeFile()
      }
      try open()
    } catch {
      operation = .repair
      self.failure = error
      try fail()
    }
  }

  static func isDamage(_ error: any Error) -> Bool {
    switch error {
    case let error as DatabaseError:
      // SQLite limits a value to 1 GB. The cache stores no such value, so a larger length is damage.
      [.SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_FORMAT, .SQLITE_TOOBIG].contains(error.resultCode)
        // The statement does not match the tables, so the file's contents do not match its version.
        || error.resultCode == .SQLITE_ERROR
    case is DamagedRow, is RowDecodingError, is DiskSchema.UnknownVersion, is FirestoreError,
      is BinaryDecodingError,
      is DecodingError:
      true
    default: false
    }
  }

  func close() {
    // SQLite's checkpoint at the end would ignore a failed sync. So this checkpoint precedes it.
    _ = queue?.unsafeReentrantWrite { [log] in DiskPersistence.checkpoint($0.sqliteConnection, nil, log) }
    log.finish()
    // Tries once more to repair the cache.
    do throws(PersistenceFailure) { try repair() } catch { FirestoreLog.error("I-FST000010", error.reason) }
    isClosed = true
    closeFile()
    folder.release()
  }

  /// Waits until the requested syncs have ended, for tests.
  func waitForSyncs() { log.finish() }

  private func closeFile() {
    queue?.unsafeReentrantWrite { _ = sqlite3_wal_hook($0.sqliteConnection, nil, nil) }
    try? queue?.close()
    queue = nil
  }

  // MARK: Groups

  func begin(_ operation: StoreOperation) throws(PersistenceFailure) {
    self.operation = operation
    failure = nil
    queuesWrite = false
    sequence += 1
    // No file could be opened after damage or after a failed sync.
    if queue == nil, !isClosed { do { try open() } catch { failure = error } }
    use { try $0.execute(sql: "BEGIN") }
    if failure != nil { try fail() }
  }

  /// The number that rows of this group store as their last use. It is stored at the first use in the group.
  /// A group that does not use it writes nothing, because the first write to the log after a start waits for
  /// the disk.
  func sequenceOfGroup() -> Int {
    use { db in
      guard sequence >= state.reservedSequence else { return }
      state.reservedSequence = sequence + 1_000
      try db.cachedStatement(sql: "INSERT OR REPLACE INTO counters VALUES ('sequence', ?)").execute(
        arguments: [state.reservedSequence])
    }
    return sequence
  }

  func commit(isPinned: (DocumentName) -> Bool) throws(PersistenceFailure) {
    use { try $0.execute(sql: "COMMIT") }
    if failure != nil { try fail() }
    committedState = state
    if queuesWrite { log.request() }
  }

  private func fail() throws(PersistenceFailure) {
    let error: any Error = failure ?? DamagedRow(description: "unknown")
    failure = nil
    if let code = (error as? DatabaseError)?.extendedResultCode,
      code == .SQLITE_IOERR_FSYNC || code == .SQLITE_IOERR_DIR_FSYNC
    {
      log.fail("\(code)")
    }
    state = committedState
    let operation = operation ?? .readDocument
    _ = try? queue?.unsafeReentrantWrite { db in if db.isInsideTransaction { try db.execute(sql: "ROLLBACK") }
    }
    if error is UnstorableWrite {
      throw PersistenceFailure(operation: operation, reason: "\(error)", kind: .invalidWrite)
    }
    guard DiskPersistence.isDamage(error) else {
      throw PersistenceFailure(operation: operation, reason: "\(error)")
    }
    do { try moveDamaged(error) } catch {
      throw PersistenceFailure(operation: operation, reason: "\(error)")
    }
    // If this fails, the next group tries again.
    do { try open() } catch { FirestoreLog.error("I-FST000009", "No new cache can be opened: \(error)") }
    throw PersistenceFailure(operation: operation, reason: "\(error)", kind: .damage)
  }

  /// Runs statements on the connection. If an earlier statement of this group failed, it does nothing.
  @discardableResult
  func use<T>(_ body: (Database) throws -> T) -> T? {
    guard failure == nil else { return nil }
    guard let queue else {
      failure = DatabaseError(resultCode: .SQLITE_CANTOPEN)
      return nil
    }
    do {
      return try queue.unsafeReentrantWrite { try body($0) }
    } catch {
      failure = failure ?? error
      return nil
    }
  }

  // MARK: Names

  /// The number of a collection; nil if the collection has no number.
  func number(of path: ResourcePath, in db: Database) throws -> Int64? {
    if let number = state.collections[path] { return number }
    let found = try Int64.fetchOne(
      db.cachedStatement(sql: "SELECT number FROM collections WHERE path = ?"), arguments: [path.column])
    if let found { cachePath(path, found) }
    return found
  }

  /// The number of a collection. If the collection has no number, it gets one.
  func assignedNumber(of path: ResourcePath, in db: Database) throws -> Int64 {
    if let number = try number(of: path, in: db) { return number }
    try db.cachedStatement(sql: "INSERT INTO collections (path, id) VALUES (?, ?)").execute(
      arguments: [path.column, (path.id ?? "").column])
    let number = db.lastInsertedRowID
    cachePath(path, number)
    return number
  }

  private func cachePath(_ path: ResourcePath, _ number: Int64) {
    state.collections[path] = number
    state.paths[number] = path
  }

  func path(of number: Int64, in db: Database) throws -> ResourcePath {
    if let path = state.paths[number] { return path }
    let column = try Data.fetchOne(
      db.cachedStatement(sql: "SELECT path FROM collections WHERE number = ?"), arguments: [number])
    guard let column else { throw DamagedRow(description: "a collection is missing") }
    let path = ResourcePath(splitting: try String(column: column))
    cachePath(path, number)
    return path
  }

  func name(_ path: ResourcePath, _ id: Data) throws -> DocumentName {
    guard let name = DocumentName(database: database, path: path.appending(try String(column: id))) else {
      throw DamagedRow(description: "a document's name is damaged")
    }
    return name
  }
}
