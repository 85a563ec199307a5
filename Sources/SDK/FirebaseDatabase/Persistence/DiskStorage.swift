// The storage on disk: stores the core's changes as transactions of one cache file, and recovers from
// failures of the file. The core is the client's `Repository`.
//
// All changes of one step of the core form one transaction. The app receives the events of a step after its
// commit. Therefore the end of the process cannot undo anything that the app has seen.
//
// After a failure, the storage writes the pending writes and the data of the active queries again from
// memory. It writes them to a new file if the old one is damaged or could not be synced. Otherwise, for
// instance after a full disk, it writes them to the same file. The core schedules the attempts as separate
// steps, also for an idle app. The delays grow, because each attempt writes everything.
//
// docs/decisions/0024-cache-of-the-database-sdk.md and 0033-recovery-of-the-cache.md have the reasons.
//
// Invariants
//   1. The file has the state after some step of the core, or is marked for repair.
//   2. A damaged file is not renamed until a new file has everything.

import FirebaseCore
import Foundation
import GRDB
import RealtimeModel

/// The storage of one database in a SQLite file.
final class DiskStorage: ClientStorage {
  /// Receives the failures of the file.
  typealias Report = (NSError) -> Void

  weak var source: (any StorageSource)?

  private let url: URL
  private let policy: CachePolicy
  private let report: Report
  private let now: () -> Int64
  private let sync: LogSync.Sync
  /// The lock is held while a file is in use or will be used again; otherwise nil.
  private var lock: CacheLock?
  /// The open file; nil if none can be used.
  private(set) var file: CacheFile?
  /// Whether the storage uses a file, or will use one after a repair.
  private var isEnabled = false
  private var isInTransaction = false
  /// Whether the transaction changes pending writes. Such a transaction requests a sync.
  private var changesWrites = false
  /// The repair that writes the core's state again; nil if the file has that state.
  private var repair: Repair?
  /// Whether the storage does not use the file until the next call of `retry`.
  private var isWaiting = false
  /// The codes of the failures that were reported to the app since the file last worked.
  private var reportedCodes: Set<Int> = []
  /// Whether the current transaction replaces the contents.
  private var replacesContents = false
  /// The delays in milliseconds between attempts to replace the contents: 0, then 1,000, then twice the
  /// previous one, up to 60,000.
  private var backoff = Backoff(initial: 1_000, maximum: 60_000, factor: 2, jitter: 1...1, seed: 0)
  private var updateCount = 0

  /// The ways to repair a file that does not have the state of the core.
  private enum Repair {
    /// The contents of the file are replaced.
    case replaceContents
    /// A new file overwrites this file.
    case replaceFile
    /// A new file replaces this file, and this file is renamed because it is damaged.
    case quarantineAndReplace
  }

  /// Makes a storage; `restore` opens the file.
  ///
  /// - Parameters:
  ///   - now: the clock, in milliseconds since 1970.
  ///   - sync: writes a file's data to the disk.
  ///   - report: receives the failures of the file.
  init(
    url: URL, policy: CachePolicy, now: @escaping () -> Int64,
    sync: @escaping LogSync.Sync = LogSync.sync, report: @escaping Report
  ) {
    self.url = url
    self.policy = policy
    self.now = now
    self.sync = sync
    self.report = report
  }

  // MARK: Opening and closing

  /// Opens the file. A damaged file is replaced by a new one with the pending writes that could be read.
  func restore() -> [OutgoingWrite] {
    var restored = RestoredWrites()
    isEnabled = true
    do {
      lock = try CacheFile.lock(url, sync: sync)
      file = try openFile()
    } catch CacheFailure.damaged(let reason) {
      restored = CacheFile.readPendingWrites(url)
      var text = reason
      if case .damaged(let loss)? = restored.failure { text += "; \(loss)" }
      report(CacheFailure.damaged(text).asNSError(file: url))
      repair = .quarantineAndReplace
      replaceFile(StorageContents(writes: restored.writes))
      return isEnabled ? restored.writes : []
    } catch {
      var failure = CacheFailure(error)
      // The file was never open, so it cannot be rewritten. The failure is reported as unusable.
      if case .unsynced(let reason) = failure { failure = .unusable(reason) }
      report(failure.asNSError(file: url))
      disable()
      return []
    }
    perform(()) { db in
      restored = try PendingWriteTable(db: db).load()
      if let failure = restored.failure { throw failure }
      try TrackedQueryTable(db: db, now: now()).deactivateAll()
    }
    switch repair {
    case nil: break
    case .quarantineAndReplace: replaceFile(StorageContents(writes: restored.writes))
    case .replaceContents, .replaceFile:
      // The file could not be read, so its pending writes are unknown. Replacing its contents would delete
      // them.
      disable()
      return []
    }
    return isEnabled ? restored.writes : []
  }

