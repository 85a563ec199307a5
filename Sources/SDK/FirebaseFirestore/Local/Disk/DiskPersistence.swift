// Persistence on disk: one SQLite file with one connection.
//
// A group of changes is one transaction in a write-ahead log. A committed group survives the end of the program. After a
// power cut the file is as it was after some earlier group; a group that queued a write is synced in the background.
//
// Invariant: after the first failure of a group nothing more is read or written until it is rolled back, and the state
// in memory is that of the last committed group.

import FirestoreModel
import Foundation
import GRDB
import SwiftProtobuf

// SAFETY: the sync engine uses the persistence on its queue only.
/// Keeps everything in a database file.
final class DiskPersistence: Persistence, @unchecked Sendable {
  /// The state in memory that a rollback restores.
  struct State {
    var user: UserID = nil
    var lastRemoteVersion: ModelTimestamp = .epoch
    var indexes: [FieldIndex: Int64] = [:]
    /// The numbers of the collections that were used so far.
    var collections: [ResourcePath: Int64] = [:]
    var paths: [Int64: ResourcePath] = [:]
    /// The reserved end of `sequence`: values below it may have been used before a restart.
    var reservedSequence = 0
  }

  let database: DatabaseName
  let folder: CacheFolder
  private var queue: DatabaseQueue?
  private let log: LogSync
  /// Whether the open group queues a write, which must survive a power cut.
  var queuesWrite = false
  private var failure: (any Error)?
  private var operation: StoreOperation?
  var state = State()
  private var saved = State()
  // Numbers that are never used twice, not even after a rollback.
  var nextBatch: BatchID = 1
  var lastTarget: TargetID = 0
  var sequence = 0

  /// Opens the cache of a folder. A damaged file is renamed, and an empty one takes its place.
  ///
  /// - Throws: the error of the file system or of SQLite if no cache can be opened.
  init(_ folder: CacheFolder, database: DatabaseName) throws {
    self.folder = folder
    self.database = database
    log = LogSync(of: folder.file)
    do {
      try open()
    } catch let error where DiskPersistence.isDamage(error) {
      try replace(error)
    }
  }

  // MARK: Opening

  private func open() throws {
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
      // Takes effect in an empty file only.
      try db.execute(sql: "PRAGMA auto_vacuum = INCREMENTAL")
      _ = try String.fetchOne(db, sql: "PRAGMA journal_mode = WAL")
      try db.execute(sql: "PRAGMA synchronous = NORMAL")
    }
    let queue = try DatabaseQueue(path: folder.file.path, configuration: configuration)
    try queue.unsafeReentrantWrite { db in
      try DiskSchema.migrate(db)
      try load(db)
    }
    self.queue = queue
    saved = state
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

  // Numbers that no client reaches; larger ones are damage, and counting on from them would overflow.
  private static let maximumSequence = 1 << 62
  private static let maximumBatch = 1 << 62
  private static let maximumTarget = Int(TargetID.max) / 2

  /// Reads a number that must not be negative, nor exceed a maximum; zero if there is none.
  ///
  /// - Throws: `DamagedRow` or `RowDecodingError` for another value.
  private func number(_ sql: String, upTo maximum: Int, in db: Database) throws -> Int {
    guard let row = try Row.fetchOne(db, sql: sql), let number = try row.decode(Int?.self, atIndex: 0) else {
      return 0
    }
    guard (0...maximum).contains(number) else { throw DamagedRow(description: "a number is out of range") }
    return number
  }

  /// Renames the damaged file and opens an empty one.
  private func replace(_ error: any Error) throws {
    try? queue?.close()
    queue = nil
    let place = try folder.quarantine()
    FirestoreLog.error(
      "I-FST000009",
      "The cache is damaged (\(error)). It was moved to \(place.path), and an empty cache takes its place. Cached"
        + " documents are read again; writes that were not acknowledged are lost.")
    try open()
  }

