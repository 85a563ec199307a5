// Tests recovery from failures of the cache file: no readable pending write is lost, and the cache works again
// afterwards. The window of a filtered query is the set of children in its last result.

import FirebaseCore
import Foundation
import GRDB
import Locking
import RealtimeModel
import Testing

@testable import FirebaseDatabase

@Suite("Recovery of the cache", .timeLimit(.minutes(10)))
struct CacheRecoveryTests {
  private static func write(_ id: Int, bytes: Int = 1) -> OutgoingWrite {
    let text = "w\(id)-" + String(repeating: "x", count: bytes)
    return OutgoingWrite(id: id, path: Path("list/\(id)"), change: .put(.leaf(.string(text)), hash: nil))
  }

  /// Creates a cache file with pending writes and closes it.
  private static func fill(_ folder: DataFolder, _ writes: [OutgoingWrite]) {
    let fixture = StorageFixture(folder)
    _ = fixture.storage.restore()
    for write in writes { fixture.storage.append(write) }
    fixture.storage.close()
  }

  /// Damages values of pending writes in a closed file.
  private static func damageRows(_ folder: DataFolder, _ ids: [Int]) throws {
    let file = try CacheFile.open(folder.file)
    try file.queue.inDatabase { db in
      for id in ids {
        try db.execute(
          sql: "UPDATE pending_writes SET value = ? WHERE id = ?", arguments: [Data("{".utf8), id])
      }
    }
    file.close()
  }

  // MARK: Reading at the start

