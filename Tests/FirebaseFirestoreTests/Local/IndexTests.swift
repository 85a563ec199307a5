// Tests the indexes of the cache: they do not change results, and an indexed query reads only its matches.

import FirebaseCore
import FirestoreModel
import Foundation
import Testing

@testable import FirebaseFirestore

private let database = DatabaseName(project: "test")

private func name(_ collection: String, _ id: String) -> DocumentName {
  ParentName(rootOf: database).collection(collection).document(id)
}

/// Generates documents, queries and indexes with values that often match.
private struct Generator {
  var random: SplitMix
  static let fields = ["a", "b", "tags", "m.x"]

  mutating func value(depth: Int = 0) -> Value {
    switch Int.random(in: 0..<(depth == 0 ? 10 : 7), using: &random) {
    case 0: .null
    case 1: .boolean(Bool.random(using: &random))
    case 2, 3: .integer(Int64.random(in: -2...3, using: &random))
    case 4: .double([-.infinity, -0.0, 0.5, 1, 2, .nan].randomElement(using: &random) ?? 0)
    case 5: .string(["", "a", "ab", "b", "\u{0}"].randomElement(using: &random) ?? "")
    // Strings of about 1,500 bytes. An index stores the shorter ones completely, and truncates the longer
    // ones.
    case 6: .string(String(repeating: "z", count: 1499 + Int.random(in: 0..<4, using: &random)))
    case 7, 8: .array((0..<Int.random(in: 0..<4, using: &random)).map { _ in value(depth: 1) })
    default: .map(["x": value(depth: 1)])
    }
  }

  mutating func fields() -> MapValue {
    var map = MapValue()
    for field in ["a", "b", "tags", "m"] where Int.random(in: 0..<5, using: &random) > 0 {
      map.set(field == "m" ? .map(["x": value(depth: 1)]) : value(), at: .init(field: field))
    }
    return map
  }

  mutating func field() -> ModelFieldPath {
    (try? ModelFieldPath(parsing: Generator.fields.randomElement(using: &random) ?? "a")) ?? .init(field: "a")
  }

  mutating func filter(depth: Int = 0) -> ModelFilter {
    if depth < 2, Int.random(in: 0..<3, using: &random) == 0 {
      let parts = (0..<Int.random(in: 1...3, using: &random)).map { _ in filter(depth: depth + 1) }
      return .composite(Bool.random(using: &random) ? .and : .or, parts)
    }
    let op = FieldFilter.Operator.allCases.randomElement(using: &random) ?? .equal
    switch op {
    case .isIn, .notIn, .arrayContainsAny:
      return .field(FieldFilter(field(), op, .array((0...1).map { _ in value(depth: 1) })))
    default:
      if Int.random(in: 0..<8, using: &random) == 0 {
        let op = UnaryFilter.Operator.allCases.randomElement(using: &random) ?? .isNull
        return .unary(UnaryFilter(field(), op))
      }
      return .field(FieldFilter(field(), op, value()))
    }
  }

  /// Generates a valid query. Invalid queries are discarded.
  mutating func query() -> ClientQuery {
    while true {
      let isGroup = Int.random(in: 0..<4, using: &random) == 0
      var structured = StructuredQuery(from: [.init("c", allDescendants: isGroup)])
      structured.filter = filter()
      if Bool.random(using: &random) {
        structured.orderBy = [.init(field(), Bool.random(using: &random) ? .ascending : .descending)]
        if Bool.random(using: &random) { structured.limit = Int.random(in: 1...5, using: &random) }
        if Int.random(in: 0..<4, using: &random) == 0 { structured.filter = nil }
      }
      if Int.random(in: 0..<4, using: &random) == 0, !structured.orderBy.isEmpty {
        let cursor = Cursor([value(depth: 1)], before: Bool.random(using: &random))
        if Bool.random(using: &random) { structured.startAt = cursor } else { structured.endAt = cursor }
      }
      let isLast = structured.limit != nil && Bool.random(using: &random)
      let query = ModelQuery(parent: ParentName(rootOf: database), structured)
      if (try? NormalizedQuery(query)) != nil { return ClientQuery(query, isLimitToLast: isLast) }
    }
  }

  mutating func index() -> FieldIndex? {
    let segments = (0..<Int.random(in: 1...3, using: &random)).map { _ in
      let isElements = Int.random(in: 0..<3, using: &random) == 0
      return FieldIndex.Segment(field: field(), kind: isElements ? .elements : .value)
    }
    return FieldIndex(collectionID: "c", segments: segments)
  }
}