  static func isDamage(_ error: any Error) -> Bool {
    switch error {
    case let error as DatabaseError:
      [.SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_FORMAT].contains(error.resultCode)
        // A statement that does not fit the tables: the file is not what its version says.
        || error.resultCode == .SQLITE_ERROR
    case is DamagedRow, is RowDecodingError, is DiskSchema.UnknownVersion, is FirestoreError,
      is BinaryDecodingError,
      is DecodingError:
      true
    default: false
    }
  }

  func close() {
    log.finish()
    try? queue?.close()
    queue = nil
    folder.release()
  }

  // MARK: Groups

  func begin(_ operation: StoreOperation) throws(PersistenceFailure) {
    self.operation = operation
    failure = nil
    queuesWrite = false
    sequence += 1
    use { db in
      try db.execute(sql: "BEGIN")
      if sequence >= state.reservedSequence {
        state.reservedSequence = sequence + 1_000
        try db.cachedStatement(sql: "INSERT OR REPLACE INTO counters VALUES ('sequence', ?)").execute(
          arguments: [state.reservedSequence])
      }
    }
    if failure != nil { try fail() }
  }

  func commit(isPinned: (DocumentName) -> Bool) throws(PersistenceFailure) {
    use { try $0.execute(sql: "COMMIT") }
    if failure != nil { try fail() }
    saved = state
    if queuesWrite { log.request() }
  }

  private func fail() throws(PersistenceFailure) {
    let error: any Error = failure ?? DamagedRow(description: "unknown")
    failure = nil
    state = saved
    let operation = operation ?? .readDocument
    _ = try? queue?.unsafeReentrantWrite { db in if db.isInsideTransaction { try db.execute(sql: "ROLLBACK") }
    }
    if error is UnstorableWrite {
      throw PersistenceFailure(operation: operation, reason: "\(error)", kind: .invalidWrite)
    }
    guard DiskPersistence.isDamage(error) else {
      throw PersistenceFailure(operation: operation, reason: "\(error)")
    }
    do { try replace(error) } catch {
      throw PersistenceFailure(operation: operation, reason: "\(error)")
    }
    throw PersistenceFailure(operation: operation, reason: "\(error)", kind: .damage)
  }

  /// Runs statements on the connection. After a failure in this group it does nothing.
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

  /// The number of a collection; nil if it has none yet.
  func number(of path: ResourcePath, in db: Database) throws -> Int64? {
    if let known = state.collections[path] { return known }
    let found = try Int64.fetchOne(
      db.cachedStatement(sql: "SELECT number FROM collections WHERE path = ?"), arguments: [path.column])
    if let found { remember(path, found) }
    return found
  }

  /// The number of a collection, which gets one if it has none yet.
  func numbering(_ path: ResourcePath, in db: Database) throws -> Int64 {
    if let known = try number(of: path, in: db) { return known }
    try db.cachedStatement(sql: "INSERT INTO collections (path, id) VALUES (?, ?)").execute(
      arguments: [path.column, (path.id ?? "").column])
    let number = db.lastInsertedRowID
    remember(path, number)
    return number
  }

  private func remember(_ path: ResourcePath, _ number: Int64) {
    state.collections[path] = number
    state.paths[number] = path
  }

  func path(of number: Int64, in db: Database) throws -> ResourcePath {
    if let known = state.paths[number] { return known }
    let column = try Data.fetchOne(
      db.cachedStatement(sql: "SELECT path FROM collections WHERE number = ?"), arguments: [number])
    guard let column else { throw DamagedRow(description: "a collection is missing") }
    let path = ResourcePath(splitting: try String(column: column))
    remember(path, number)
    return path
  }

  func name(_ path: ResourcePath, _ id: Data) throws -> DocumentName {
    guard let name = DocumentName(database: database, path: path.appending(try String(column: id))) else {
      throw DamagedRow(description: "a document's name is damaged")
    }
    return name
  }
}
