// Tests the disk cache: it survives restarts, failures and damage, and only one process can use it. An overlay is the
// effect of the queued writes on one document.

import FirebaseCore
import FirestoreModel
import Foundation
import GRDB
import Testing

@testable import FirebaseFirestore

/// Declared outside the suite, because the suite has a different function `open`.
private func openForReadingAndWriting(_ path: String) -> Int32 { open(path, O_RDWR) }

private let database = DatabaseName(project: "test")

private func name(_ id: String) -> DocumentName {
  ParentName(rootOf: database).collection("c").document(id)
}

private func document(_ id: String, _ fields: MapValue = ["v": .integer(1)], at version: Int64 = 1)
  -> CachedDocument
{
  CachedDocument(found: name(id), fields: fields, version: .init(microseconds: version), createTime: .epoch)
}

private let query = ClientQuery(
  ModelQuery(parent: ParentName(rootOf: database), StructuredQuery(from: [.init("c")])))

private func event(_ documents: [CachedDocument], at version: Int64, target: TargetID? = nil) -> RemoteEvent {
  var event = RemoteEvent(version: .init(microseconds: version))
  for document in documents { event.documents[document.name] = document }
  if let target {
    event.targetChanges[target] = TargetChange(
      resumeToken: [9], isCurrent: true, added: Set(documents.map(\.name)))
  }
  return event
}