  private func openFile() throws -> CacheFile {
    try CacheFile.open(url, sync: sync, syncFailed: { [weak source] in source?.retryStorage(after: 0) })
  }

  /// Stops using the file. Later calls have no effect.
  private func disable() {
    file?.close()
    file = nil
    lock = nil
    isEnabled = false
  }

  func commit() {
    guard isInTransaction, let file else { return }
    do {
      try file.queue.inDatabase { try $0.commit() }
      isInTransaction = false
      // Replacing the contents does not reset the backoff, because the next change or sync may fail again.
      // Only a later commit shows that the file works.
      if !replacesContents, file.sync.isWorking {
        reportedCodes = []
        backoff.reset()
      }
      replacesContents = false
      if changesWrites { file.sync.request() }
      changesWrites = false
    } catch {
      failed(error)
    }
  }

  func close() {
    commit()
    file?.sync.close()
    takeFailedSync()
    retry()
    disable()
  }

  // MARK: Transactions

  /// Runs a closure in the transaction of the current step.
  func perform<Result>(_ fallback: Result, _ work: (GRDB.Database) throws -> Result) -> Result {
    guard let file, !isWaiting else { return fallback }
    do {
      return try file.queue.inDatabase { db in
        if !isInTransaction {
          try db.beginTransaction(.immediate)
          isInTransaction = true
          if repair != nil { try replaceContents(db) }
        }
        return try work(db)
      }
    } catch {
      failed(error)
      return fallback
    }
  }

  /// Marks the file for repair. The failed call is not repeated, because the repair runs in a later step and
  /// writes the effects of all calls.
  private func failed(_ error: any Error) {
    isInTransaction = false
    replacesContents = false
    let failure = CacheFailure(error)
    switch failure {
    case .damaged: repair = .quarantineAndReplace
    case .unsynced: repair = repair == .quarantineAndReplace ? .quarantineAndReplace : .replaceFile
    case .inUse, .unusable: repair = repair ?? .replaceContents
    }
    let cause = failure.asNSError(file: url)
    if reportedCodes.insert(cause.code).inserted { report(cause) }
    isWaiting = true
    file?.queue.inDatabase { db in
      if db.isInsideTransaction { try? db.rollback() }
    }
    source?.retryStorage(after: Int64(backoff.next()))
  }

  func retry() {
    guard isEnabled, !takeFailedSync(), let repair else { return }
    guard repair == .replaceContents, file != nil else {
      return replaceFile(source?.storageContents ?? StorageContents())
    }
    isWaiting = false
    perform(()) { _ in }
    commit()
  }

  /// Marks the file for repair if a sync of its log failed.
  @discardableResult
  private func takeFailedSync() -> Bool {
    guard let failure = file?.sync.takeFailure() else { return false }
    failed(failure)
    return true
  }

  /// Writes contents to a new file, which replaces the old one.
  private func replaceFile(_ contents: StorageContents) {
    do {
      try CacheFile.writeReplacement(of: url, keepsOld: repair == .quarantineAndReplace, sync: sync) {
        try fill($0, contents)
      }
      file?.close()
      file = nil
      // Opening completes the replacement. If opening fails, the old file may already be renamed.
      repair = .replaceFile
      file = try openFile()
      repair = nil
      isWaiting = false
    } catch {
      failed(error)
      // Another process opened the file despite the lock. That process now sends the pending writes, so this
      // storage stops.
      if case .inUse = CacheFailure(error) { disable() }
    }
  }

  /// Replaces everything in the file with the current state of the core.
  private func replaceContents(_ db: GRDB.Database) throws {
    for table in ["pending_writes", "server_values", "tracked_queries", "tracked_keys"] {
      try db.execute(sql: "DELETE FROM \(table)")
    }
    try fill(db, source?.storageContents ?? StorageContents())
    repair = nil
    replacesContents = true
    changesWrites = true
  }

  /// Writes contents to empty tables.
  private func fill(_ db: GRDB.Database, _ contents: StorageContents) throws {
    let writes = PendingWriteTable(db: db)
    for write in contents.writes { try writes.append(write) }
    for (path, query, server) in contents.queries {
      let tracked = TrackedQueryTable(db: db, now: now())
      try tracked.activate(query, at: path)
      guard server.isComplete else { continue }
      try DiskStorage.write(server.node, at: path, query: query, db)
      try tracked.complete(query, at: path)
      if !query.showsAll { try tracked.setWindow(server.node.window(query).childKeys, of: query, at: path) }
    }
  }

  // MARK: Pending writes

  func append(_ write: OutgoingWrite) {
    changesWrites = true
    perform(()) { try PendingWriteTable(db: $0).append(write) }
  }

