// Tests a cache whose file could not be synced to the disk: the app receives an error, and a copy replaces the file.
// The log is SQLite's write-ahead log.

import FirestoreModel
import Foundation
import GRDB
import GRDBSQLite
import Testing

@testable import FirebaseFirestore

/// A replacement for the function that syncs files. It does not sync, and fails for chosen files.
private final class FailingDisk: Sendable {
  struct State {
    var failingSuffixes: [String] = []
    var copiesFolder = false
    var copies: [URL] = []
    var failures: [Int] = []
    var failedSyncs = 0
    /// For a number n above zero, the n-th sync of the folder from now and all later ones fail. For zero, no
    /// sync of the folder fails.
    var failingFolderSync = 0
    /// Whether the next sync damages the complete copy, if there is one.
    var damagesCopy = false
    /// Whether no new file can be created after damage.
    var blocksNewFile = false
  }

  let folder: URL
  let state = Locked(State())

  init(_ folder: URL) { self.folder = folder }

  /// Makes the syncs of files with these suffixes fail.
  func setFailingSuffixes(_ suffixes: String...) { state.change { $0.failingSuffixes = suffixes } }

  /// Copies the folder at each sync from now on. A copy contains the files that remain after a kill at this time.
  func copyFolderAtEachSync() { state.change { $0.copiesFolder = true } }

  var sync: LogSync.Sync {
    { [self] url in
      let (suffixes, copiesFolder) = state.change { ($0.failingSuffixes, $0.copiesFolder) }
      if copiesFolder {
        let copy = FileManager.default.temporaryDirectory.appendingPathComponent("copy-\(UUID().uuidString)")
        try FileManager.default.copyItem(at: folder, to: copy)
        state.change { $0.copies.append(copy) }
      }
      let failsFolder = state.change { state in
        guard url.lastPathComponent == folder.lastPathComponent, state.failingFolderSync > 0 else {
          return false
        }
        if state.failingFolderSync == 1 { return true }
        state.failingFolderSync -= 1
        return false
      }
      let copy = folder.appendingPathComponent("cache.sqlite.next")
      let damages = state.change { $0.damagesCopy && FileManager.default.fileExists(atPath: copy.path) }
      if damages { try Data(repeating: 7, count: 8_192).write(to: copy) }
      if failsFolder || suffixes.contains(where: { url.path.hasSuffix($0) }) {
        throw FailedSync(description: "simulated")
      }
    }
  }

  var observer: CacheObserver {
    CacheObserver(
      failed: { [state, folder] failure in
        state.change { $0.failures.append(failure.error.code) }
        guard case .damaged = failure, state.change({ $0.blocksNewFile }) else { return }
        // Creates a folder at the file's path, which SQLite cannot open.
        try? FileManager.default.createDirectory(
          at: folder.appendingPathComponent("cache.sqlite"), withIntermediateDirectories: false)
      },
      syncFailed: { [state] in state.change { $0.failedSyncs += 1 } })
  }

  func open() throws -> DiskPersistence {
    try DiskPersistence(
      try CacheFolder(folder), database: DatabaseName(project: "test"), observer: observer, sync: sync)
  }
}

private let unsyncedCode = FirestorePersistenceErrorCode.unsynced.rawValue

private func name(_ id: String) -> DocumentName {
  ParentName(rootOf: DatabaseName(project: "test")).collection("c").document(id)
}

private func write(_ id: String) -> [Write] { [Write(.update(name(id), fields: ["n": .integer(1)]))] }

/// The IDs of the documents with queued writes.
private func queuedIDs(_ persistence: any Persistence) -> [String] {
  persistence.allBatches.flatMap(\.writes).map(\.document.id)
}

/// The names of the files of a cache, without the lock.
private func files(_ folder: URL) throws -> [String] {
  try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0 != "lock" }.sorted()
}

