// Tests the writes of commits: preconditions, masks, transforms, several writes to one document, and update times.

import Access
import FirestoreModel
import OrderedStore
import Testing

@testable import FirestoreEngine

@Suite("Writes", .timeLimit(.minutes(10))) struct WriteTests {
  let fixture: EngineFixture

  init() throws { fixture = try EngineFixture() }

  @Test("a document is created, replaced, merged and deleted")
  func setMergeDelete() async throws {
    try await fixture.set("c/d", ["a": 1, "b": ["x": true]])
    #expect(try await fixture.get("c/d") == ["a": 1, "b": ["x": true]])
    try await fixture.set("c/d", ["a": 2])
    #expect(try await fixture.get("c/d") == ["a": 2])
    let name = try fixture.name("c/d")
    let mask = [FieldPath(field: "b"), FieldPath(field: "a")]
    try await fixture.commit([Write(.update(name, fields: ["b": "new", "ignored": 1]), mask: mask)])
    #expect(try await fixture.get("c/d") == ["b": "new"])
    try await fixture.delete("c/d")
    #expect(try await fixture.get("c/d") == nil)
  }

  @Test("a write with an empty mask creates an empty document, and leaves an existing document unchanged")
  func emptyMask() async throws {
    let name = try fixture.name("c/d")
    let touch = Write(.update(name, fields: [:]), mask: [])
    let created = try await fixture.commit([touch])
    #expect(try await fixture.get("c/d") == [:])
    #expect(created.writeResults[0].updateTime == created.commitTime)
    try await fixture.set("c/d", ["a": 1])
    let before = try await fixture.engine.getDocument(name, as: .administrator).document
    let again = try await fixture.commit([touch])
    #expect(try await fixture.get("c/d") == ["a": 1])
    #expect(again.writeResults[0].updateTime == before.updateTime)
  }

  @Test("a write that changes nothing keeps the update time")
  func noOpKeepsUpdateTime() async throws {
    let first = try await fixture.set("c/d", ["a": 1])
    let second = try await fixture.set("c/d", ["a": 1])
    #expect(second.writeResults[0].updateTime == first.commitTime)
    let changed = try await fixture.set("c/d", ["a": 1.0])
    #expect(changed.writeResults[0].updateTime == changed.commitTime)
  }

  @Test("a document that a commit changes and changes back gets the commit's update time")
  func revertedWithinCommit() async throws {
    let name = try fixture.name("c/d")
    try await fixture.set("c/d", ["a": 1])
    let client = WatchClient()
    let stream = try await fixture.watch(client)
    stream.addTarget(WatchTarget(id: 2, fixture.selection(StructuredQuery(from: [.init("c")]))))
    stream.addTarget(WatchTarget(id: 4, fixture.selection(StructuredQuery(from: [.init("c")], limit: 1))))
    try await eventually("both targets are current") {
      client.view.current == [2, 4] && !client.view.snapshots.isEmpty
    }
    let committed = try await fixture.commit([
      Write(.update(name, fields: ["a": 2])), Write(.update(name, fields: ["a": 1])),
    ])
    let time = try #require(committed.commitTime)
    #expect(committed.writeResults.map(\.updateTime) == [time, time])
    let document = try await fixture.engine.getDocument(name, as: .administrator).document
    #expect(document.updateTime == time && document.createTime < time)
    // Clients wait for the update time of the write result.
    let seen = try await client.snapshot(at: time)
    #expect(seen[2]?["c/d"]?.updateTime == time)
    #expect(seen[4]?["c/d"]?.updateTime == time)
    #expect(client.view.violations.isEmpty)
    stream.close()
    #expect(try await fixture.check().isConsistent)
    try await fixture.commit([Write(.update(name, fields: ["a": 3]), precondition: .updateTime(time))])
    #expect(try await fixture.get("c/d") == ["a": 3])
  }

  @Test(
    "a stale update time as precondition is FAILED_PRECONDITION, a future update time is INVALID_ARGUMENT")
  func updateTimePreconditions() async throws {
    let fixture = try EngineFixture()
    let name = try fixture.name("c/d")
    let first = try #require(try await fixture.commit([Write(.update(name, fields: ["a": 1]))]).commitTime)
    try await fixture.set("c/d", ["a": 2])
    for operation in [.update(name, fields: ["a": 3]), .delete(name), .verify(name)] as [Write.Operation] {
      let past = await failure {
        try await fixture.commit([Write(operation, precondition: .updateTime(first))])
      }
      #expect(past?.code == .failedPrecondition)
      let time = Timestamp(microseconds: first.microseconds + 3_600_000_000)
      let future = await failure {
        try await fixture.commit([Write(operation, precondition: .updateTime(time))])
      }
      #expect(future?.code == .invalidArgument)
      #expect(future?.message.contains("lies in the future") == true)
    }
    #expect(try await fixture.get("c/d") == ["a": 2])
  }

  @Test("a document that is created again has a later create time")
  func recreatedDocument() async throws {
    let name = try fixture.name("c/d")
    try await fixture.set("c/d", ["a": 1])
    let first = try await fixture.engine.getDocument(name, as: .administrator).document
    #expect(first.createTime == first.updateTime)
    try await fixture.commit([Write(.delete(name)), Write(.update(name, fields: ["a": 1]))])
    let second = try await fixture.engine.getDocument(name, as: .administrator).document
    #expect(second.createTime > first.createTime)
  }

  @Test("failed preconditions return Firestore's codes and write nothing")
  func preconditions() async throws {
    let name = try fixture.name("c/d")
    let other = Write(.update(try fixture.name("c/other"), fields: ["a": 1]))
    func code(_ write: Write) async -> StatusCode? {
      await failure { try await fixture.commit([other, write]) }?.code
    }
    let update = Write(.update(name, fields: ["a": 1]), precondition: .exists(true))
    #expect(
      await failure { try await fixture.commit([other, update]) }
        == .notFound("No document to update: \(name)"))
    #expect(await code(Write(.delete(name), precondition: .exists(true))) == .notFound)
    #expect(await code(Write(.verify(name), precondition: .exists(true))) == .notFound)
    let stale = Precondition.updateTime(Timestamp(microseconds: 5))
    #expect(await code(Write(.update(name, fields: [:]), precondition: stale)) == .failedPrecondition)
    #expect(await code(Write(.delete(name), precondition: stale)) == .failedPrecondition)
    #expect(try await fixture.get("c/other") == nil)
    try await fixture.set("c/d", ["a": 1])
    let create = Write(.update(name, fields: ["a": 2]), precondition: .exists(false))
    #expect(
      await failure { try await fixture.commit([other, create]) }
        == .alreadyExists("Document already exists: \(name)"))
    #expect(await code(Write(.verify(name), precondition: .exists(false))) == .alreadyExists)
    #expect(try await fixture.get("c/other") == nil)
  }

  @Test("an update of a document that the same commit deletes is INVALID_ARGUMENT")
  func updateAfterDeletion() async throws {
    let name = try fixture.name("c/d")
    let writes = [
      Write(.delete(name)), Write(.update(name, fields: ["a": 2]), precondition: .exists(true)),
    ]
    for _ in 0..<2 {
      #expect(await failure { try await fixture.commit(writes) }?.code == .invalidArgument)
      try await fixture.set("c/d", ["a": 1])
    }
    #expect(try await fixture.get("c/d") == ["a": 1])
    // A write between the deletion and the update recreates the document.
    _ = try await fixture.commit([writes[0], Write(.update(name, fields: ["b": 1])), writes[1]])
    #expect(try await fixture.get("c/d") == ["a": 2])
  }

  @Test("several writes to one document apply in order and see each other's results")
  func severalWritesToOneDocument() async throws {
    let name = try fixture.name("c/d")
    let response = try await fixture.commit([
      Write(.update(name, fields: ["n": 1]), precondition: .exists(false)),
      Write(
        .update(name, fields: [:]), mask: [],
        transforms: [FieldTransform(FieldPath(field: "n"), .increment(2))]),
      Write(.update(name, fields: ["m": 1]), mask: [FieldPath(field: "m")], precondition: .exists(true)),
    ])
    #expect(try await fixture.get("c/d") == ["n": 3, "m": 1])
    #expect(response.writeResults.map(\.updateTime) == Array(repeating: response.commitTime, count: 3))
    #expect(response.writeResults[1].transformResults == [3])
  }

  @Test(
    "a commit that verifies and writes one document, verifies it twice or creates it twice is INVALID_ARGUMENT",
    arguments: [false, true])
  func invalidSequences(isStored: Bool) async throws {
    let name = try fixture.name("c/d")
    if isStored { try await fixture.set("c/d", ["a": 1]) }
    let verify = Write(.verify(name), precondition: .exists(isStored))
    let create = Write(.update(name, fields: [:]), precondition: .exists(false))
    let set = Write(.update(name, fields: ["a": 2]))
    let sequences = [
      [verify, set], [set, verify], [verify, verify], [verify, Write(.delete(name))], [create, create],
      [set, create], [Write(.verify(name))],
    ]
    for writes in sequences {
      #expect(await failure { try await fixture.commit(writes) }?.code == .invalidArgument, "\(writes)")
    }
    #expect(try await fixture.get("c/d") == (isStored ? ["a": 1] : nil))
    _ = try await fixture.commit([Write(.delete(name)), create])
    #expect(try await fixture.get("c/d") == [:])
  }

  @Test("a server timestamp has millisecond precision and is the same throughout a commit")
  func serverTimestamp() async throws {
    let field = FieldPath(field: "t")
    let transform = FieldTransform(field, .serverTimestamp)
    let response = try await fixture.commit([
      Write(.transform(try fixture.name("c/a"), [transform])),
      Write(.update(try fixture.name("c/b"), fields: ["x": 1]), transforms: [transform]),
    ])
    let expected = Value.timestamp(try #require(response.commitTime).truncatedToMilliseconds)
    #expect(try await fixture.get("c/a") == ["t": expected])
    #expect(try await fixture.get("c/b") == ["t": expected, "x": 1])
  }

  @Test("one document accepts 500 transforms in a commit, but not 501")
  func transformLimit() async throws {
    let name = try fixture.name("c/d")
    let transform = FieldTransform(FieldPath(field: "n"), .increment(1))
    try await fixture.commit([Write(.transform(name, Array(repeating: transform, count: 500)))])
    #expect(try await fixture.get("c/d") == ["n": 500])
    let rejection = await failure {
      try await fixture.commit([
        Write(.transform(name, Array(repeating: transform, count: 400))),
        Write(.transform(name, Array(repeating: transform, count: 101))),
      ])
    }
    #expect(rejection?.code == .invalidArgument)
    #expect(try await fixture.get("c/d") == ["n": 500])
  }

  @Test("more than 500 writes form one commit")
  func manyWrites() async throws {
    let writes = try (0..<700).map {
      Write(.update(try fixture.name(ResourcePath(["c", "d\($0)"])), fields: ["i": 1]))
    }
    let response = try await fixture.commit(writes)
    #expect(response.writeResults.count == 700)
    #expect(try await fixture.query(StructuredQuery(from: [.init("c")])).count == 700)
  }

  @Test("a commit without writes has no commit time")
  func emptyCommit() async throws {
    #expect(try await fixture.commit([]).commitTime == nil)
  }

  @Test("a write to another database is rejected")
  func otherDatabase() async throws {
    let other = try #require(DocumentName(database: DatabaseName(project: "other"), path: "c/d"))
    let rejection = await failure { try await fixture.commit([Write(.update(other, fields: [:]))]) }
    #expect(rejection?.code == .invalidArgument)
  }

  @Test("an array may have at most 19,999 distinct elements")
  func indexEntryLimit() async throws {
    func array(_ count: Int) -> MapValue { ["a": .array((0..<count).map { .integer(Int64($0)) })] }
    try await fixture.set("c/d", array(19_999))
    let rejection = await failure { try await fixture.set("c/d", array(20_000)) }
    #expect(rejection?.code == .invalidArgument)
    #expect(rejection?.message.contains("INDEX_ENTRIES_COUNT_LIMIT_EXCEEDED") == true)
    try await fixture.set("c/same", ["a": .array(Array(repeating: 1, count: 30_000))])
  }

  @Test("commit times strictly increase")
  func commitTimesIncrease() async throws {
    var last = Timestamp.epoch
    for index in 0..<50 {
      let time = try #require(try await fixture.set("c/d", ["i": .integer(Int64(index))]).commitTime)
      #expect(time > last)
      last = time
    }
  }

  @Test("deleting a document keeps its subcollections")
  func deletingParentKeepsChildren() async throws {
    try await fixture.commit([
      Write(.update(try fixture.name("c/d"), fields: [:])),
      Write(.update(try fixture.name("c/d/e/f"), fields: [:])),
    ])
    try await fixture.delete("c/d")
    #expect(try await fixture.get("c/d/e/f") == [:])
  }

  @Test(
    "a create request without an id gets a random id; a create request for an existing document is rejected")
  func createAndUpdate() async throws {
    let collection = try fixture.collection("c")
    let created = try await fixture.engine.createDocument(
      in: collection, id: nil, fields: ["a": 1], as: .administrator)
    #expect(created.name.id.count == 20)
    _ = try await fixture.engine.createDocument(in: collection, id: "d", fields: ["a": 1], as: .administrator)
    let rejection = await failure {
      try await fixture.engine.createDocument(in: collection, id: "d", fields: [:], as: .administrator)
    }
    #expect(rejection?.code == .alreadyExists)
    let updated = try await fixture.engine.updateDocument(
      try fixture.name("c/d"), fields: ["a": 2, "b": 3], updateMask: [FieldPath(field: "b")],
      mask: [FieldPath(field: "b")], as: .administrator)
    #expect(try updated.fields() == ["b": 3])
    #expect(try await fixture.get("c/d") == ["a": 1, "b": 3])
  }
}