private func store(_ documents: [CachedDocument] = [], on cache: CacheFixture) throws -> LocalStore {
  var store = LocalStore(persistence: try cache.open(database: database))
  store.createsIndexes = false
  try add(documents, to: &store)
  return store
}

private func add(_ documents: [CachedDocument], to store: inout LocalStore) throws {
  var event = RemoteEvent(version: documents.map(\.version).max() ?? .epoch)
  for document in documents { event.documents[document.name] = document }
  _ = try store.apply(event)
}

extension Array where Element == [UInt8] {
  fileprivate var adjacentPairsAreSorted: Bool {
    zip(self, dropFirst()).allSatisfy { !$1.lexicographicallyPrecedes($0) }
  }
}

private func equalityQuery(_ field: String, _ value: Value) -> ClientQuery {
  var structured = StructuredQuery(from: [.init("c")])
  structured.filter = .field(FieldFilter(.init(field: field), .equal, value))
  return ClientQuery(ModelQuery(parent: ParentName(rootOf: database), structured))
}

private func numberedDocuments(_ count: Int, groups: Int) -> [CachedDocument] {
  (0..<count).map { n in
    CachedDocument(
      found: name("c", "d\(n)"), fields: ["group": .integer(Int64(n % groups))], version: .init(seconds: 1),
      createTime: .epoch)
  }
}

