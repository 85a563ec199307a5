// Tests exports of documents whose export records or index entries are large. Every stored document can be
// exported, and every exported document can be imported.

import Access
import BlockLog
import FirestoreEngine
import FirestoreModel
import FirestoreProtobuf
import Foundation
import HearthServer
import OrderedStore
import SwiftProtobuf
import Testing

@testable import EmulatorSuite
@testable import EndpointFixture
@testable import FirestoreEndpoints

@Suite("Large exports", .timeLimit(.minutes(5)))
struct LargeExportTests {
  private static let database = DatabaseName(project: "demo-test", database: "(default)")
  private static let metadata = "firestore_export/firestore_export.overall_export_metadata"

  private static func name(_ id: String) throws -> DocumentName {
    try #require(DocumentName(database: database, path: ResourcePath(["c", id])))
  }

  private static func array(_ elements: [Proto.Value]) -> Proto.Value {
    .with { $0.arrayValue.values = elements }
  }

  private static func engine(
    _ store: MemoryStore, _ change: (inout EngineLimits) -> Void = { _ in }
  ) -> FirestoreEngine {
    var options = FirestoreEngine.Options(createsDatabases: true)
    change(&options.limits)
    return FirestoreEngine(store: store, policy: OpenPolicy(), options: options)
  }

  @Test("Documents with too many index entries for one commit are imported in several commits")
  func manyEntries() async throws {
    let path = FirestoreTestServer.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let ids = (10..<22).map { "\($0)" + String(repeating: "x", count: 1400) }
    try await FirestoreTestServer.servingSuite { server in
      let numbers = Self.array((0..<5000).map { .int($0) })
      for id in ids { try await server.client.commit([.set("c/\(id)", ["a": numbers])]) }
      #expect(try await server.export(path).status == 200)
    }
    try await FirestoreTestServer.servingSuite({ $0.importedDirectory = path }) { server in
      for id in ids {
        let document = try await server.client.get("c/\(id)")
        #expect(document.fields["a"] == Self.array((0..<5000).map { .int($0) }))
      }
    }

    // Without a byte limit for batches (`.max`), the database rejects a batch, and the import then commits its
    // halves.
    let store = try MemoryStore(StoreOptions())
    let engine = Self.engine(store)
    let overall = "\(path)/\(Self.metadata)"
    try await EmulatorExports(engine: engine, maximumCommitBytes: .max).importDatabase(
      overall, into: Self.database)
    for id in ids {
      let stored = try await engine.getDocument(try Self.name(id), as: .administrator)
      #expect(try stored.document.fields()["a"] == .array((0..<5000).map { .integer($0) }))
    }
    await engine.shutDown()
    try await store.close()

    // The error names a single rejected document.
    let small = try MemoryStore(StoreOptions())
    let limited = Self.engine(small) { $0.maximumIndexEntries = 100 }
    do {
      try await EmulatorExports(engine: limited).importDatabase(overall, into: Self.database)
      Issue.record("the oversized document was imported")
    } catch {
      #expect(error.code == .invalidArgument && error.message.hasPrefix("INDEX_ENTRIES_COUNT_LIMIT_EXCEEDED"))
      #expect(error.message.contains("/output-0, document c/10xxx"), "\(error)")
    }
    await limited.shutDown()
    try await small.close()
  }

  @Test("A document is imported even if its export record is many times as large as the document")
  func longName() async throws {
    let path = FirestoreTestServer.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let name = String(repeating: "f", count: 1498)
    let trueValue = Proto.Value.with { $0.booleanValue = true }
    let map = Proto.Value.with {
      $0.mapValue.fields = [name: Self.array(Array(repeating: trueValue, count: 12_000))]
    }
    try await FirestoreTestServer.servingSuite { server in
      try await server.client.commit([.set("c/a", ["n": .int(1)]), .set("c/wide", ["a": Self.array([map])])])
      #expect(try await server.export(path).status == 200)
    }
    let output = "\(path)/firestore_export/all_namespaces/all_kinds/output-0"
    let size = try FileManager.default.attributesOfItem(atPath: output)[.size] as? Int
    #expect((size ?? 0) > 16 << 20)
    try await FirestoreTestServer.servingSuite({ $0.importedDirectory = path }) { server in
      let documents = (try await server.client.get("c/a"), try await server.client.get("c/wide"))
      #expect(documents.0.fields["n"]?.integerValue == 1)
      #expect(documents.1.fields["a"] == Self.array([map]))
    }
  }