@Suite("Disk cache", .timeLimit(.minutes(5))) struct DiskCacheTests {
  private let cache = CacheFixture(.disk)

  private func open() throws -> LocalStore { LocalStore(persistence: try cache.open(database: database)) }

  @Test("documents, targets, writes, overlays and bundles survive a restart")
  func restart() throws {
    var store = try open()
    let everything: MapValue = [
      "null": .null, "bool": .boolean(true), "int": .integer(-5), "double": .double(.nan),
      "text": .string("ü\u{0}"),
      "time": .timestamp(.init(seconds: -1, nanoseconds: 999_999_000)), "bytes": .bytes([0, 255]),
      "place": .geoPoint(.init(latitude: 1, longitude: -2)),
      "list": .array([.integer(1), .map(["a": .null])]),
      "vector": .vector([1, 2.5]), "reference": .reference(name("other")),
    ]
    let target = try store.allocate(query.target)
    _ = try store.apply(event([document("a", everything, at: 7)], at: 10, target: target.id))
    try store.recordView(target: target.id, shows: [name("a")], hides: [], fromCache: false)
    let patch = Write(
      .update(name("a"), fields: ["int": .integer(6)]), mask: [.init(field: "int")],
      transforms: [
        .init(.init(field: "at"), .serverTimestamp), .init(.init(field: "n"), .increment(.integer(2))),
      ],
      precondition: .exists(true))
    _ = try store.write([patch, Write(.delete(name("b")))], at: .init(seconds: 99))
    let before = try store.read(name("a"))
    let batch = try store.nextBatch(after: nil)
    let bundle = BundleMetadata(
      id: "b", version: 1, createTime: .init(seconds: 3), totalDocuments: 0, totalBytes: 0)
    let named = NamedQuery(
      name: "q", query: ModelQuery(parent: ParentName(rootOf: database), StructuredQuery(from: [.init("c")])),
      isLimitToLast: true, readTime: .init(seconds: 4))
    _ = try store.apply(Bundle(metadata: bundle, queries: [named], documents: [:], documentsOfQuery: [:]))
    store.persistence.close()

    var reopened = try open()
    defer { reopened.persistence.close() }
    #expect(try reopened.read(name("a")) == before)
    #expect(before.hasLocalChanges && before.fields["int"] == .integer(6))
    #expect(try reopened.nextBatch(after: nil) == batch)
    #expect(try reopened.lastRemoteVersion() == .init(microseconds: 10))
    let data = try reopened.allocate(query.target)
    #expect(
      data.id == target.id && data.resumeToken == [9] && data.snapshotVersion == .init(microseconds: 10))
    #expect(data.lastLimboFreeVersion == .init(microseconds: 10))
    #expect(try reopened.execute(query, usePreviousResults: true).remoteKeys == [name("a")])
    #expect(try reopened.allocate(.document(name("z"))).id > data.id)
    #expect(try reopened.hasBundle(asNewAs: bundle))
    #expect(try reopened.namedQuery("q") == named)
    #expect(try reopened.write([Write(.delete(name("c")))], at: .epoch).batch > (batch?.id ?? 0))
  }

  @Test("a write to an invalid name is queued, and a write with a reference to an invalid name is rejected")
  func invalidNames() throws {
    var store = try open()
    for id in ["__reserved__", ".", "..", String(repeating: "x", count: 2_000), "a\u{0}b"] {
      _ = try store.write(
        [Write(.update(name(id), fields: ["v": .null])), Write(.delete(name(id)))], at: .epoch)
    }
    let before = store.persistence.allBatches
    #expect {
      try store.write([Write(.update(name("a"), fields: ["r": .reference(name("__r__"))]))], at: .epoch)
    } throws: { ($0 as? PersistenceFailure)?.error.code == .invalidArgument }
    store.persistence.close()
    var reopened = try open()
    defer { reopened.persistence.close() }
    #expect(reopened.persistence.allBatches == before && before.count == 5)
    #expect(try reopened.read(name("__reserved__")).hasLocalChanges)
  }

  @Test("each user has a queue of writes, which survives a restart")
  func queuesOfUsers() throws {
    var store = try open()
    for user in ["ann", nil, "bob"] as [UserID] {
      _ = try store.switchUser(to: user)
      _ = try store.write(
        [Write(.update(name("x"), fields: ["by": .string(user ?? "nobody")]))], at: .epoch)
    }
    store.persistence.close()
    var reopened = try open()
    defer { reopened.persistence.close() }
    for user in ["bob", "ann", nil] as [UserID] {
      let changes = try reopened.switchUser(to: user)
      #expect(changes[name("x")]?.fields["by"] == .string(user ?? "nobody"))
      #expect(reopened.persistence.allBatches.count == 1)
    }
    _ = try reopened.switchUser(to: "carl")
    #expect(try !reopened.read(name("x")).isKnown)
  }

  @Test("after a kill the cache has every committed transaction, and no part of an uncommitted one")
  func kill() throws {
    var store = try open()
    _ = try store.write([Write(.update(name("kept"), fields: [:]))], at: .epoch)
    // A kill leaves an open transaction and a log that was never checkpointed.
    try store.persistence.begin(.writeLocally)
    _ = store.persistence.addBatch(at: .epoch, base: [], writes: [Write(.delete(name("lost")))])
    let copy = CacheFixture(.disk)
    try FileManager.default.copyItem(at: cache.folder, to: copy.folder)
    store.persistence.close()
    var reopened = LocalStore(persistence: try copy.open(database: database))
    defer { reopened.persistence.close() }
    #expect(reopened.persistence.allBatches.map(\.documents) == [[name("kept")]])
    #expect(try reopened.read(name("kept")).hasLocalChanges)
  }

  @Test(
    "a damaged file is renamed and replaced by an empty cache",
    arguments: [0, 24, 100, 4_096, 9_000, 20_000])
  func damage(offset: Int) throws {
    var store = try open()
    let target = try store.allocate(query.target)
    _ = try store.apply(event((0..<200).map { document("d\($0)") }, at: 1, target: target.id))
    store.persistence.close()
    var bytes = try Data(contentsOf: cache.file)
    for index in offset..<min(offset + 600, bytes.count) {
      bytes[index] = UInt8(truncatingIfNeeded: index &* 37)
    }
    try bytes.write(to: cache.file)

    // Each operation succeeds or throws. After at most one failure because of damage, all operations succeed.
    var reopened = try open()
    var failures = 0
    for _ in 0..<4 {
      do throws(PersistenceFailure) {
        _ = try reopened.execute(query, usePreviousResults: false)
        _ = try reopened.apply(event([document("new", at: 5)], at: 5))
        _ = try reopened.write([Write(.delete(name("d1")))], at: .epoch)
      } catch {
        failures += 1
        #expect(error.isDamage)
        #expect(error.error.code == .dataLoss)
      }
    }
    #expect(failures <= 1)
    #expect(try reopened.read(name("new")).isFound)
    reopened.persistence.close()
  }

  @Test("random damage of the file or its log never stops the program", arguments: 0..<4)
  func randomDamage(seed: UInt64) throws {
    var random = SplitMix(seed: seed)
    var store = try open()
    store.createsIndexes = false
    let index = FieldIndex(collectionID: "c", segments: [.init(field: .init(field: "v"), kind: .value)])
    try store.configure(Set([index].compactMap { $0 }))
    let target = try store.allocate(query.target)
    _ = try store.apply(
      event((0..<100).map { document("d\($0)", ["v": .integer(Int64($0))]) }, at: 1, target: target.id))
    for n in 0..<40 { _ = try store.write([Write(.update(name("d\(n)"), fields: ["w": .null]))], at: .epoch) }
    // Damages the log of a killed process, and the file after a checkpoint.
    let killed = cache.folder.appendingPathComponent("killed")
    try FileManager.default.createDirectory(at: killed, withIntermediateDirectories: true)
    let names = ["cache.sqlite", "cache.sqlite-wal"]
    for name in names {
      try FileManager.default.copyItem(
        at: cache.folder.appendingPathComponent(name), to: killed.appendingPathComponent(name))
    }
    store.persistence.close()
    for round in 0..<20 {
      let copy = CacheFixture(.disk)
      try FileManager.default.createDirectory(at: copy.folder, withIntermediateDirectories: true)
      let source = round.isMultiple(of: 2) ? killed : cache.folder
      for name in names {
        guard var bytes = try? Data(contentsOf: source.appendingPathComponent(name)), !bytes.isEmpty else {
          continue
        }
        for _ in 0..<Int.random(in: 1...6, using: &random) {
          let start = Int.random(in: 0..<bytes.count, using: &random)
          let end = min(start + ([1, 4, 64, 512].randomElement(using: &random) ?? 1), bytes.count)
          for offset in start..<end { bytes[offset] = UInt8.random(in: 0...255, using: &random) }
        }
        if Int.random(in: 0..<6, using: &random) == 0 {
          bytes.removeLast(Int.random(in: 0..<bytes.count, using: &random))
        }
        try bytes.write(to: copy.folder.appendingPathComponent(name))
      }
      var damaged = LocalStore(persistence: try copy.open(database: database))
      for _ in 0..<3 { try? DiskCacheTests.useEverything(&damaged) }
      // A few failures may replace the file. After that, everything works.
      #expect(throws: Never.self) { try DiskCacheTests.useEverything(&damaged) }
      damaged.persistence.close()
    }
  }

  private static func useEverything(_ store: inout LocalStore) throws {
    var structured = StructuredQuery(
      from: [.init("c")], orderBy: [.init(.init(field: "v"), .ascending)], limit: 3)
    _ = try store.execute(
      ClientQuery(ModelQuery(parent: ParentName(rootOf: database), structured)), usePreviousResults: true)
    structured.limit = nil
    _ = try store.execute(
      ClientQuery(ModelQuery(parent: ParentName(rootOf: database), structured)), usePreviousResults: true)
    _ = try store.execute(query, usePreviousResults: true)
    let target = try store.allocate(query.target)
    _ = try store.apply(event([document("new", at: 50)], at: 50, target: target.id))
    _ = try store.write([Write(.update(name("d1"), fields: ["x": .integer(1)]))], at: .epoch)
    while let batch = try store.nextBatch(after: nil) { _ = try store.reject(batch) }
    _ = try store.switchUser(to: "ann")
    _ = try store.switchUser(to: nil)
    try store.release(target.id)
    try store.collectGarbage(above: 0, share: 0.5)
    _ = try store.read(name("new"))
  }

  @Test("a file that is not a cache or has a newer version is renamed and replaced")
  func foreignFiles() throws {
    try FileManager.default.createDirectory(at: cache.folder, withIntermediateDirectories: true)
    try Data(
      "This is no database. It is longer than the header of one, which has a hundred bytes or so.".utf8
    )
    .write(to: cache.file)
    var store = try open()
    _ = try store.write([Write(.delete(name("a")))], at: .epoch)
    store.persistence.close()
    let renamed = cache.folder.appendingPathComponent("damaged.sqlite").path
    #expect(FileManager.default.fileExists(atPath: renamed))
    let newer = try DatabaseQueue(path: cache.file.path)
    try newer.write { try $0.execute(sql: "PRAGMA user_version = 1000") }
    try newer.close()
    store = try open()
    #expect(store.persistence.allBatches.isEmpty)
    store.persistence.close()
  }

  @Test(
    "if one change of a group cannot be stored, no change of the group applies, neither on disk nor in memory"
  )
  func failedGroup() throws {
    var store = try open()
    let target = try store.allocate(query.target)
    _ = try store.apply(event([document("a")], at: 1, target: target.id))
    let persistence = try #require(store.persistence as? DiskPersistence)
    persistence.use { try $0.execute(sql: "PRAGMA max_page_count = 1") }
    var large = document("big", at: 9)
    large.contents = .found(["text": .string(String(repeating: "x", count: 1 << 20))])
    do throws(PersistenceFailure) {
      _ = try store.apply(event([large], at: 9, target: target.id))
      Issue.record("the file grew")
    } catch {
      #expect(!error.isDamage && error.error.code == .unavailable && error.operation == .applyRemoteEvent)
    }
    #expect(try store.lastRemoteVersion() == .init(microseconds: 1))
    #expect(store.targets[target.id]?.snapshotVersion == .init(microseconds: 1))
    persistence.use { try $0.execute(sql: "PRAGMA max_page_count = 1000000") }
    _ = try store.apply(event([large], at: 9, target: target.id))
    #expect(try store.read(name("big")).isFound)
    store.persistence.close()
  }

  @Test(
    "a bundle that cannot be stored changes no target, and the targets that were allocated for it are released"
  )
  func failedBundle() throws {
    var store = try open()
    defer { store.persistence.close() }
    let listened = try store.allocate(query.target)
    func bundle(_ queries: [String], _ document: CachedDocument, at time: Int64)
      -> FirebaseFirestore.Bundle
    {
      let metadata = BundleMetadata(
        id: "b", version: 1, createTime: .init(seconds: time), totalDocuments: 1, totalBytes: 1)
      let named = queries.map { collection in
        NamedQuery(
          name: collection,
          query: ModelQuery(
            parent: ParentName(rootOf: database), StructuredQuery(from: [.init(collection)])),
          isLimitToLast: false, readTime: .init(seconds: time))
      }
      return FirebaseFirestore.Bundle(
        metadata: metadata, queries: named, documents: [document.name: document], documentsOfQuery: [:])
    }
    _ = try store.apply(bundle(["c"], document("a"), at: 4))
    #expect(store.targets[listened.id]?.snapshotVersion == .init(seconds: 4))
    let before = store.targets
    let persistence = try #require(store.persistence as? DiskPersistence)
    persistence.use { try $0.execute(sql: "PRAGMA max_page_count = 1") }
    let large = document("big", ["text": .string(String(repeating: "x", count: 1 << 20))], at: 9)
    do throws(PersistenceFailure) {
      _ = try store.apply(bundle(["c", "other"], large, at: 9))
      Issue.record("the file grew")
    } catch {
      #expect(error.operation == .useBundle)
    }
    #expect(store.targets == before)
    persistence.use { try $0.execute(sql: "PRAGMA max_page_count = 1000000") }
    _ = try store.apply(bundle(["c", "other"], large, at: 9))
    #expect(store.targets[listened.id]?.snapshotVersion == .init(seconds: 9))
  }

  // SQLite syncs the header of a new log, so the first write would wait for the disk.
  @Test("reads after a start write nothing")
  func readsAfterStart() throws {
    var store = try open()
    _ = try store.apply(event([document("a"), document("b")], at: 1))
    store.persistence.close()
    var reopened = try open()
    let log = cache.file.path + "-wal"
    func bytes() throws -> Int {
      guard FileManager.default.fileExists(atPath: log) else { return 0 }
      return try FileManager.default.attributesOfItem(atPath: log)[.size] as? Int ?? 0
    }
    let before = try bytes()
    #expect(try reopened.execute(query, usePreviousResults: true).documents.count == 2)
    #expect(try reopened.read(name("a")).isFound)
    #expect(try bytes() == before)
    _ = try reopened.allocate(query.target)
    #expect(try bytes() > before)
    reopened.persistence.close()
  }

  @Test("only the owner can read the cache, and only one client can open it")
  func ownership() throws {
    let store = try open()
    let folder = try FileManager.default.attributesOfItem(atPath: cache.folder.path)
    #expect(folder[.posixPermissions] as? Int == 0o700)
    for name in try FileManager.default.contentsOfDirectory(atPath: cache.folder.path) {
      let file = try FileManager.default.attributesOfItem(
        atPath: cache.folder.appendingPathComponent(name).path)
      #expect((file[.posixPermissions] as? Int ?? 0) & 0o077 == 0, "\(name)")
    }
    // Another process has its own table of open folders, so only the folder's lock can reject it.
    let descriptor = openForReadingAndWriting(cache.folder.appendingPathComponent("lock").path)
    #expect(descriptor >= 0)
    #expect(flock(descriptor, LOCK_EX | LOCK_NB) != 0)
    var persistence = store.persistence
    persistence.close()
    #expect(flock(descriptor, LOCK_EX | LOCK_NB) == 0)
    #expect { try open() } throws: { error in
      if case CacheFolderError.inUse = error { true } else { false }
    }
    close(descriptor)
    var next = try open()
    next.persistence.close()
  }

  @Test("garbage collection respects the maximum size and keeps documents in use")
  func garbage() throws {
    var store = try open()
    let text = Value.string(String(repeating: "x", count: 2_000))
    let old = try store.allocate(.document(name("d0")))
    _ = try store.apply(event((0..<500).map { document("d\($0)", ["t": text]) }, at: 1, target: old.id))
    try store.release(old.id)
    let used = try store.allocate(.document(name("kept")))
    _ = try store.apply(event([document("kept", ["t": text])], at: 2, target: used.id))
    _ = try store.write([Write(.delete(name("d1")))], at: .epoch)
    let size = store.persistence.approximateSize
    #expect(size > 1_000_000)
    try store.collectGarbage(above: size * 2, share: 1)
    #expect(try store.read(name("d2")).isFound)
    try store.collectGarbage(above: size / 2, share: 1)
    #expect(try !store.read(name("d2")).isKnown)
    #expect(try store.read(name("kept")).isFound)
    #expect(store.persistence.document(name("d1")).isFound, "the document has a pending write")
    #expect(store.persistence.target(.document(name("d0"))) == nil)
    #expect(store.persistence.approximateSize < size / 4)
    store.persistence.close()
  }
}
