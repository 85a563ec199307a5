// Tests damaged rows: rows that no client wrote are reported as damage, the file is replaced, and nothing
// traps.

import FirestoreModel
import Foundation
import GRDB
import Testing

@testable import FirebaseFirestore

@Suite("Damaged rows", .timeLimit(.minutes(2))) struct DamagedRowTests {
  private let database = DatabaseName(project: "test")
  private let cache = CacheFixture(.disk)

  private func name(_ id: String) -> DocumentName {
    ParentName(rootOf: database).collection("c").document(id)
  }

  private var query: ClientQuery {
    ClientQuery(ModelQuery(parent: ParentName(rootOf: database), StructuredQuery(from: [.init("c")])))
  }

  /// Fills a cache with a document, a target and a queued write, and changes its file with SQL.
  private func makeFile(changedBy sql: String) throws {
    var store = LocalStore(persistence: try cache.open(database: database))
    let target = try store.allocate(query.target)
    var event = RemoteEvent(version: .init(microseconds: 1))
    event.documents[name("a")] = CachedDocument(
      found: name("a"), fields: ["v": .integer(1)], version: .init(microseconds: 1), createTime: .epoch)
    event.targetChanges[target.id] = TargetChange(resumeToken: [9], isCurrent: true, added: [name("a")])
    _ = try store.apply(event)
    _ = try store.write([Write(.update(name("b"), fields: [:]))], at: .epoch)
    store.persistence.close()
    let file = try DatabaseQueue(path: cache.file.path)
    try file.write { try $0.execute(sql: sql) }
    try file.close()
  }

  private var isFileRenamed: Bool {
    FileManager.default.fileExists(atPath: cache.folder.appendingPathComponent("damaged.sqlite").path)
  }

  @Test(
    "at the start, a counter that would overflow or that no client can reach is reported as damage",
    arguments: [
      "UPDATE batches SET number = 9223372036854775807", "UPDATE batches SET number = -1",
      "UPDATE targets SET number = 2147483647", "UPDATE targets SET number = 2147483646",
      "UPDATE targets SET number = 9223372036854775807", "UPDATE targets SET number = -3",
      "UPDATE counters SET value = 9223372036854775807 WHERE name = 'sequence'",
      "UPDATE counters SET value = -1 WHERE name = 'sequence'",
      "UPDATE counters SET value = 'many' WHERE name = 'sequence'",
    ])
  func counters(sql: String) throws {
    try makeFile(changedBy: sql)
    var store = LocalStore(persistence: try cache.open(database: database))
    defer { store.persistence.close() }
    #expect(isFileRenamed)
    #expect(store.persistence.allBatches.isEmpty)
    for id in ["x", "y"] {
      _ = try store.allocate(.document(name(id)))
      _ = try store.write([Write(.delete(name(id)))], at: .epoch)
    }
    #expect(store.persistence.allBatches.count == 2)
  }

  @Test(
    "a column with a value of another type is reported as damage when it is read",
    arguments: [
      "UPDATE documents SET version = 5", "UPDATE documents SET kind = 'x'",
      "UPDATE targets SET token = 1", "UPDATE targets SET sequence = x'01'",
      "UPDATE batches SET time = 7", "UPDATE batches SET writes = 1.5", "UPDATE overlays SET body = 3",
    ])
  func columns(sql: String) throws {
    try makeFile(changedBy: sql)
    var store = LocalStore(persistence: try cache.open(database: database))
    defer { store.persistence.close() }
    var failures: [PersistenceFailure] = []
    for _ in 0..<4 {
      do throws(PersistenceFailure) {
        _ = try store.allocate(query.target)
        _ = try store.execute(query, usePreviousResults: true)
        _ = try store.read(name("a"))
        _ = try store.read(name("b"))
        _ = try store.nextBatch(after: nil)
      } catch { failures.append(error) }
    }
    #expect(failures.count == 1 && failures.allSatisfy(\.isDamage))
    #expect(isFileRenamed)
  }

  @Test(
    "a row with the earliest or the latest possible time causes no error",
    arguments: ["x'000000000000000000000000'", "x'ffffffffffffffffffffffff'"])
  func extremeTimes(column: String) throws {
    try makeFile(
      changedBy: "UPDATE targets SET version = \(column), in_sync = \(column);"
        + " UPDATE documents SET version = \(column), created = \(column), read = \(column)")
    var engine = SyncEngine(persistence: try cache.open(database: database), seed: 1)
    defer { engine.store.persistence.close() }
    engine.enableNetwork()
    engine.listen(ListenerID(number: 1), to: query, options: .init())
    engine.write([Write(.update(name("a"), fields: [:]))], at: .epoch, completion: nil)
    engine.watchStreamOpened(1)
    let target = try #require(engine.listenTargets.keys.first)
    for version in [ModelTimestamp(microseconds: 5), ModelTimestamp(seconds: .max, nanoseconds: 0)] {
      engine.watchReceived(1, .target(.init(kind: .current, targets: [target])))
      engine.watchReceived(
        1, .target(.init(kind: .noChange, targets: [], resumeToken: [1], snapshotVersion: version)))
      engine.writeStreamOpened(1)
      engine.writeHandshakeDone(1)
      engine.writeAcknowledged(1, results: [WriteResult(updateTime: version)], commitTime: version)
    }
    #expect(engine.pipeline.isEmpty && !isFileRenamed)
  }

  @Test(
    "a transform's result that is nested too deeply makes the document unknown, and is not reported as damage"
  )
  func deepResult() throws {
    var store = LocalStore(persistence: try cache.open(database: database))
    defer { store.persistence.close() }
    let path = try ModelFieldPath(parsing: (0..<30).map { "f\($0)" }.joined(separator: "."))
    let write = Write(
      .update(name("a"), fields: [:]), mask: [],
      transforms: [.init(path, .increment(.integer(1)))])
    _ = try store.write([write, Write(.update(name("b"), fields: ["kept": .null]))], at: .epoch)
    let batch = try #require(try store.nextBatch(after: nil))
    // The maximum nesting of a message.
    var value = Value.null
    for _ in 0..<45 { value = .map(["m": value]) }
    let time = ModelTimestamp(microseconds: 5)
    _ = try store.acknowledge(
      batch,
      results: [WriteResult(updateTime: time, transformResults: [value]), WriteResult(updateTime: time)],
      commitTime: time)
    #expect(try store.read(name("a")).isUnknown)
    #expect(try store.read(name("b")).fields == ["kept": .null])
    _ = try store.execute(query, usePreviousResults: true)
    #expect(!isFileRenamed)
  }

  @Test("a write to a collection whose ID begins with a combining character can be read after a restart")
  func combiningCharacter() throws {
    let document = ParentName(rootOf: database).collection("\u{301}c").document("\u{301}d")
    var store = LocalStore(persistence: try cache.open(database: database))
    _ = try store.write([Write(.update(document, fields: ["n": .integer(1)]))], at: .epoch)
    store.persistence.close()
    var reopened = LocalStore(persistence: try cache.open(database: database))
    defer { reopened.persistence.close() }
    #expect(try reopened.read(document).fields["n"] == .integer(1))
    #expect(try reopened.nextBatch(after: nil)?.documents == [document])
    #expect(!isFileRenamed)
  }
}