@Suite("Failed syncs of the Firestore cache", .timeLimit(.minutes(5))) struct UnsyncedCacheTests {
  private let cache = CacheFixture(.disk)

  /// An engine with a document from the server and a queued write. The sync of the write-ahead log failed.
  private func makeUnsyncedEngine(_ disk: FailingDisk) throws -> SyncEngine {
    var engine = SyncEngine(persistence: try disk.open(), seed: 1)
    let document = CachedDocument(
      found: name("server"), fields: ["n": .integer(7)], version: .init(microseconds: 1), createTime: .epoch)
    var event = RemoteEvent(version: .init(microseconds: 1))
    event.documents[document.name] = document
    try engine.apply(event)
    disk.setFailingSuffixes("-wal")
    engine.write(write("first"), at: .epoch, completion: nil)
    (engine.store.persistence as? DiskPersistence)?.waitForSyncs()
    return engine
  }

  /// Returns the delay after which the engine repairs the cache.
  private func repairDelay(_ engine: inout SyncEngine) -> Double? {
    engine.takeActions().compactMap {
      if case .startTimer(.repair, let seconds) = $0 { seconds } else { nil }
    }
    .last
  }

  @Test("after a failed sync the app gets an error, and a new file has the queued writes and the documents")
  func newFile() throws {
    let disk = FailingDisk(cache.folder)
    var engine = try makeUnsyncedEngine(disk)
    #expect(disk.state.change { $0.failedSyncs } == 1, "the client of an idle app is notified too")
    let number = try FileManager.default.attributesOfItem(atPath: cache.file.path)[.systemFileNumber] as? Int
    engine.cacheSyncFailed()
    let first = repairDelay(&engine)
    #expect(first == 0)
    disk.setFailingSuffixes()
    engine.timerFired(.repair)
    #expect(disk.state.change { $0.failures } == [unsyncedCode])
    let new = try FileManager.default.attributesOfItem(atPath: cache.file.path)[.systemFileNumber] as? Int
    #expect(number != new)
    let rights = try FileManager.default.attributesOfItem(atPath: cache.file.path)[.posixPermissions] as? Int
    #expect(rights == 0o600)
    #expect(queuedIDs(engine.store.persistence) == ["first"])
    engine.write(write("second"), at: .epoch, completion: nil)
    engine.store.persistence.close()
    #expect(disk.state.change { $0.failedSyncs } == 1)
    #expect(try files(cache.folder) == ["cache.sqlite"])
    var reopened = LocalStore(persistence: try disk.open())
    #expect(queuedIDs(reopened.persistence) == ["first", "second"])
    #expect(try reopened.read(name("server")).fields == ["n": .integer(7)])
    reopened.persistence.close()
  }

  @Test(
    "while every sync fails, the app gets one error, repair has growing delays, and writes are queued")
  func failingDisk() throws {
    let disk = FailingDisk(cache.folder)
    var engine = try makeUnsyncedEngine(disk)
    disk.setFailingSuffixes("-wal", ".new")
    engine.cacheSyncFailed()
    var delays: [Double] = []
    for attempt in 0..<6 {
      let next = repairDelay(&engine)
      delays.append(try #require(next))
      engine.timerFired(.repair)
      engine.write(write("later\(attempt)"), at: .epoch, completion: CompletionID(number: attempt))
    }
    let actions = engine.takeActions()
    #expect(!actions.contains { if case .completed = $0 { true } else { false } })
    #expect(delays[0] == 0 && delays.dropFirst().allSatisfy { $0 >= 0.5 } && delays[5] > 2)
    #expect(disk.state.change { $0.failures } == [unsyncedCode])
    disk.setFailingSuffixes()
    engine.store.persistence.close()
    let reopened = try disk.open()
    #expect(queuedIDs(reopened) == ["first"] + (0..<6).map { "later\($0)" }, "closing is one more attempt")
    reopened.close()
    #expect(try files(cache.folder) == ["cache.sqlite"])
  }

  @Test("if the folder's entries cannot be synced, the old file stays in use and no write is lost")
  func unsyncedFolder() throws {
    let disk = FailingDisk(cache.folder)
    var engine = try makeUnsyncedEngine(disk)
    disk.setFailingSuffixes("-wal", cache.folder.lastPathComponent)
    engine.timerFired(.repair)
    #expect(try files(cache.folder).allSatisfy { !$0.hasSuffix(".next") })
    engine.write(write("second"), at: .epoch, completion: nil)
    #expect(queuedIDs(engine.store.persistence) == ["first", "second"])
    disk.setFailingSuffixes()
    engine.timerFired(.repair)
    #expect(queuedIDs(engine.store.persistence) == ["first", "second"])
    engine.store.persistence.close()
    let reopened = try disk.open()
    #expect(queuedIDs(reopened) == ["first", "second"])
    reopened.close()
  }

  @Test("if the process ends while the file is replaced, the next start finds every queued write")
  func interrupted() throws {
    let disk = FailingDisk(cache.folder)
    var engine = try makeUnsyncedEngine(disk)
    disk.setFailingSuffixes()
    disk.copyFolderAtEachSync()
    engine.timerFired(.repair)
    let copies = disk.state.change { $0.copies }
    #expect(
      copies.count == 4, "one each after the copy, its rename, the removal of the log and the final rename")
    engine.store.persistence.close()
    for (moment, copy) in copies.enumerated() {
      defer { try? FileManager.default.removeItem(at: copy) }
      let other = FailingDisk(copy)
      var store = LocalStore(persistence: try other.open())
      #expect(queuedIDs(store.persistence) == ["first"], "moment \(moment)")
      #expect(try store.read(name("server")).isFound, "moment \(moment)")
      _ = try store.write(write("second"), at: .epoch)
      store.persistence.close()
      #expect(try files(copy) == ["cache.sqlite"], "moment \(moment)")
      let third = try other.open()
      #expect(queuedIDs(third) == ["first", "second"], "moment \(moment)")
      third.close()
    }
  }

  @Test(
    "if the folder cannot be synced after the old log was removed, writes fail until a later attempt uses the copy"
  )
  func unfinishedMove() throws {
    let disk = FailingDisk(cache.folder)
    var engine = try makeUnsyncedEngine(disk)
    disk.setFailingSuffixes()
    // The second sync of the folder follows the removal of the old log.
    disk.state.change { $0.failingFolderSync = 2 }
    engine.timerFired(.repair)
    let next = repairDelay(&engine)
    #expect(next != nil)
    engine.write(write("refused"), at: .epoch, completion: CompletionID(number: 1))
    let refused = engine.takeActions().contains { action in
      if case .completed(CompletionID(number: 1), let error) = action {
        error?.code == .unavailable
      } else {
        false
      }
    }
    #expect(refused)
    disk.state.change { $0.failingFolderSync = 0 }
    engine.write(write("second"), at: .epoch, completion: nil)
    #expect(queuedIDs(engine.store.persistence) == ["first", "second"], "the next group opens the copy")
    engine.timerFired(.repair)
    #expect(queuedIDs(engine.store.persistence) == ["first", "second"])
    engine.store.persistence.close()
    let reopened = try disk.open()
    #expect(queuedIDs(reopened) == ["first", "second"])
    reopened.close()
  }

  // MARK: Damage after which no new file can be opened

  @Test("damage is reported as damage even if no new file can be opened, and the next operation tries again")
  func blockedNewFile() throws {
    let disk = FailingDisk(cache.folder)
    disk.state.change { $0.blocksNewFile = true }
    let persistence = try disk.open()
    var store = LocalStore(persistence: persistence)
    var event = RemoteEvent(version: .init(microseconds: 1))
    event.documents[name("server")] = CachedDocument(
      found: name("server"), fields: [:], version: .init(microseconds: 1), createTime: .epoch)
    _ = try store.apply(event)
    persistence.use { try $0.execute(sql: "UPDATE documents SET version = 5") }
    func failure() -> PersistenceFailure.Kind? {
      do throws(PersistenceFailure) {
        _ = try store.read(name("server"))
        return nil
      } catch { return error.kind }
    }
    #expect(failure() == .damage)
    #expect(failure() == .unavailable)
    try FileManager.default.removeItem(at: cache.file)
    #expect(failure() == nil)
    #expect(try store.lastRemoteVersion() == .epoch)
    _ = try store.write(write("later"), at: .epoch)
    persistence.close()
    let reopened = try disk.open()
    #expect(queuedIDs(reopened) == ["later"])
    reopened.close()
  }

  @Test(
    "if the copy is damaged, its lost writes fail and targets restart, even if no new file can be opened"
  )
  func damagedCopy() throws {
    let disk = FailingDisk(cache.folder)
    var engine = try makeUnsyncedEngine(disk)
    let query = ClientQuery(
      ModelQuery(
        parent: ParentName(rootOf: DatabaseName(project: "test")), StructuredQuery(from: [.init("c")])))
    let target = try engine.store.allocate(query.target)
    engine.store.setTarget(target.resuming(with: [9], at: .init(microseconds: 1)))
    engine.write(write("lost"), at: .epoch, completion: CompletionID(number: 1))
    _ = engine.takeActions()
    disk.setFailingSuffixes()
    disk.state.change { ($0.damagesCopy, $0.blocksNewFile) = (true, true) }
    engine.timerFired(.repair)
    let isLost = engine.takeActions().contains { action in
      if case .completed(CompletionID(number: 1), let error) = action {
        error?.code == .dataLoss
      } else {
        false
      }
    }
    #expect(isLost)
    #expect(engine.store.targets[target.id]?.resumeToken == [])
    disk.state.change { $0.damagesCopy = false }
    try FileManager.default.removeItem(at: cache.file)
    engine.timerFired(.lostWrites)
    engine.write(write("later"), at: .epoch, completion: nil)
    #expect(queuedIDs(engine.store.persistence) == ["later"])
    engine.store.persistence.close()
  }

  @Test("a start after a kill copies the old log to the file, because its sync may have failed")
  func oldLog() throws {
    let disk = FailingDisk(cache.folder)
    var killed = try makeUnsyncedEngine(disk)
    let copy = CacheFixture(.disk)
    try FileManager.default.copyItem(at: cache.folder, to: copy.folder)
    killed.store.persistence.close()
    let log = copy.file.path + "-wal"
    func bytes() throws -> Int? {
      try FileManager.default.attributesOfItem(atPath: log)[.size] as? Int
    }
    #expect(try bytes() ?? 0 > 0)
    let other = FailingDisk(copy.folder)
    let started = try other.open()
    #expect(try bytes() == 0)
    let file = CacheFixture(.disk)
    try FileManager.default.createDirectory(at: file.folder, withIntermediateDirectories: true)
    try FileManager.default.copyItem(at: copy.file, to: file.file)
    let fileAlone = try FailingDisk(file.folder).open()
    #expect(queuedIDs(fileAlone) == ["first"])
    fileAlone.close()
    started.close()
  }

  @Test("a failed copy is removed from the disk")
  func partialCopy() throws {
    let disk = FailingDisk(cache.folder)
    var engine = try makeUnsyncedEngine(disk)
    let persistence = try #require(engine.store.persistence as? DiskPersistence)
    disk.setFailingSuffixes()
    // Interrupts every statement that runs more than a few steps.
    persistence.use { sqlite3_progress_handler($0.sqliteConnection, 20, { _ in 1 }, nil) }
    engine.timerFired(.repair)
    let next = repairDelay(&engine)
    #expect(next != nil, "the copy failed")
    #expect(try files(cache.folder).allSatisfy { !$0.contains(".new") })
    persistence.use { sqlite3_progress_handler($0.sqliteConnection, 0, nil, nil) }
    disk.setFailingSuffixes(".new")
    engine.timerFired(.repair)
    #expect(try files(cache.folder).allSatisfy { !$0.contains(".new") })
    disk.setFailingSuffixes()
    engine.timerFired(.repair)
    #expect(queuedIDs(engine.store.persistence) == ["first"])
    engine.store.persistence.close()
  }

  #if os(Linux)
    // The proc file system does not support syncs.
    @Test("a file that its file system cannot sync counts as a failed sync, and a folder does not")
    func unsupportedSync() throws {
      try LogSync.sync(URL(fileURLWithPath: "/proc", isDirectory: true))
      #expect(throws: FailedSync.self) { try LogSync.sync(URL(fileURLWithPath: "/proc/self/status")) }
      #expect(throws: FailedSync.self) { try LogSync.sync(cache.folder.appendingPathComponent("missing")) }
    }
  #endif

  @Test("a running client whose log was removed reports the failed sync to the app and loses no write")
  func removedLog() async throws {
    let client = TestClient.make(port: 1)
    let errors = Recorder<Int>()
    client.persistenceErrorHandler = { errors.add(($0 as NSError).code) }
    put(client.document("c/a"), ["n": 1])
    #expect(try await client.document("c/a").getDocument(source: .cache).exists)
    try FileManager.default.removeItem(atPath: client.cacheFolder.path + "/cache.sqlite-wal")
    put(client.document("c/b"), ["n": 2])
    #expect(try await errors.first { _ in true } == unsyncedCode)
    #expect((client.persistenceError as? NSError)?.domain == FirestorePersistenceErrorDomain)
    put(client.document("c/d"), ["n": 3])
    #expect(try await client.collection("c").getDocuments(source: .cache).count == 3)
    try await client.terminate()
    #expect(errors.all == [unsyncedCode])
    let reopened = TestClient.reopen(client)
    #expect(try await reopened.collection("c").getDocuments(source: .cache).count == 3)
    try await reopened.terminate()
  }
}