@Suite("Cache indexes", .timeLimit(.minutes(10))) struct IndexTests {
  @Test(
    "queries return the same results with and without indexes", arguments: CacheKind.allCases,
    1...3 as ClosedRange<UInt64>)
  func sameResults(kind: CacheKind, seed: UInt64) throws {
    var generator = Generator(random: SplitMix(seed: seed))
    let (memory, cache) = (CacheFixture(.memory), CacheFixture(kind))
    var plain = try store(on: memory)
    var indexed = try store(on: cache)
    defer { indexed.persistence.close() }
    var (servedCount, orderedCount) = (0, 0)
    for round in 1...60 {
      var documents: [CachedDocument] = []
      for _ in 0..<8 {
        let id = "d\(Int.random(in: 0..<40, using: &generator.random))"
        let path = Int.random(in: 0..<5, using: &generator.random) == 0 ? "other/o/c" : "c"
        let full = ResourcePath(splitting: "\(path)/\(id)")
        guard let name = DocumentName(database: database, path: full) else { continue }
        let version = ModelTimestamp(seconds: Int64(round))
        documents.append(
          Int.random(in: 0..<6, using: &generator.random) == 0
            ? CachedDocument(missing: name, version: version)
            : CachedDocument(found: name, fields: generator.fields(), version: version, createTime: version))
      }
      let local = Write(.update(name("c", "d\(round % 40)"), fields: generator.fields()))
      try add(documents, to: &plain)
      try add(documents, to: &indexed)
      if round.isMultiple(of: 3) {
        _ = try plain.write([local], at: .epoch)
        _ = try indexed.write([local], at: .epoch)
      }
      if round.isMultiple(of: 10) {
        try indexed.configure(Set((0..<6).compactMap { _ in generator.index() }))
      }
      for _ in 0..<6 {
        let query = generator.query()
        let expected = IndexTests.results(of: query, in: try plain.execute(query, usePreviousResults: false))
        let actual = IndexTests.results(of: query, in: try indexed.execute(query, usePreviousResults: false))
        #expect(actual == expected)
        if indexed.candidates(for: query) != nil { servedCount += 1 }
        if indexed.limited(query) != nil { orderedCount += 1 }
      }
    }
    // At least some queries must have used an index.
    #expect(servedCount > 20 && orderedCount > 5)
  }

  /// The results for a view: sorted, and limited.
  private static func results(of query: ClientQuery, in result: QueryResult) -> [CachedDocument] {
    let sorted = result.documents.sorted { query.compare($0, $1) == .ascending }
    guard let limit = query.limit else { return sorted }
    return query.isLimitToLast ? sorted.suffix(limit) : Array(sorted.prefix(limit))
  }

  @Test("an indexed query reads only its matches", arguments: CacheKind.allCases)
  func readsOnlyMatches(kind: CacheKind) throws {
    let cache = CacheFixture(kind)
    var store = try store(numberedDocuments(5_000, groups: 500), on: cache)
    defer { store.persistence.close() }
    let query = equalityQuery("group", 7)
    #expect(store.candidates(for: query) == nil)
    store.createsIndexes = true
    #expect(try store.execute(query, usePreviousResults: false).documents.count == 10)
    #expect(store.candidates(for: query)?.count == 10)
    #expect(try store.execute(query, usePreviousResults: false).documents.count == 10)
  }

  @Test("an ordered query with a limit reads no more than its limit", arguments: CacheKind.allCases)
  func readsOnlyLimit(kind: CacheKind) throws {
    let cache = CacheFixture(kind)
    var store = try store(numberedDocuments(2_000, groups: 2_000), on: cache)
    defer { store.persistence.close() }
    store.createsIndexes = true
    for (direction, isLast) in [
      (StructuredQuery.Direction.ascending, false), (.descending, false), (.ascending, true),
    ] {
      let structured = StructuredQuery(
        from: [.init("c")], orderBy: [.init(.init(field: "group"), direction)], limit: 10)
      let query = ClientQuery(
        ModelQuery(parent: ParentName(rootOf: database), structured), isLimitToLast: isLast)
      _ = try store.execute(query, usePreviousResults: false)
      #expect(store.limited(query)?.count == 10)
      let result = IndexTests.results(of: query, in: try store.execute(query, usePreviousResults: false))
      let first = (direction == .ascending) == isLast ? 1_999 : 0
      #expect((isLast ? result.last : result.first)?.fields["group"] == .integer(Int64(first)))
    }
  }

  @Test("an index survives a restart of the cache")
  func indexAfterRestart() throws {
    let cache = CacheFixture(.disk)
    var store = try store(numberedDocuments(500, groups: 50), on: cache)
    store.createsIndexes = true
    _ = try store.execute(equalityQuery("group", 7), usePreviousResults: false)
    store.persistence.close()
    var reopened = LocalStore(persistence: try cache.open(database: database))
    defer { reopened.persistence.close() }
    #expect(reopened.candidates(for: equalityQuery("group", 7))?.count == 10)
    try reopened.configure([])
    #expect(
      reopened.candidates(for: equalityQuery("group", 7))?.count == 10,
      "an automatic index survives a restart")
  }

  @Test(
    "an index is created automatically if it saves reads",
    arguments: [(99, 33, false), (100, 50, true), (100, 2, false), (400, 3, false), (400, 4, true)])
  func automaticCreation(count: Int, groups: Int, isCreated: Bool) throws {
    var store = try store(numberedDocuments(count, groups: groups), on: CacheFixture(.memory))
    _ = try store.execute(equalityQuery("group", 1), usePreviousResults: false)
    #expect(store.persistence.fieldIndexes.isEmpty)
    store.createsIndexes = true
    _ = try store.execute(equalityQuery("group", 1), usePreviousResults: false)
    #expect(store.persistence.fieldIndexes.isEmpty != isCreated)
    try store.deleteAllIndexes()
    #expect(store.persistence.fieldIndexes.isEmpty)
  }

  @Test("the number of automatic indexes is limited")
  func automaticIndexLimit() throws {
    var store = try store(numberedDocuments(200, groups: 100), on: CacheFixture(.memory))
    store.createsIndexes = true
    for n in 0..<50 { _ = try store.execute(equalityQuery("field\(n)", 1), usePreviousResults: false) }
    #expect(store.persistence.fieldIndexes.count == LocalStore.automaticIndexLimit)
  }

  @Test("sorted keys have the same contents as a sorted list")
  func sortedKeys() {
    var random = SplitMix(seed: 5)
    var keys = SortedKeys([])
    var naive: [(key: [UInt8], name: DocumentName)] = []
    for _ in 0..<6000 {
      let key = [UInt8.random(in: 0..<40, using: &random), UInt8.random(in: 0..<40, using: &random)]
      let name = name("c", "d\(Int.random(in: 0..<3, using: &random))")
      let existing = naive.firstIndex { $0.key == key && $0.name == name }
      if Int.random(in: 0..<3, using: &random) == 0 {
        keys.remove(.init(key: key, name: name))
        if let existing { naive.remove(at: existing) }
      } else if existing == nil {
        keys.insert(.init(key: key, name: name))
        naive.append((key, name))
      }
    }
    #expect(keys.count == naive.count && keys.count > 1024)
    for _ in 0..<200 {
      let start = [UInt8.random(in: 0..<45, using: &random)]
      let end = Bool.random(using: &random) ? [UInt8.random(in: 0..<45, using: &random), 7] : nil
      var found: Set<DocumentName> = []
      var inOrder: [[UInt8]] = []
      let reversed = Bool.random(using: &random)
      keys.visit(IndexRange(start: start, end: end), reversed: reversed) { entry in
        found.insert(entry.name)
        inOrder.append(entry.key)
        return true
      }
      #expect((reversed ? inOrder.reversed() : inOrder).adjacentPairsAreSorted)
      let expected = naive.filter { entry in
        let isBeforeEnd = end.map { entry.key.lexicographicallyPrecedes($0) } ?? true
        return isBeforeEnd && !entry.key.lexicographicallyPrecedes(start)
      }
      #expect(found == Set(expected.map(\.name)))
    }
  }

  // MARK: Configuration

  @Test("an index configuration is parsed as the Firebase CLI writes it")
  func parsesConfiguration() throws {
    let json = """
      {"indexes": [
        {"collectionGroup": "books", "queryScope": "COLLECTION", "fields": [
          {"fieldPath": "tags", "arrayConfig": "CONTAINS"}, {"fieldPath": "meta.pages", "order": "DESCENDING"},
          {"fieldPath": "__name__", "order": "ASCENDING"}]},
        {"collectionGroup": "books", "fields": [{"fieldPath": "`a b`", "order": "ASCENDING"}]}],
       "fieldOverrides": []}
      """
    let indexes = try IndexConfiguration.parse(Data(json.utf8))
    let meta = try ModelFieldPath(parsing: "meta.pages")
    let first = FieldIndex(
      collectionID: "books",
      segments: [.init(field: .init(field: "tags"), kind: .elements), .init(field: meta, kind: .value)])
    let quoted = FieldIndex.Segment(field: .init(field: "a b"), kind: .value)
    let second = FieldIndex(collectionID: "books", segments: [quoted])
    #expect(indexes == Set([first, second].compactMap { $0 }))
    #expect(try IndexConfiguration.parse(Data("{}".utf8)).isEmpty)
  }

  @Test(
    "an invalid configuration is rejected with its reason",
    arguments: [
      ("", "JSON"), ("[]", "JSON"), ("{\"indexes\": 3}", "'indexes'"), ("{\"indexes\": [3]}", "indexes[0]"),
      ("{\"indexes\": [{\"collectionGroup\": \"a\", \"fields\": {}}]}", "'fields' in indexes[0]"),
      ("{\"indexes\": [{\"collectionGroup\": \"a\", \"fields\": [{}]}]}", "indexes[0].fields[0].fieldPath"),
      (
        "{\"indexes\": [{\"collectionGroup\": \"a\", \"fields\": [{\"fieldPath\": \"a..b\"}]}]}",
        "fields[0].fieldPath"
      ),
      (
        "{\"indexes\": [{\"collectionGroup\": \"a\", \"fields\": [{\"fieldPath\": \"a\", \"order\": \"UP\"}]}]}",
        "ASCENDING or DESCENDING"
      ),
      (
        "{\"indexes\": [{\"collectionGroup\": \"a\", \"fields\": [{\"fieldPath\": \"a\", \"arrayConfig\": \"ALL\"}]}]}",
        "CONTAINS"
      ),
    ])
  func invalidConfiguration(json: String, words: String) async throws {
    let client = TestClient.make(port: 1)
    do {
      try await deadline { try await client.setIndexConfiguration(json) }
      Issue.record("accepted")
    } catch {
      #expect((error as? FirestoreErrorCode)?.code == .invalidArgument)
      #expect(error.localizedDescription.contains(words), "\(error.localizedDescription)")
    }
  }

  @Test("a configuration is accepted as a string and as a stream")
  func configurationForms() async throws {
    let client = TestClient.make(port: 1)
    let json = """
      {"indexes": [{"collectionGroup": "c", "fields": [{"fieldPath": "a", "order": "ASCENDING"}]}]}
      """
    try await deadline { try await client.setIndexConfiguration(json) }
    try await deadline { try await client.setIndexConfiguration(InputStream(data: Data(json.utf8))) }
    await #expect {
      try await deadline { try await client.setIndexConfiguration(InputStream(data: Data("no".utf8))) }
    } throws: { ($0 as? FirestoreErrorCode)?.code == .invalidArgument }
    let manager = try #require(client.persistentCacheIndexManager)
    manager.deleteAllIndexes()
    manager.disableIndexAutoCreation()
    manager.enableIndexAutoCreation()
    #expect(manager == client.persistentCacheIndexManager)
  }
}
