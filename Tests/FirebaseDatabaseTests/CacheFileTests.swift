// Tests the cache file: damage, foreign files, versions, locks, pruning, and a comparison of its value table with a
// model. The window of a filtered query is the set of children in its last result.

import FirebaseCore
import Foundation
import GRDB
import Locking
import RealtimeModel
import Testing

@testable import FirebaseDatabase

/// A storage with a clock that the test advances.
final class StorageFixture {
  let storage: DiskStorage
  let folder: DataFolder
  let errors = Guarded<[NSError]>([])
  var time: Int64 = 0

  init(
    _ folder: DataFolder, maximumBytes: Int = 100 << 20, sync: @escaping LogSync.Sync = LogSync.sync
  ) {
    self.folder = folder
    let clock = Guarded<Int64>(0)
    let errors = errors
    self.clock = clock
    storage = DiskStorage(
      url: folder.file, policy: CachePolicy(maximumBytes: maximumBytes), now: { clock.withLock { $0 } },
      sync: sync, report: { error in errors.withLock { $0.append(error) } })
  }

  private let clock: Guarded<Int64>

  func advance() { clock.withLock { $0 += 1 } }

  var codes: [Int] { errors.withLock { $0.map(\.code) } }

  /// Whether a location's data is complete in the file.
  func isComplete(_ path: Path, _ query: QuerySpec = .default) -> Bool {
    storage.load(query, at: path).isComplete
  }
}

@Suite("Cache file", .timeLimit(.minutes(10)))
struct CacheFileTests {
  private static let put = OutgoingWrite(id: 3, path: "a/b", change: .put(.leaf(.int(1)), hash: nil))

  // MARK: Damage

  @Test(
    "a file that is foreign, damaged or of a later version is replaced by an empty one, and the app gets an error"
  )
  func damagedFiles() throws {
    let cases: [(String, (URL) throws -> Void)] = [
      ("text", { try Data("not a database, but a long text that is one".utf8).write(to: $0) }),
      (
        "a database of another program",
        { url in
          try DatabaseQueue(path: url.path).inDatabase { try $0.execute(sql: "CREATE TABLE t (x)") }
        }
      ),
      (
        "a later version",
        { url in
          let file = try CacheFile.open(url)
          try file.queue.inDatabase { try $0.execute(sql: "PRAGMA user_version = 99") }
          file.close()
        }
      ),
      (
        "a torn file",
        { url in
          let file = try CacheFile.open(url)
          file.close()
          let data = try Data(contentsOf: url)
          try data.prefix(5_000).write(to: url)
        }
      ),
    ]
    for (name, make) in cases {
      let folder = try DataFolder()
      defer { folder.remove() }
      try make(folder.file)
      let fixture = StorageFixture(folder)
      #expect(fixture.storage.restore().isEmpty, "\(name)")
      fixture.storage.append(CacheFileTests.put)
      fixture.storage.commit()
      fixture.storage.close()
      #expect(fixture.codes == [CachePersistenceError.damaged.rawValue], "\(name)")
      #expect(FileManager.default.fileExists(atPath: folder.file.path + ".damaged"), "\(name)")
      let reopened = StorageFixture(folder)
      #expect(reopened.storage.restore().map(\.id) == [3], "\(name)")
      #expect(reopened.codes.isEmpty)
      reopened.storage.close()
    }
  }

  @Test(
    "a file with damaged bytes anywhere never stops the program, and later writes are stored",
    arguments: 0..<(ProcessInfo.processInfo.environment["HEARTH_DAMAGED_CACHES"].flatMap { UInt64($0) } ?? 60)
  )
  func damagedBytes(seed: UInt64) throws {
    var random = SplitMix(seed: seed)
    let folder = try DataFolder()
    defer { folder.remove() }
    let first = StorageFixture(folder)
    _ = first.storage.restore()
    for n in 0..<40 {
      first.storage.append(
        OutgoingWrite(id: n, path: Path("w/\(n)"), change: .merge([(Path("x"), .leaf(.int(1)))])))
      first.storage.activate(.default, at: Path("q/\(n)"))
      let value = Node.object([("v", .leaf(.string(String(repeating: "x", count: 200))))])
      first.storage.store(value, at: Path("q/\(n)"), query: .default, replacing: nil)
    }
    first.storage.close()
    var bytes = try Data(contentsOf: folder.file)
    for _ in 0..<Int.random(in: 1...40, using: &random) {
      bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
    }
    try bytes.write(to: folder.file)
    let second = StorageFixture(folder)
    let source = TestSource()
    second.storage.source = source
    _ = second.storage.restore()
    for n in 0..<40 {
      _ = second.storage.load(.default, at: Path("q/\(n)"))
      second.storage.store(.leaf(.int(Int64(n))), at: Path("q/\(n)"), query: .default, replacing: nil)
      second.storage.commit()
    }
    let write = OutgoingWrite(id: 100, path: "last", change: .put(.leaf(.int(1)), hash: nil))
    source.storageContents.writes.append(write)
    second.storage.append(write)
    second.storage.close()
    let third = StorageFixture(folder)
    let restored = third.storage.restore().map(\.id)
    // SQLite may detect damage only when it reads the damaged page. The damaged file is then replaced by a
    // new file with the client's pending writes.
    #expect(restored.contains(100) || !third.codes.isEmpty, "seed \(seed)")
    third.storage.close()
  }

