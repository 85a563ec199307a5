// Tests of the target index, which finds the listeners' queries that a write may match. The index must find every
// affected query, and only few queries that the write does not affect.

import FirestoreModel
import OrderedStore
import RandomModels
import Testing

@testable import FirestoreEngine

@Suite("Target index", .timeLimit(.minutes(10))) struct TargetIndexTests {
  private let fixture: EngineFixture
  private let stream: WatchStream

  init() async throws {
    fixture = try EngineFixture()
    stream = try await fixture.watch(WatchClient())
  }

  private func prepare(_ query: StructuredQuery) throws -> PreparedQuery {
    try PreparedQuery(Query(parent: fixture.root, query), .standard)
  }

  private func document(_ path: ResourcePath, _ fields: MapValue) throws -> StoredDocument {
    StoredDocument(
      name: try fixture.name(path), createTime: Timestamp(microseconds: 1),
      updateTime: Timestamp(microseconds: 2), fields: fields)
  }

  private func change(_ path: ResourcePath, _ before: MapValue?, _ after: MapValue?) throws -> CommittedChange
  {
    CommittedChange(
      name: try fixture.name(path), before: try before.map { try document(path, $0) },
      after: try after.map { try document(path, $0) })
  }

  private static func filter(_ field: String, _ op: FieldFilter.Operator, _ value: Value) -> Filter {
    .field(FieldFilter(FieldPath(field: field), op, value))
  }

  /// Kinds of queries, each parameterized by a number.
  static let kinds: [(name: String, query: @Sendable (Int64) throws -> StructuredQuery)] = [
    ("above", { StructuredQuery(from: [.init("c")], filter: filter("n", .greaterThan, .integer($0))) }),
    (
      "between",
      {
        StructuredQuery(
          from: [.init("c")],
          filter: .composite(
            .and,
            [
              filter("n", .greaterThanOrEqual, .integer(2 * $0)),
              filter("n", .lessThan, .integer(2 * $0 + 2)),
              filter("m", .notEqual, 1),
            ]))
      }
    ),
    (
      "element", { StructuredQuery(from: [.init("c")], filter: filter("tags", .arrayContains, .integer($0))) }
    ),
    (
      "alternatives",
      {
        StructuredQuery(
          from: [.init("c", allDescendants: true)],
          filter: filter("n", .isIn, .array([.integer(2 * $0), .integer(2 * $0 + 1)])))
      }
    ),
    (
      "cursor",
      {
        StructuredQuery(
          from: [.init("c")], orderBy: [.init(FieldPath(field: "n"))],
          startAt: Cursor([.integer($0)], before: true))
      }
    ),
    (
      "names",
      { number in
        let name = try #require(
          DocumentName(
            database: DatabaseName(project: "demo"), path: ResourcePath(["c", "d\(1_000_000 + number)"])))
        return StructuredQuery(
          from: [.init("c")], orderBy: [.init(.documentID)], startAt: Cursor([.reference(name)], before: true)
        )
      }
    ),
  ]

  @Test("a write is evaluated only against queries that may match it")
  func evaluatesCandidatesOnly() throws {
    for (name, query) in Self.kinds {
      var index = TargetIndex()
      var queries: [PreparedQuery] = []
      for number in 0..<Int64(500) {
        let query = try prepare(try query(number))
        queries.append(query)
        let isAdded = index.add(query, TargetReference(stream: stream, registration: Int(number)))
        #expect(isAdded)
      }
      // The change matches three queries of each open-ended kind, such as "above", and one query of each other kind.
      let change = try change("c/d1000002", nil, ["n": name == "above" ? 3 : 2, "m": 2, "tags": [2, 2]])
      var hits: [Int] = []
      let evaluated = index.match(change) { _, hit in hits.append(hit.registration) }
      let expected = queries.indices.filter { queries[$0].matches(change.name, change.fieldsAfter) }
      #expect(hits.sorted() == expected && !hits.isEmpty, "\(name)")
      #expect(evaluated == hits.count, "\(name): \(evaluated)")
      let other = try self.change("c/a", nil, ["m": 2])
      #expect(index.match(other) { _, _ in } == 0, "\(name)")
      for (number, query) in queries.enumerated() { index.remove(query, number) }
      #expect(index.match(change) { _, _ in } == 0, "\(name)")
    }
  }

  @Test("every query that a change affects is found, until its removal")
  func findsAffectedQueries() throws {
    var model = RandomModel(seed: 5, database: fixture.database)
    var index = TargetIndex()
    var queries: [Int: PreparedQuery] = [:]
    for number in 0..<800 {
      if model.chance(40), let removed = queries.keys.min() {
        if let query = queries.removeValue(forKey: removed) { index.remove(query, removed) }
      } else if let query = try? PreparedQuery(model.query(root: fixture.root), .standard) {
        queries[number] = query
        let isAdded = index.add(query, TargetReference(stream: stream, registration: number))
        #expect(isAdded)
      }
      let path = model.path()
      let before = model.chance(70) ? model.fields() : nil
      let after = before == nil || model.chance(70) ? model.fields() : nil
      let change = try change(path, before, after)
      var hits: [Int: (Bool, Bool)] = [:]
      index.match(change) { _, hit in
        #expect(hits[hit.registration] == nil)
        hits[hit.registration] = (hit.before, hit.after)
      }
      for (registration, query) in queries {
        let was = before.map { query.matches(change.name, $0) } ?? false
        let now = after.map { query.matches(change.name, $0) } ?? false
        let hit = hits.removeValue(forKey: registration) ?? (false, false)
        #expect(hit.0 == was && hit.1 == now, "\(query.query.structured)")
      }
      #expect(hits.isEmpty)
    }
  }

  @Test("queries without a key in the target index are limited in number, other queries are not")
  func unselectiveQueriesLimit() throws {
    var index = TargetIndex()
    index.maximumUnindexedQueries = 1_000
    func add(_ number: Int, _ op: FieldFilter.Operator) throws -> Bool {
      let query = try prepare(
        StructuredQuery(from: [.init("c")], filter: Self.filter("n", op, .integer(Int64(number)))))
      return index.add(query, TargetReference(stream: stream, registration: number))
    }
    var added = 0
    for number in 0..<1_000 where try add(number, .notEqual) { added += 1 }
    #expect(added == 1_000)
    let isOneMore = try add(added, .notEqual)
    #expect(!isOneMore)
    let isSelectiveAdded = try add(-1, .equal)
    #expect(isSelectiveAdded)
    // A query that is already in the index accepts further listeners.
    let isAddedAgain = try add(7, .notEqual)
    #expect(isAddedAgain)
  }
}

extension CommittedChange {
  fileprivate var fieldsAfter: MapValue { (try? after?.fields()) ?? [:] }
}
