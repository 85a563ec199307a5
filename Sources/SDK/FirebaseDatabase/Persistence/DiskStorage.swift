// The storage on disk: runs the core's changes as transactions of one cache file, and recovers from failures of it.
//
// All changes of one step of the core form one transaction. Events of the step reach the app after its commit, so that
// the app has seen nothing that the end of the process can undo.
//
// A damaged file is renamed, and a new file receives the pending writes and the data of the active queries. After any
// other failure, for instance of a full disk, the file's contents are replaced in the same way. The core schedules the
// attempts, also for an idle app, with growing delays: each attempt writes everything.
//
// docs/decisions/0024-cache-of-the-database-sdk.md has the reasons.
//
// Invariant: the file has the state after some step of the core, or is marked for replacement.

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
  /// The open file; nil if none can be used.
  private(set) var file: CacheFile?
  private var isInTransaction = false
  /// Whether the transaction changes pending writes, which a sync must follow.
  private var changesWrites = false
  /// Whether the contents of the file must be replaced, since a transaction failed.
  private var isStale = false
  /// Whether a stale file must be replaced by a new one, since a sync failed.
  private var isUnsynced = false
  /// Whether nothing uses the file until the next call of `retry`.
  private var isWaiting = false
  /// Whether the app knows of the failure that made the file stale.
  private var isReported = false
  /// Whether the transaction replaces the contents.
  private var isRefill = false
  /// The delays of attempts to replace the contents: 0, 1 s, then twice as long each time up to 60 s.
  private var backoff = Backoff(initial: 1_000, maximum: 60_000, factor: 2, jitter: 1...1, seed: 0)
  private var updates = 0

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

  func restore() -> [OutgoingWrite] {
    guard open() else { return [] }
    let writes: [OutgoingWrite] = perform([]) { db in
      try TrackedQueryTable(db: db, now: now()).deactivateAll()
      return try PendingWriteTable(db: db).load()
    }
    // The file could not be read, so its writes are unknown: filling it again would delete them.
    if isStale {
      file?.close()
      file = nil
    }
    return writes
  }

  /// Opens the file, and replaces a damaged one.
  @discardableResult
  private func open() -> Bool {
    do {
      file = try openFile()
    } catch CacheFailure.damaged(let reason) {
      replace(CacheFailure.damaged(reason))
    } catch {
      report(CacheFailure(error).asNSError(file: url))
    }
    return file != nil
  }

  private func openFile() throws -> CacheFile {
    try CacheFile.open(url, sync: sync, syncFailed: { [weak source] in source?.retryStorage(after: 0) })
  }

  /// Renames the file and opens a new one.
  private func replace(_ failure: CacheFailure) {
    let quarantine = CacheFile.quarantine(url)
    report(failure.asNSError(file: url, quarantine: quarantine))
    do {
      file = try openFile()
    } catch {
      report(CacheFailure(error).asNSError(file: url))
    }
  }

  func commit() {
    guard isInTransaction, let file else { return }
    do {
      try file.queue.inDatabase { try $0.commit() }
      isInTransaction = false
      // Storing the contents again does not end the failure: the next change may not fit, and the next sync may fail.
      if !isRefill, file.sync.isWorking {
        isReported = false
        backoff.reset()
      }
      isRefill = false
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
    if isStale { retry() }
    file?.close()
    file = nil
  }

  // MARK: Transactions

  /// Runs work in the transaction of the current step.
  func perform<Result>(_ fallback: Result, _ work: (GRDB.Database) throws -> Result) -> Result {
    guard let file, !isWaiting else { return fallback }
    do {
      return try file.queue.inDatabase { db in
        if !isInTransaction {
          try db.beginTransaction(.immediate)
          isInTransaction = true
          if isStale { try refill(db) }
        }
        return try work(db)
      }
    } catch {
      failed(error)
      return fallback
    }
  }

  private func failed(_ error: any Error) {
    isInTransaction = false
    isRefill = false
    let failure = CacheFailure(error)
    if case .unsynced = failure { isUnsynced = true }
    guard case .damaged = failure else {
      if !isReported { report(failure.asNSError(file: url)) }
      isReported = true
      isStale = true
      isWaiting = true
      file?.queue.inDatabase { db in
        if db.isInsideTransaction { try? db.rollback() }
      }
      source?.retryStorage(after: Int64(backoff.next()))
      return
    }
    file?.close()
    file = nil
    isUnsynced = false
    // A file that is damaged while it is being filled would be replaced for ever.
    let wasStale = isStale
    isStale = true
    replace(failure)
    if wasStale {
      file?.close()
      file = nil
    } else {
      perform(()) { _ in }
    }
  }

  func retry() {
    guard !takeFailedSync(), isStale, let file else { return }
    isWaiting = false
    if isUnsynced { return rewrite(file) }
    perform(()) { _ in }
    commit()
  }

  /// Makes the file stale if a sync of its log failed.
  @discardableResult
  private func takeFailedSync() -> Bool {
    guard let failure = file?.sync.takeFailure() else { return false }
    isUnsynced = true
    failed(failure)
    return true
  }

  /// Writes the current state of the core to a new file, which takes the place of the old one.
  private func rewrite(_ old: CacheFile) {
    do {
      try CacheFile.writeReplacement(of: url, sync: sync) { try fill($0) }
    } catch {
      return failed(error)
    }
    old.close()
    file = nil
    isStale = false
    isUnsynced = false
    open()
  }

  /// Replaces everything in the file by the current state of the core.
  private func refill(_ db: GRDB.Database) throws {
    for table in ["pending_writes", "server_values", "tracked_queries", "tracked_keys"] {
      try db.execute(sql: "DELETE FROM \(table)")
    }
    try fill(db)
    isStale = false
    isRefill = true
    changesWrites = true
  }

  /// Writes the current state of the core to empty tables.
  private func fill(_ db: GRDB.Database) throws {
    let contents = source?.storageContents ?? StorageContents()
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
      if try tracked.isCovered(path) {
        return CacheNode(node: try values.node(at: path), isComplete: true, isFiltered: false)
      }
      if !query.showsAll, let keys = try tracked.window(of: query, at: path) {
        return CacheNode(node: try values.children(of: path, keys: keys), isComplete: true, isFiltered: true)
      }
      let known = try tracked.knownChildren(of: path)
      return CacheNode(
        node: try values.children(of: path, keys: known), isComplete: false, isFiltered: false)
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

  func store(_ node: Node, at path: Path, query: QuerySpec, replacing known: Node?) {
    perform(()) { db in
      if query.showsAll, let known, !known.isEmpty {
        try ServerValueTable(db: db).merge(node.differences(from: known), at: path)
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

  /// Writes a query's data. A filtered query's data has complete children only, and says nothing about others.
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
    updates += 1
    guard updates > CachePolicy.updatesBetweenChecks else { return }
    updates = 0
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
