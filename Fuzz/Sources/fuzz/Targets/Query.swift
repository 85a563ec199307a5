// Fuzz target: Firestore's queries, from their bytes to their results. A decoded query is written again as the
// same query. With every plan, the engine returns the result of the query's definition: the matching documents,
// sorted, with offset and limit.

import Access
import Dispatch
import FirestoreEngine
import FirestoreModel
import FirestoreProtobuf
import FirestoreWire
import NIOConcurrencyHelpers
import OrderedStore
import SwiftProtobuf

/// The first byte selects the parent; the rest is a `StructuredQuery`.
func fuzzQuery(_ input: UnsafeRawBufferPointer) throws {
  guard let first = input.first else { return }
  let bytes = Array(input.dropFirst())
  guard let structured = decode(bytes) else { return }
  try require(
    (try? Google_Firestore_V1_StructuredQuery(serializedBytes: bytes, options: .deep)) != nil,
    "only our codec reads a query")
  let written = try encode(structured)
  let again = try require(decode(written), "a written query is rejected")
  try require(try encode(again) == written, "a written query is another query")

  let parents = QueriedDatabase.parents
  let query = Query(parent: parents[Int(first) % parents.count], structured)
  guard let normalized = try? NormalizedQuery(query) else { return }
  try require(
    (try? NormalizedQuery(Query(parent: query.parent, again)))?.canonicalForm == normalized.canonicalForm,
    "a written query has another canonical form")
  let found: [DocumentName]
  switch blocking({ try await QueriedDatabase.names(of: query) }) {
  case .success(let names): found = names
  case .failure(let error):
    // The engine checks the requirements of nearest-neighbour searches.
    try require(structured.findNearest != nil, "a valid query fails: \(error)")
    return
  }
  let matches = QueriedDatabase.documents.filter { normalized.matches($0.name, $0.fields) }
    .sorted { normalized.compare($0.name, $0.fields, $1.name, $1.fields) == .ascending }.map(\.name)
  if structured.findNearest != nil {
    return try require(Set(found).isSubset(of: matches), "neighbours that do not match")
  }
  let expected = matches.dropFirst(normalized.offset).prefix(normalized.limit ?? .max)
  try require(found == Array(expected), "found \(found), not \(expected) of \(structured)")
}

private func decode(_ bytes: [UInt8]) -> StructuredQuery? {
  bytes.withUnsafeBytes { raw in
    var reader = ProtobufReader(raw)
    return try? reader.structuredQuery()
  }
}

private func encode(_ query: StructuredQuery) throws -> [UInt8] {
  var options = BinaryEncodingOptions()
  options.useDeterministicOrdering = true
  return try Google_Firestore_V1_StructuredQuery(query).serializedBytes(options: options)
}

extension BinaryDecodingOptions {
  fileprivate static var deep: BinaryDecodingOptions {
    var options = BinaryDecodingOptions()
    options.messageDepthLimit = 400
    return options
  }
}

/// Waits for work of other threads. Targets run on a thread that may block.
private func blocking<T: Sendable>(_ body: @escaping @Sendable () async throws -> T) -> Result<T, any Error> {
  let outcome = NIOLockedValueBox<Result<T, any Error>>(.failure(CancellationError()))
  let done = DispatchSemaphore(value: 0)
  Task.detached {
    let result: Result<T, any Error>
    do { result = .success(try await body()) } catch { result = .failure(error) }
    outcome.withLockedValue { $0 = result }
    done.signal()
  }
  done.wait()
  return outcome.withLockedValue { $0 }
}

/// A database in memory with documents that differ in every order.
private enum QueriedDatabase {
  static let database = DatabaseName(project: "p")
  static let parents: [ParentName] = [
    ParentName(rootOf: database),
    (try? ParentName(parsing: "\(database)/documents/c/a")) ?? ParentName(rootOf: database),
  ]

  private static let values: [Value] = [
    .null, .boolean(false), .boolean(true), .integer(1), .double(1.5), .double(.nan), .double(-0.0),
    .timestamp(.epoch), .string(""), .string("a"), .string("b"), .bytes([0]),
    .geoPoint(GeoPoint(latitude: 1, longitude: 2)), .array([.integer(1), .string("a")]), .array([]),
    .map(["x": .integer(1)]), .map([:]), .vector([1, 2]),
  ]

  static let documents: [(name: DocumentName, fields: MapValue)] = {
    var documents: [(DocumentName, MapValue)] = []
    for (index, value) in values.enumerated() {
      let path = ["c", "c/a/c", "d", "c/a/d"][index % 4] + "/" + ["a", "b", "__id7__", "Z", "é"][index / 4]
      for (collection, number) in [(path, index), (path + "x", index / 2)] {
        guard let name = try? DocumentName(parsing: "\(database)/documents/\(collection)") else { continue }
        var fields: MapValue = ["a": value, "n": .integer(Int64(number % 5))]
        if index % 3 == 0 { fields["b"] = .map(["x": value, "y": .integer(Int64(index % 2))]) }
        documents.append((name, fields))
      }
    }
    return documents
  }()

  /// The engine, after the documents have been written.
  private static let engine = Task {
    let engine = FirestoreEngine(
      store: try MemoryStore(), policy: OpenPolicy(), options: .init(createsDatabases: true))
    let writes = documents.map { Write(.update($0.name, fields: $0.fields)) }
    _ = try await engine.commit(in: database, writes, as: .administrator)
    return engine
  }

  /// The result of the engine.
  static func names(of query: Query) async throws -> [DocumentName] {
    let names = NIOLockedValueBox<[DocumentName]>([])
    try await engine.value.runQuery(query, as: .administrator) { page in
      names.withLockedValue { $0 += page.documents.map(\.name) }
    }
    return names.withLockedValue { $0 }
  }
}