  func remove(_ id: Int) {
    changesWrites = true
    perform(()) { try PendingWriteTable(db: $0).remove(id) }
  }

  func removeAllWrites() {
    changesWrites = true
    perform(()) { try PendingWriteTable(db: $0).removeAll() }
  }

  // MARK: Queries

  func load(_ query: QuerySpec, at path: Path) -> CacheNode {
    perform(.nothing) { db in
      let tracked = TrackedQueryTable(db: db, now: now())
      let values = ServerValueTable(db: db)
      // A complete window is newer than the default queries that cover its location.
      if !query.showsAll, let keys = try tracked.window(of: query, at: path) {
        let node = try values.children(of: path, keys: keys)
        // A key of the window without rows belongs to a child that left the window. The stored window is then
        // incomplete, unless the child exists only in a pending write.
        if try node.childKeys.count == keys.count || PendingWriteTable(db: db).hasWrite(near: path) {
          return CacheNode(node: node, isComplete: true, isFiltered: true)
        }
      }
      if try tracked.isCovered(path) {
        return CacheNode(node: try values.node(at: path), isComplete: true, isFiltered: false)
      }
      let completeKeys = try tracked.knownChildren(of: path)
      return CacheNode(
        node: try values.children(of: path, keys: completeKeys), isComplete: false, isFiltered: false)
    }
  }

  func activate(_ query: QuerySpec, at path: Path) {
    track { try $0.activate(query, at: path) }
  }

  func deactivate(_ query: QuerySpec, at path: Path) {
    track { try $0.deactivate(query, at: path) }
  }

  func complete(_ query: QuerySpec, at path: Path) {
    track { try $0.complete(query, at: path) }
  }

  func setWindow(_ keys: [ChildKey], of query: QuerySpec, at path: Path) {
    track { try $0.setWindow(keys, of: query, at: path) }
  }

  func updateWindow(adding: [ChildKey], removing: [ChildKey], of query: QuerySpec, at path: Path) {
    track { try $0.updateWindow(adding: adding, removing: removing, of: query, at: path) }
  }

  private func track(_ work: (TrackedQueryTable) throws -> Void) {
    perform(()) { try work(TrackedQueryTable(db: $0, now: now())) }
  }

  // MARK: Data of the server

  func store(_ node: Node, at path: Path, query: QuerySpec, replacing previous: Node?) {
    perform(()) { db in
      if query.showsAll, let previous, !previous.isEmpty {
        try ServerValueTable(db: db).merge(node.differences(from: previous), at: path)
      } else {
        try DiskStorage.write(node, at: path, query: query, db)
      }
      try TrackedQueryTable(db: db, now: now()).complete(query, at: path)
      try countUpdate(db)
    }
  }

  func merge(_ changes: [(Path, Node)], at path: Path) {
    perform(()) { db in
      try ServerValueTable(db: db).merge(changes, at: path)
      try countUpdate(db)
    }
  }

  func storeUnobserved(_ node: Node, at path: Path, query: QuerySpec) {
    perform(()) { db in
      try DiskStorage.write(node, at: path, query: query, db)
      if !path.isPriority {
        let tracked = TrackedQueryTable(db: db, now: now())
        try tracked.addComplete(query, at: path)
        if !query.showsAll { try tracked.setWindow(node.childKeys, of: query, at: path) }
      }
      try countUpdate(db)
    }
  }

  /// Writes a query's data. The data of a filtered query has complete children, and contains no information
  /// about other children.
  private static func write(_ node: Node, at path: Path, query: QuerySpec, _ db: GRDB.Database) throws {
    let values = ServerValueTable(db: db)
    guard !query.showsAll else { return try values.overwrite(node, at: path) }
    try node.forEachChild { key, child in
      try values.overwrite(child, at: path.child(key))
      return true
    }
  }

  // MARK: Pruning

  private func countUpdate(_ db: GRDB.Database) throws {
    updateCount += 1
    guard updateCount > CachePolicy.updatesBetweenChecks else { return }
    updateCount = 0
    try prune(db)
  }

  private func prune(_ db: GRDB.Database) throws {
    let tracked = TrackedQueryTable(db: db, now: now())
    let values = ServerValueTable(db: db)
    while true {
      let inactive = try tracked.inactiveCount()
      guard inactive > 0, policy.mustPrune(bytes: try db.usedBytes(), inactiveQueries: inactive) else {
        break
      }
      for key in try tracked.removeOldest(policy.pruneCount(inactiveQueries: inactive)) {
        guard try !tracked.isTracked(atOrAbove: key) else { continue }
        try values.prune(key, keeping: try tracked.locations(below: key))
      }
    }
    try db.execute(sql: "PRAGMA incremental_vacuum")
  }
}