  @Test("an unreadable pending write is lost and reported, and all others are restored")
  func unreadableRow() throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    CacheRecoveryTests.fill(folder, (1...5).map { CacheRecoveryTests.write($0) })
    try CacheRecoveryTests.damageRows(folder, [3])
    let fixture = StorageFixture(folder)
    #expect(fixture.storage.restore().map(\.id) == [1, 2, 4, 5])
    #expect(fixture.codes == [CachePersistenceError.damaged.rawValue])
    let text = try #require(fixture.errors.withLock { $0.first?.localizedDescription })
    #expect(text.contains("1 pending writes are lost"), "\(text)")
    #expect(FileManager.default.fileExists(atPath: folder.file.path + ".damaged"))
    fixture.storage.close()
    let reopened = StorageFixture(folder)
    #expect(reopened.storage.restore().map(\.id) == [1, 2, 4, 5])
    #expect(reopened.codes.isEmpty)
    reopened.storage.close()
  }

  @Test("damaged pages lose only the pending writes in them", arguments: [[20], [20, 40], [20, 60]])
  func damagedPages(_ damaged: [Int]) throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let ids = Array(1...60)
    CacheRecoveryTests.fill(folder, ids.map { CacheRecoveryTests.write($0, bytes: 1_000) })
    var bytes = try Data(contentsOf: folder.file)
    // Damages the pages that contain the first bytes of these values.
    for id in damaged {
      let offset = try #require(bytes.range(of: Data("w\(id)-x".utf8))?.lowerBound)
      let page = offset / 4_096 * 4_096
      bytes.replaceSubrange(page..<(page + 16), with: Data(repeating: 0xEE, count: 16))
    }
    try bytes.write(to: folder.file)
    let fixture = StorageFixture(folder)
    let restored = fixture.storage.restore().map(\.id)
    #expect(restored == restored.sorted() && restored.first == 1 && restored.contains(50))
    #expect(restored.contains(60) != damaged.contains(60))
    #expect(restored.count >= 60 - 5 * damaged.count && restored.count < 60, "\(restored)")
    #expect(fixture.codes == [CachePersistenceError.damaged.rawValue])
    fixture.storage.close()
    let reopened = StorageFixture(folder)
    #expect(reopened.storage.restore().map(\.id) == restored)
    #expect(reopened.codes.isEmpty)
    reopened.storage.close()
  }

  @Test("an upgrade of the file that detects damage in another table loses no pending write")
  func damageAtUpgrade() throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let first = StorageFixture(folder)
    _ = first.storage.restore()
    for id in 1...3 { first.storage.append(CacheRecoveryTests.write(id)) }
    for n in 0..<300 { first.storage.activate(.default, at: Path("marked-\(n)")) }
    first.storage.close()
    let file = try CacheFile.open(folder.file)
    try file.queue.inDatabase { try $0.execute(sql: "DROP INDEX tracked_windows; PRAGMA user_version = 1") }
    file.close()
    var bytes = try Data(contentsOf: folder.file)
    for page in stride(from: 0, to: bytes.count, by: 4_096)
    where bytes[page..<(page + 4_096)].range(of: Data("marked-".utf8)) != nil {
      bytes.replaceSubrange(page..<(page + 16), with: Data(repeating: 0xEE, count: 16))
    }
    try bytes.write(to: folder.file)
    let fixture = StorageFixture(folder)
    #expect(fixture.storage.restore().map(\.id) == [1, 2, 3])
    #expect(fixture.codes == [CachePersistenceError.damaged.rawValue])
    #expect(FileManager.default.fileExists(atPath: folder.file.path + ".damaged"))
    fixture.storage.append(CacheRecoveryTests.write(4))
    fixture.storage.close()
    let reopened = StorageFixture(folder)
    #expect(reopened.storage.restore().map(\.id) == [1, 2, 3, 4])
    #expect(reopened.codes.isEmpty)
    reopened.storage.close()
  }

  @Test("an unreadable sector of the disk loses only the pending writes in it")
  func unreadableSector() throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    CacheRecoveryTests.fill(folder, (1...9).map { CacheRecoveryTests.write($0) })
    let file = try CacheFile.open(folder.file)
    defer { file.close() }
    let restored = try file.queue.inDatabase { db in
      // SQLite returns the function's error code as the result of the statement, as for a failed read.
      db.add(
        function: DatabaseFunction("unreadable", argumentCount: 0) { _ in
          throw GRDB.DatabaseError(resultCode: .SQLITE_IOERR_READ)
        })
      try db.execute(
        sql: """
          ALTER TABLE pending_writes RENAME TO writes;
          CREATE VIEW pending_writes AS SELECT id, kind, path,
            CASE WHEN id IN (4, 6) THEN unreadable() ELSE value END AS value FROM writes;
          """)
      return try PendingWriteTable(db: db).load()
    }
    #expect(restored.writes.map(\.id) == [1, 2, 3, 5, 7, 8, 9])
    #expect(restored.failure != nil)
  }

  @Test("if the process ends while a damaged file is replaced, the next start finds the readable writes")
  func interruptedReplacement() throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    CacheRecoveryTests.fill(folder, (1...5).map { CacheRecoveryTests.write($0) })
    try CacheRecoveryTests.damageRows(folder, [2])
    let disk = FailingDisk(folder)
    disk.copyFolderAtEachSync()
    let fixture = StorageFixture(folder, sync: disk.sync)
    #expect(fixture.storage.restore().map(\.id) == [1, 3, 4, 5])
    let copies = disk.state.withLock { $0.copies }
    fixture.storage.close()
    #expect(copies.count >= 4)
    for (moment, copy) in copies.enumerated() {
      defer { copy.remove() }
      let reopened = StorageFixture(copy)
      #expect(reopened.storage.restore().map(\.id) == [1, 3, 4, 5], "moment \(moment)")
      reopened.storage.close()
      #expect(FileManager.default.fileExists(atPath: copy.file.path + ".damaged"), "moment \(moment)")
    }
  }

  @Test(
    "a write that is too deep for every server fails immediately, and the next run finds all other writes")
  func depths() async throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let client = try Client.persistent(in: folder, namespace: "depths")
    client.database.goOffline()
    client.ref.child("first").put(1)
    let failed = Recorder<Int>()
    let depths = [1, 31, 32, 99, 100, 128, 600]
    for depth in depths {
      var value: Any = 1
      for _ in 0..<depth { value = ["x": value] }
      client.ref.child("d").setValue(value) { error, _ in
        if error?.localizedDescription.contains("levels deep") == true { failed.record(depth) }
      }
      client.ref.updateChildValues(["u": value]) { error, _ in
        if error != nil { failed.record(depth) }
      }
      client.ref.child("o").onDisconnectSetValue(value) { error, _ in
        if error != nil { failed.record(depth) }
      }
    }
    client.ref.child("last").put(1)
    await client.waitForRequests()
    client.queue.sync {}
    #expect(failed.recorded == [100, 100, 100, 128, 128, 128, 600, 600, 600])
    let copy = try await client.copyData(from: folder)
    defer { copy.remove() }
    await client.close()
    let second = try Client.persistent(in: copy, namespace: "depths")
    second.database.goOffline()
    await second.waitForRequests()
    #expect(await second.pendingWriteCount() == 2 + 2 * 4)
    #expect(second.database.persistenceError == nil)
    await second.close()
  }

  @Test("a transaction whose result is too deep for every server fails")
  func deepTransaction() async throws {
    let client = try Client.offline()
    var value: Any = 1
    for _ in 0..<100 { value = ["x": value] }
    nonisolated(unsafe) let deep = value
    let error = await #expect(throws: NSError.self) {
      try await within {
        _ = try await client.ref.child("t").runTransactionBlock { data in
          data.value = deep
          return .success(withValue: data)
        }
      }
    }
    #expect(error?.localizedDescription.contains("levels deep") == true)
    await client.close()
  }

  // MARK: Repairs

  private static func contents(_ list: Int64, _ writes: [OutgoingWrite]) -> StorageContents {
    StorageContents(
      writes: writes,
      queries: [
        ("list", .default, CacheNode(node: .leaf(.int(list)), isComplete: true, isFiltered: false))
      ])
  }

  @Test("when one sync of a repair fails, the next attempt stores everything", arguments: 0..<6)
  func failingSync(position: Int) throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let disk = FailingDisk(folder)
    let fixture = StorageFixture(folder, sync: disk.sync)
    let source = TestSource()
    let put = CacheRecoveryTests.write(3)
    source.storageContents = CacheRecoveryTests.contents(5, [put])
    fixture.storage.source = source
    _ = fixture.storage.restore()
    fixture.storage.activate(.default, at: "list")
    disk.setFailingSuffixes("-wal")
    fixture.storage.append(put)
    fixture.storage.commit()
    fixture.storage.file?.sync.close()
    fixture.storage.retry()
    disk.setFailingSuffixes()
    disk.failOnce(after: position)
    fixture.storage.retry()
    fixture.storage.retry()
    #expect(fixture.storage.load(.default, at: "list").node == .leaf(.int(5)), "the file is used again")
    let later = CacheRecoveryTests.write(4)
    source.storageContents.writes.append(later)
    fixture.storage.append(later)
    fixture.storage.commit()
    fixture.storage.close()
    #expect(fixture.codes == [CachePersistenceError.unsynced.rawValue])
    let reopened = StorageFixture(folder)
    #expect(reopened.storage.restore().map(\.id) == [3, 4])
    reopened.storage.close()
  }

  @Test("on a full disk a damaged file is kept until a new file has everything")
  func damageOnFullDisk() throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let disk = FailingDisk(folder)
    let fixture = StorageFixture(folder, sync: disk.sync)
    let source = TestSource()
    let put = CacheRecoveryTests.write(3)
    source.storageContents = CacheRecoveryTests.contents(5, [put])
    fixture.storage.source = source
    _ = fixture.storage.restore()
    fixture.storage.append(put)
    fixture.storage.activate(.default, at: "list")
    // The trigger simulates damage that SQLite finds when it empties the table.
    fixture.storage.withDatabase { db in
      try db.execute(
        sql: "CREATE TRIGGER t BEFORE DELETE ON tracked_queries BEGIN SELECT RAISE(ABORT, 'damage'); END")
    }
    fixture.storage.commit()
    fixture.storage.withDatabase { try $0.execute(sql: "PRAGMA max_page_count = 20") }
    fixture.storage.commit()
    let large = CacheRecoveryTests.write(4, bytes: 400_000)
    source.storageContents.writes.append(large)
    fixture.storage.append(large)
    fixture.storage.commit()
    #expect(fixture.codes == [CachePersistenceError.unusable.rawValue])
    disk.setFailingSuffixes(".new")
    for _ in 0..<3 { fixture.storage.retry() }
    #expect(fixture.codes.contains(CachePersistenceError.damaged.rawValue))
    #expect(!FileManager.default.fileExists(atPath: folder.file.path + ".damaged"))
    disk.setFailingSuffixes()
    fixture.storage.retry()
    #expect(FileManager.default.fileExists(atPath: folder.file.path + ".damaged"))
    #expect(fixture.storage.load(.default, at: "list").node == .leaf(.int(5)))
    fixture.storage.close()
    let reopened = StorageFixture(folder)
    #expect(reopened.storage.restore().map(\.id) == [3, 4])
    reopened.storage.close()
  }

  @Test("the repaired file contains the change that could not be stored")
  func failedCall() throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let fixture = StorageFixture(folder)
    let source = TestSource()
    source.storageContents = CacheRecoveryTests.contents(5, [])
    fixture.storage.source = source
    _ = fixture.storage.restore()
    fixture.storage.activate(.default, at: "list")
    fixture.storage.store(.leaf(.int(5)), at: "list", query: .default, replacing: nil)
    fixture.storage.commit()
    fixture.storage.withDatabase { db in
      try db.execute(
        sql: "CREATE TRIGGER t BEFORE INSERT ON server_values BEGIN SELECT RAISE(ABORT, 'damage'); END")
    }
    fixture.storage.commit()
    // The sync tree (the client's cache in memory) also changes the storage first, and then the views.
    fixture.storage.store(.leaf(.int(6)), at: "list", query: .default, replacing: .leaf(.int(5)))
    source.storageContents = CacheRecoveryTests.contents(6, [])
    fixture.storage.commit()
    fixture.storage.retry()
    #expect(fixture.storage.load(.default, at: "list").node == .leaf(.int(6)))
    fixture.storage.close()
    let reopened = StorageFixture(folder)
    _ = reopened.storage.restore()
    #expect(reopened.storage.load(.default, at: "list").node == .leaf(.int(6)))
    reopened.storage.close()
  }

  // MARK: Newer and older data

  @Test("loading a filtered query uses its window or the unfiltered query's data, whichever is newer")
  func newerData() throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let fixture = StorageFixture(folder)
    let storage = fixture.storage
    let query = QuerySpec(ordering: .key, limit: .last(2))
    func list(_ keys: String...) -> Node { .object(keys.map { (ChildKey($0), .leaf(.int(1))) }) }
    _ = storage.restore()
    storage.activate(.default, at: "list")
    storage.store(list("a", "b", "c"), at: "list", query: .default, replacing: nil)
    storage.deactivate(.default, at: "list")
    // Another client removes "b" before the filtered query is observed.
    storage.activate(query, at: "list")
    storage.setWindow(["b", "c"], of: query, at: "list")
    storage.store(list("a", "c"), at: "list", query: query, replacing: nil)
    storage.updateWindow(adding: ["a"], removing: ["b"], of: query, at: "list")
    #expect(storage.load(query, at: "list").node == list("a", "c"))
    storage.deactivate(query, at: "list")
    // Later "d" is added, while the default query is observed.
    storage.activate(.default, at: "list")
    storage.store(list("a", "c", "d"), at: "list", query: .default, replacing: nil)
    storage.deactivate(.default, at: "list")
    let loaded = storage.load(query, at: "list")
    #expect(loaded.isComplete && loaded.node.window(query) == list("c", "d"))
    storage.close()
    #expect(String(decoding: TrackedQueryTable.defaultForm, as: UTF8.self) == "{}")
  }

  @Test("a filtered query that lost a child of its window is incomplete, unless all data is cached")
  func windowWithoutChild() throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let storage = StorageFixture(folder).storage
    let query = QuerySpec(ordering: .key, limit: .last(2))
    func list(_ keys: String...) -> Node { .object(keys.map { (ChildKey($0), .leaf(.int(1))) }) }
    _ = storage.restore()
    for (place, isCovered) in [("covered", true), ("other", false), ("written", false)] {
      let path = Path(place)
      if isCovered {
        storage.activate(.default, at: path)
        storage.store(list("a", "b", "c"), at: path, query: .default, replacing: nil)
        storage.deactivate(.default, at: path)
      }
      storage.activate(query, at: path)
      storage.store(list("b", "c"), at: path, query: query, replacing: nil)
      storage.setWindow(["b", "c"], of: query, at: path)
      storage.deactivate(query, at: path)
      #expect(storage.load(query, at: path).isComplete)
    }
    // Another client removes a child while only that child is observed.
    for place in ["covered", "other"] {
      let child = Path("\(place)/c")
      storage.activate(.default, at: child)
      storage.store(.empty, at: child, query: .default, replacing: nil)
    }
    let loaded = storage.load(query, at: "covered")
    #expect(loaded.isComplete && !loaded.isFiltered && loaded.node == list("a", "b"))
    #expect(!storage.load(query, at: "other").isComplete)
    storage.append(OutgoingWrite(id: 1, path: "written/d", change: .put(.leaf(.int(1)), hash: nil)))
    storage.updateWindow(adding: ["d"], removing: ["b"], of: query, at: "written")
    #expect(storage.load(query, at: "written").isComplete)
    storage.close()
  }

  @Test("observing a path with more levels than a stored value can have does not damage the cache")
  func deepObservation() throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let fixture = StorageFixture(folder)
    _ = fixture.storage.restore()
    let deep = Path(keys: Array(repeating: "x", count: 600))
    fixture.storage.activate(.default, at: deep)
    fixture.storage.store(.empty, at: deep, query: .default, replacing: nil)
    #expect(!fixture.storage.load(.default, at: "x").isComplete)
    #expect(fixture.codes.isEmpty)
    fixture.storage.close()
  }
}
