// Tests the encodings of document rows, index entries, commit records and tokens, and the decoding of corrupt bytes.

import Access
import EmbeddedStore
import FirestoreModel
import OrderedStore
import RandomModels
import Testing

@testable import FirestoreEngine

@Suite("Row encodings", .timeLimit(.minutes(10))) struct RowTests {
  let database = DatabaseName(project: "demo")

  @Test("the keys of rows have the documented byte layout")
  func keyLayout() {
    let books: [UInt8] = [0x03] + Array("books".utf8) + [0x00, 0x01]
    let b1: [UInt8] = [0x03] + Array("b1".utf8) + [0x00, 0x01]
    #expect(FirestoreKeyLayout.document("books/b1") == [0x01, 0x01] + books + b1)
    #expect(FirestoreKeyLayout.collection("books") == [0x01, 0x01] + books)
    #expect(FirestoreKeyLayout.group("books/b1") == [0x03] + books + books + b1)
    let entry =
      FirestoreKeyLayout.index(FieldPath(field: "n"), .value, of: "books") + IndexValue.encode(1) + b1
    #expect(
      entry
        == [0x02, 0x01] + books + [0x6E, 0x00, 0x01, 0x00, 0x00, 0x01]
        + [0x30, 0xBF, 0xF0, 0, 0, 0, 0, 0, 0] + b1)
  }

  @Test("names are decoded from keys, for all kinds of ids", arguments: 1...3)
  func namesFromKeys(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let ids = ["a", "ab", "a\u{0}b", "é", "__id-5__", "__id7__", "-", "~", "🙂"]
    for _ in 0..<300 {
      let count = Int.random(in: 1...3, using: &random) * 2
      let path = ResourcePath((0..<count).map { _ in ids.randomElement(using: &random) ?? "a" })
      #expect(FirestoreKeyLayout.documentPath(ofRow: FirestoreKeyLayout.document(path)) == path)
      #expect(FirestoreKeyLayout.documentPath(ofGroupRow: FirestoreKeyLayout.group(path)) == path)
      let other = ResourcePath((0..<2).map { _ in ids.randomElement(using: &random) ?? "a" })
      let sibling = ResourcePath(
        Array(path.segments.dropLast(2)) + [path.segments[count - 2], other.segments[1]])
      let inOrder = FirestoreKeyLayout.document(path).lexicographicallyPrecedes(
        FirestoreKeyLayout.document(sibling))
      #expect(inOrder == (ResourcePath.compare(path, sibling) == .ascending))
    }
  }

  @Test("the end of a value is found inside an entry key, also for a truncated value")
  func entryValues() {
    let long = String(repeating: "x", count: 2_000)
    let values: [Value] = [
      .null, 1, 2.5, "a", .string(long), .array([.string(long), 1]), .array([1, "b"]),
      .map(["k": .string(long)]),
      .map([:]), .vector(Array(repeating: 1, count: 1_000)), .bytes([0, 255, 0]),
    ]
    let id = FirestoreKeyLayout.segment("doc")
    for value in values {
      let encoded = IndexValue.encode(value)
      let key = [9, 9] + encoded + id
      #expect(IndexValue.end(in: key, from: 2) == 2 + encoded.count, "\(value.canonicalText.prefix(40))")
    }
    #expect(IndexValue.isExact("a"))
    #expect(!IndexValue.isExact(.string(long)))
  }

  @Test("every field and every distinct array element has an entry; a change replaces only changed entries")
  func indexEntries() throws {
    let before = try IndexEntries.keys(of: ["a": 1, "m": ["x": 2], "t": [1, 1, "b"]], at: "c/d")
    // Six entries: one each for the fields a, m, m.x and t, and one for each of two array elements.
    #expect(before.count == 6)
    #expect(zip(before, before.dropFirst()).allSatisfy { $0.lexicographicallyPrecedes($1) })
    let after = try IndexEntries.keys(of: ["a": 1, "m": ["x": 3], "t": [1, 1, "b"]], at: "c/d")
    let (removed, added) = IndexEntries.difference(from: before, to: after)
    #expect(removed.count == 2)
    #expect(added.count == 2)
    #expect(IndexEntries.difference(from: before, to: before).added.isEmpty)
  }

  @Test("decoding corrupt rows, records and tokens throws and never traps", arguments: 1...3)
  func corruptBytes(seed: UInt64) throws {
    let name = try #require(DocumentName(database: database, path: "c/d"))
    let document = StoredDocument(
      name: name, createTime: Timestamp(microseconds: 5), updateTime: Timestamp(microseconds: 6),
      fields: ["a": ["b": [1, "x"]]])
    let row = DocumentRow.encode(document)
    let back = try DocumentRow.decode(row, name)
    #expect(try back.fields() == ["a": ["b": [1, "x"]]])
    #expect(back.createTime == document.createTime && back.updateTime == document.updateTime)
    let record = CommitRecord.encode([CommittedChange(name: name, before: nil, after: document)])
    #expect(try CommitRecord.decode(record) == [name.path])
    let token = TransactionToken(epoch: 1, id: 2, in: database).bytes(
      TokenSigner(), for: TokenOwner(.nobody, in: database))
    #expect(TransactionToken(token)?.id == 2)
    var random = SeededGenerator(seed: seed)
    for original in [row, record, token, ResumeToken.encode(Version(microseconds: 77))] {
      for _ in 0..<300 {
        var bytes = original
        if Bool.random(using: &random) { bytes.removeLast(Int.random(in: 0...bytes.count, using: &random)) }
        if let index = bytes.indices.randomElement(using: &random) {
          bytes[index] = UInt8.random(in: 0...255, using: &random)
        }
        _ = try? DocumentRow.decode(bytes, name).fields()
        _ = try? CommitRecord.decode(bytes)
        _ = TransactionToken(bytes)
        _ = ResumeToken.decode(bytes)
        _ = FirestoreKeyLayout.documentPath(ofRow: bytes)
        _ = FirestoreKeyLayout.documentPath(ofGroupRow: bytes)
        _ = IndexValue.end(in: bytes, from: 0)
      }
    }
  }

  @Test("documents, indexes and commit times survive a restart, and databases are separate")
  func restart() async throws {
    let directory = try TemporaryDirectory()
    let other = DatabaseName(project: "demo", database: "other")
    var last = Timestamp.epoch
    for run in 0..<3 {
      let store = try await EmbeddedStore.open(directory: directory.path, EmbeddedOptions())
      let fixture = try EngineFixture(store: store)
      let query = StructuredQuery(
        from: [.init("c")], filter: .field(FieldFilter(FieldPath(field: "n"), .greaterThanOrEqual, 0)))
      #expect(try await fixture.query(query).map(\.name.id) == (0..<run).map { "d\($0)" })
      let commit = try #require(
        try await fixture.set(ResourcePath(["c", "d\(run)"]), ["n": .integer(Int64(run))]).commitTime)
      #expect(commit > last)
      last = commit
      let elsewhere = Query(parent: ParentName(rootOf: other), query)
      #expect(try await fixture.query(elsewhere).isEmpty)
      await fixture.engine.shutDown()
      try await store.close()
    }
  }
}