  @Test("A long array in a map in an array is decoded in linear time")
  func longArray() throws {
    let elements = [Value](repeating: true, count: 200_000)
    let inner: MapValue = [
      "x": .array(elements), "y": .array([]), "z": .array([.map(["w": .array(elements)])]),
    ]
    let fields: MapValue = ["m": .array([.map(inner), .map(inner), 7])]
    let entity = try ExportEntity(ExportEntity.encode(try Self.name("d"), fields), into: "demo-test")
    #expect(entity.fields == fields)
  }

  @Test("A record may be appended in parts of any size")
  func appendInParts() throws {
    let name = String(repeating: "f", count: 1498)
    let map: MapValue = [name: .array([Value](repeating: true, count: 100)), "t": "text", "e": .array([])]
    let fields: MapValue = [
      "m": .array([.map(map), .map(map), 7]), "v": .vector([1, 2]),
      "s": .string(String(repeating: "x", count: 70_000)),
    ]
    let document = try Self.name("d")
    let record = try ExportEntity.record(of: document, fields)
    var joined: [UInt8] = []
    record.forEachChunk { joined += $0 }
    #expect(joined == ExportEntity.encode(document, fields) && joined.count == record.count)

    var (complete, open) = (BlockLogWriter(), BlockLogWriter())
    var (expected, written) = ([UInt8](), [UInt8]())
    for (size, count) in [(1, 0), (1, 7), (3, 32_754), (7, 32_761), (1_000, 90_000), (.max, joined.count)] {
      let bytes = count == joined.count ? joined : Array(joined.prefix(count))
      expected += complete.frame(bytes)
      var record = open.begin(bytes.count)
      var rest = bytes[...]
      repeat {
        open.append(rest.prefix(size), to: &record, &written)
        open.append([], to: &record, &written)
        rest = rest.dropFirst(size)
      } while !rest.isEmpty
    }
    #expect(written == expected)
    #expect(open.count == expected.count && complete.count == expected.count)
  }

  @Test("A document whose export record would exceed the limit is rejected before the record is encoded")
  func unencodableDocument() throws {
    let maps = Array(repeating: Value.map(MapValue()), count: 1_500_000)
    let fields: MapValue = ["m": .map(MapValue([(String(repeating: "f", count: 1500), Value.array(maps))]))]
    let name = try Self.name("huge")
    let error = #expect(throws: FirestoreError.self) { try ExportEntity.record(of: name, fields) }
    #expect(
      error?.code == .failedPrecondition && error?.message.contains("c/huge") == true)
  }

  @Test("An export with an oversized manifest does not replace the old export")
  func longManifest() throws {
    let path = FirestoreTestServer.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: path) }
    try ExportDirectory(path).replace(with: ExportManifest(version: "1"))
    var manifest = ExportManifest(version: "2")
    let text = String(repeating: "x", count: 1 << 20)
    // The first manifest is as large as one with 6,000 database names. The second is larger than an import
    // accepts.
    manifest.others = [.init(database: text, file: text)]
    try ExportDirectory(path).replace(with: manifest)
    #expect(try ExportManifest(ExportSource(path)).others.count == 1)
    manifest.version = "3"
    manifest.others = Array(repeating: .init(database: text, file: text), count: 9)
    let error = #expect(throws: FirestoreError.self) { try ExportDirectory(path).replace(with: manifest) }
    #expect(error?.code == .failedPrecondition && error?.message.contains("9 databases") == true)
    #expect(try ExportManifest(ExportSource(path)).version == "2")
  }

  @Test("An oversized record is rejected during decoding, with its file and position")
  func oversizedRecord() async throws {
    let path = FirestoreTestServer.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: path) }
    try await FirestoreTestServer.servingSuite { server in
      try await server.fill()
      #expect(try await server.export(path).status == 200)
    }
    let text = String(repeating: "x", count: 1 << 20)
    let fields = MapValue((0..<17).map { ("f\($0)", Value.string(text)) })
    var log = BlockLogWriter()
    let first = log.frame(ExportEntity.encode(try Self.name("small"), ["n": 1]))
    let second = log.frame(ExportEntity.encode(try Self.name("large"), fields))
    let output = "\(path)/firestore_export/all_namespaces/all_kinds/output-0"
    try Data(first + second).write(to: URL(fileURLWithPath: output))
    let error = await FirestoreTestServer.startError { $0.importedDirectory = path }
    #expect(error.contains("bytes that can be stored"), "\(error)")
    #expect(error.contains("/output-0, the record at byte \(first.count))"), "\(error)")
  }
}