  @Test(
    "a file that is damaged while open is replaced by a file with the pending writes and the observed data"
  )
  func damageWhileOpen() throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let fixture = StorageFixture(folder)
    let source = TestSource()
    source.storageContents = StorageContents(
      writes: [CacheFileTests.put],
      queries: [("list", .default, CacheNode(node: .leaf(.int(5)), isComplete: true, isFiltered: false))])
    fixture.storage.source = source
    _ = fixture.storage.restore()
    fixture.storage.activate(.default, at: "list")
    fixture.storage.commit()
    // A value that is not JSON.
    let path = RowPath.encode("bad").data
    fixture.storage.withDatabase { db in
      try db.execute(
        sql: "INSERT INTO server_values VALUES (?, ?)", arguments: [path, Data("{".utf8)])
      try TrackedQueryTable(db: db, now: 0).addComplete(.default, at: "bad")
    }
    #expect(!fixture.storage.load(.default, at: "bad").isComplete)
    #expect(fixture.codes == [CachePersistenceError.damaged.rawValue])
    #expect(source.retries == [0])
    fixture.storage.retry()
    #expect(fixture.storage.load(.default, at: "list").node == .leaf(.int(5)))
    fixture.storage.close()
    let reopened = StorageFixture(folder)
    #expect(reopened.storage.restore().map(\.id) == [3])
    reopened.storage.close()
  }

  @Test("a storage whose file is in use reports an error and continues in memory")
  func secondUser() throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let first = StorageFixture(folder)
    _ = first.storage.restore()
    let second = StorageFixture(folder)
    #expect(second.storage.restore().isEmpty)
    #expect(second.codes == [CachePersistenceError.inUse.rawValue])
    second.storage.append(CacheFileTests.put)
    second.storage.commit()
    first.storage.append(OutgoingWrite(id: 1, path: "a", change: .put(.leaf(.int(2)), hash: nil)))
    first.storage.close()
    let third = StorageFixture(folder)
    #expect(third.storage.restore().map(\.id) == [1])
    third.storage.close()
  }

  @Test("a storage whose folder cannot be created reports an error and continues in memory")
  func unusableFolder() throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    try Data("x".utf8).write(to: folder.url.appendingPathComponent("file"))
    let errors = Guarded<[NSError]>([])
    let storage = DiskStorage(
      url: folder.url.appendingPathComponent("file/cache.sqlite"), policy: CachePolicy(maximumBytes: 1 << 20),
      now: { 0 }, report: { error in errors.withLock { $0.append(error) } })
    #expect(storage.restore().isEmpty)
    storage.append(CacheFileTests.put)
    storage.commit()
    #expect(errors.withLock { $0.map(\.code) } == [CachePersistenceError.unusable.rawValue])
    #expect(errors.withLock { $0.first?.domain } == DatabasePersistenceErrorDomain)
  }

  @Test(
    "on a full disk the app gets one error, and storing is retried with growing delays until it succeeds"
  )
  func fullDisk() throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let fixture = StorageFixture(folder)
    let source = TestSource()
    fixture.storage.source = source
    _ = fixture.storage.restore()
    fixture.storage.withDatabase { try $0.execute(sql: "PRAGMA max_page_count = 30") }
    fixture.storage.commit()
    let text = Node.leaf(.string(String(repeating: "x", count: 4_000)))
    for id in 0..<60 {
      let write = OutgoingWrite(id: id, path: Path("list/\(id)"), change: .put(text, hash: nil))
      source.storageContents.writes.append(write)
      fixture.storage.append(write)
      fixture.storage.commit()
    }
    #expect(fixture.codes == [CachePersistenceError.unusable.rawValue])
    #expect(source.retries == [0], "only the core starts attempts, not the writes")
    for _ in 0..<3 { fixture.storage.retry() }
    #expect(source.retries == [0, 1_000, 2_000, 4_000])
    #expect(fixture.codes.count == 1)
    try fixture.storage.removePageLimit()
    fixture.storage.retry()
    fixture.storage.append(OutgoingWrite(id: 60, path: "last", change: .put(.leaf(.int(1)), hash: nil)))
    fixture.storage.commit()
    #expect(source.retries.count == 4)
    fixture.storage.close()
    let reopened = StorageFixture(folder)
    #expect(reopened.storage.restore().map(\.id) == Array(0...60))
    reopened.storage.close()
  }

  @Test("closing a storage after a failure stores its writes if the disk works again")
  func closeAfterFullDisk() throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let fixture = StorageFixture(folder)
    let source = TestSource()
    fixture.storage.source = source
    _ = fixture.storage.restore()
    fixture.storage.withDatabase { try $0.execute(sql: "PRAGMA max_page_count = 20") }
    fixture.storage.commit()
    let text = Node.leaf(.string(String(repeating: "x", count: 400_000)))
    source.storageContents.writes = [OutgoingWrite(id: 1, path: "a", change: .put(text, hash: nil))]
    fixture.storage.append(source.storageContents.writes[0])
    fixture.storage.commit()
    #expect(fixture.codes == [CachePersistenceError.unusable.rawValue])
    try fixture.storage.removePageLimit()
    fixture.storage.close()
    let reopened = StorageFixture(folder)
    #expect(reopened.storage.restore().map(\.id) == [1])
    reopened.storage.close()
  }

  @Test("a file that cannot be read at the start keeps its pending writes for a later run")
  func unreadableAtStart() throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let first = StorageFixture(folder)
    _ = first.storage.restore()
    first.storage.append(CacheFileTests.put)
    first.storage.activate(.default, at: "list")
    first.storage.close()
    // Marking the earlier queries as inactive fails for a reason other than damage.
    let file = try CacheFile.open(folder.file)
    try file.queue.inDatabase {
      try $0.execute(
        sql: "CREATE TRIGGER t BEFORE UPDATE ON tracked_queries BEGIN SELECT zeroblob(2000000000); END")
    }
    file.close()
    let second = StorageFixture(folder)
    let source = TestSource()
    second.storage.source = source
    #expect(second.storage.restore().isEmpty)
    #expect(second.codes == [CachePersistenceError.unusable.rawValue])
    let write = OutgoingWrite(id: 9, path: "later", change: .put(.leaf(.int(9)), hash: nil))
    source.storageContents.writes = [write]
    second.storage.append(write)
    second.storage.commit()
    second.storage.retry()
    second.storage.close()
    let repaired = try CacheFile.open(folder.file)
    try repaired.queue.inDatabase { try $0.execute(sql: "DROP TRIGGER t") }
    repaired.close()
    let third = StorageFixture(folder)
    #expect(third.storage.restore().map(\.id) == [3])
    third.storage.close()
  }

  // MARK: Versions

  @Test("a migration converts a file of an earlier version to the latest version and keeps its writes")
  func migration() throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let first = StorageFixture(folder)
    _ = first.storage.restore()
    first.storage.append(CacheFileTests.put)
    first.storage.close()
    let next: CacheSchema.Migration = {
      try $0.execute(sql: "ALTER TABLE pending_writes ADD COLUMN note TEXT")
    }
    let file = try CacheFile.open(folder.file, migrations: CacheSchema.migrations + [next])
    let (version, writes, notes) = try file.queue.inDatabase { db in
      (
        try Int.fetchOne(db, sql: "PRAGMA user_version"), try PendingWriteTable(db: db).load().writes,
        try Row.fetchAll(db, sql: "SELECT note FROM pending_writes").count
      )
    }
    #expect(version == CacheSchema.migrations.count + 1 && writes.map(\.id) == [3] && notes == 1)
    file.close()
    #expect(throws: CacheFailure.self) { try CacheFile.open(folder.file) }
  }

  @Test("a failing migration changes nothing")
  func failingMigration() throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let first = StorageFixture(folder)
    _ = first.storage.restore()
    first.storage.append(CacheFileTests.put)
    first.storage.close()
    let bad: CacheSchema.Migration = { db in
      try db.execute(sql: "DELETE FROM pending_writes")
      throw CacheFailure.unusable("no space")
    }
    #expect(throws: CacheFailure.self) {
      try CacheFile.open(folder.file, migrations: CacheSchema.migrations + [bad])
    }
    let reopened = StorageFixture(folder)
    #expect(reopened.storage.restore().map(\.id) == [3])
    reopened.storage.close()
  }

  // MARK: Queries

  @Test("at the start, queries of the previous run become inactive and their last use is the current time")
  func activity() throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let first = StorageFixture(folder)
    _ = first.storage.restore()
    first.storage.activate(.default, at: "a")
    first.storage.activate(QuerySpec(limit: .first(2)), at: "a")
    first.storage.close()
    let second = StorageFixture(folder)
    for _ in 0..<7 { second.advance() }
    _ = second.storage.restore()
    let rows = second.storage.withDatabase { db in
      try Row.fetchAll(db, sql: "SELECT is_active, last_use FROM tracked_queries").map {
        [$0[0], $0[1]] as [Int]
      }
    }
    #expect(rows == [[0, 7], [0, 7]])
    second.storage.close()
  }

  @Test("loading a filtered query returns the children in its window; children that left it stay stored")
  func windows() throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let fixture = StorageFixture(folder)
    let query = QuerySpec(ordering: .key, limit: .last(2))
    _ = fixture.storage.restore()
    fixture.storage.activate(query, at: "list")
    let window = Node.object([("b", .leaf(.int(2))), ("c", .leaf(.int(3)))])
    fixture.storage.store(window, at: "list", query: query, replacing: nil)
    fixture.storage.setWindow(["b", "c"], of: query, at: "list")
    fixture.storage.merge([("d", .leaf(.int(4)))], at: "list")
    fixture.storage.updateWindow(adding: ["d"], removing: ["b"], of: query, at: "list")
    let loaded = fixture.storage.load(query, at: "list")
    #expect(loaded.node == .object([("c", .leaf(.int(3))), ("d", .leaf(.int(4)))]))
    #expect(loaded.isComplete && loaded.isFiltered)
    let all = fixture.storage.load(.default, at: "list")
    #expect(!all.isComplete && all.node == loaded.node)
    fixture.storage.close()
  }

  // MARK: Pruning

  @Test(
    "after 1,000 updates, the least recently used 20 % are removed repeatedly until the size is allowed"
  )
  func pruneBySize() throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let fixture = StorageFixture(folder, maximumBytes: 1 << 20)
    _ = fixture.storage.restore()
    let value = Node.leaf(.string(String(repeating: "x", count: 2_000)))
    for n in 0..<1_000 {
      fixture.advance()
      fixture.storage.storeUnobserved(value, at: Path("d/\(n)"), query: .default)
    }
    fixture.storage.commit()
    #expect(fixture.isComplete("d/0"), "the size is not checked before 1,000 updates")
    fixture.storage.storeUnobserved(value, at: "d/last", query: .default)
    fixture.storage.commit()
    let size = fixture.storage.withDatabase { try $0.usedBytes() }
    #expect(try #require(size) <= 1 << 20)
    #expect(!fixture.isComplete("d/0") && fixture.isComplete("d/last") && fixture.isComplete("d/999"))
    let kept = (0..<1_000).filter { fixture.isComplete(Path("d/\($0)")) }
    #expect(kept == Array((1_000 - kept.count)..<1_000), "the most recently used remain")
    var rounds = [1_001]
    while let last = rounds.last, last > 1 { rounds.append(Int(Double(last) * 0.8)) }
    #expect(rounds.contains(kept.count + 1), "each round removes 20 %, and \(kept.count + 1) remain")
    fixture.storage.close()
  }

  @Test("at most 1,000 inactive queries remain; active queries and data below them are never removed")
  func pruneByCount() throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let fixture = StorageFixture(folder)
    _ = fixture.storage.restore()
    fixture.storage.storeUnobserved(
      .object([("y", .leaf(.int(1))), ("z", .leaf(.int(2)))]), at: "x", query: .default)
    fixture.storage.activate(.default, at: "x/y")
    fixture.storage.storeUnobserved(.leaf(.int(1)), at: "active/child", query: .default)
    fixture.storage.activate(.default, at: "active")
    for n in 0..<2_500 {
      fixture.advance()
      fixture.storage.storeUnobserved(.leaf(.int(1)), at: Path("d/\(n)"), query: .default)
    }
    fixture.storage.commit()
    let inactive = fixture.storage.withDatabase { try TrackedQueryTable(db: $0, now: 0).inactiveCount() }
    #expect(try #require(inactive) <= 1_000 + CachePolicy.updatesBetweenChecks)
    let rest = fixture.storage.withDatabase { db in
      (
        try ServerValueTable(db: db).node(at: "x"), try ServerValueTable(db: db).node(at: "active")
      )
    }
    #expect(rest?.0 == .object([("y", .leaf(.int(1)))]), "z was pruned, y is observed")
    #expect(rest?.1 == .object([("child", .leaf(.int(1)))]), "data below an active query stays")
    fixture.storage.close()
  }

  // MARK: Values

  @Test("after random writes the value table equals a node in memory", arguments: 0..<30)
  func valueModel(seed: UInt64) throws {
    var random = SplitMix(seed: seed)
    let folder = try DataFolder()
    defer { folder.remove() }
    let file = try CacheFile.open(folder.file)
    var model = Node.empty
    let paths: [Path] = [
      "a", "a/b", "a/b/c", "a/bb", "a/d/\u{1F600}", "a/.priority", "a/b/.priority", "e", "e/1", "e/10", "e/2",
      .root,
    ]
    func node() -> Node {
      switch Int.random(in: 0..<6, using: &random) {
      case 0: .empty
      case 1: .leaf(.int(Int64.random(in: -3..<9, using: &random)))
      case 2: .leaf(.string("s\u{0}\u{1}"), priority: .number(1.5))
      case 3:
        .object([
          ("b", .leaf(.bool(true))), ("1", .object([("x", .leaf(.double(0.1)))], priority: .string("p"))),
        ])
      case 4: .object([("c", .leaf(.int(2)))], priority: .string("q"))
      default: .object([("\u{0}k", .leaf(.int(1))), ("\u{1}", .leaf(.int(2)))])
      }
    }
    try file.queue.inDatabase { db in
      let table = ServerValueTable(db: db)
      for step in 0..<300 {
        let path = paths[Int.random(in: 0..<paths.count, using: &random)]
        let value = path.isPriority ? (Bool.random(using: &random) ? Node.empty : .leaf(.int(3))) : node()
        let before = model
        model = model.setting(path, to: value)
        if Bool.random(using: &random), case .children = before.content {
          try table.merge(model.differences(from: before), at: .root)
        } else {
          try table.overwrite(value, at: path)
        }
        #expect(try table.node(at: .root) == model, "seed \(seed), step \(step), \(path)")
        for path in paths where !path.isPriority {
          #expect(try table.node(at: path) == model.descendant(path), "seed \(seed), step \(step), \(path)")
        }
      }
    }
    file.close()
  }

  @Test("a stored write is read back unchanged, for every type of value", arguments: 0..<4)
  func writeForms(seed: UInt64) throws {
    let values: [Node] = [
      .empty, .leaf(.double(-0.1)), .leaf(.int(.max)), .leaf(.bool(false), priority: .number(-1)),
      .leaf(.deferred(.timestamp)), .leaf(.deferred(.increment(.double(2.5)))),
      .object(
        [("a", .leaf(.deferred(.timestamp))), ("10", .leaf(.string("é\u{1F600}")))], priority: .string("x")),
    ]
    let folder = try DataFolder()
    defer { folder.remove() }
    let fixture = StorageFixture(folder)
    _ = fixture.storage.restore()
    for (id, value) in values.enumerated() {
      let change: OutgoingWrite.Change =
        seed % 2 == 0 ? .put(value, hash: nil) : .merge([(Path("x/y"), value), (Path("z"), .leaf(.int(1)))])
      fixture.storage.append(OutgoingWrite(id: id, path: "p/q", change: change))
    }
    fixture.storage.close()
    let reopened = StorageFixture(folder)
    let restored = reopened.storage.restore()
    #expect(restored.map(\.id) == Array(values.indices))
    for (write, value) in zip(restored, values) {
      switch write.change {
      case .put(let node, _): #expect(node == value)
      case .merge(let changes):
        #expect(changes.count == 2 && changes[0].0 == "x/y" && changes[0].1 == value)
      }
    }
    reopened.storage.close()
  }
}

// SAFETY: `storageContents` is used only by the test's thread; `delays` has a lock.
/// Replaces the client, which provides the data for a new file: has the contents that a test sets, and records the
/// requested delays.
final class TestSource: StorageSource, @unchecked Sendable {
  var storageContents = StorageContents()
  private let delays = Guarded<[Int64]>([])
  /// The delays that the storage requested.
  var retries: [Int64] { delays.withLock { $0 } }

  func retryStorage(after delay: Int64) { delays.withLock { $0.append(delay) } }
}

extension DiskStorage {
  /// Runs a closure on the file's database.
  @discardableResult
  func withDatabase<Result>(_ work: (GRDB.Database) throws -> Result) -> Result? {
    perform(nil) { try work($0) }
  }

  /// Ends the simulation of a full disk.
  func removePageLimit() throws {
    try file?.queue.inDatabase { try $0.execute(sql: "PRAGMA max_page_count = 1000000") }
  }
}
