// Tests the log messages that recommend an index for an expensive query.

import FirestoreModel
import OrderedStore
import Testing

@testable import FirestoreEngine

@Suite("Index advice", .timeLimit(.minutes(10))) struct IndexAdviceTests {
  private static let a = FieldPath(field: "a")
  private static let b = FieldPath(field: "b")

  @Test("a query that scans many rows for few results logs its index once, as JSON of the configuration file")
  func advice() async throws {
    let reports = Collected<String>()
    let fixture = try EngineFixture(report: { reports.append($0) })
    for start in stride(from: 0, to: 3_000, by: 500) {
      try await fixture.commit(
        try (start..<start + 500).map { index in
          Write(
            .update(
              try fixture.name(ResourcePath(["c", "d\(index)"])),
              fields: ["a": .integer(index < 1_500 ? 0 : 1), "b": .integer(Int64(index))]))
        })
    }
    let filter = Filter.field(FieldFilter(Self.a, .equal, 1))
    let costly = StructuredQuery(
      from: [.init("c")], filter: filter, orderBy: [.init(Self.b)], limit: 10)
    // A query that returns all that it scans, or scans little, logs nothing.
    #expect(try await fixture.query(StructuredQuery(from: [.init("c")], filter: filter)).count == 1_500)
    var small = costly
    small.filter = .field(FieldFilter(Self.a, .equal, 0))
    #expect(try await fixture.query(small).count == 10)
    #expect(reports.all.filter { $0.contains("would make it faster") } == [])

    for _ in 0..<2 { #expect(try await fixture.query(costly).count == 10) }
    let lines = reports.all.filter { $0.contains("would make it faster") }
    #expect(lines.count == 1)
    let element =
      #"{"collectionGroup":"c","queryScope":"COLLECTION","fields":[{"fieldPath":"a","order":"ASCENDING"},"#
      + #"{"fieldPath":"b","order":"ASCENDING"}]}"#
    #expect(lines.first?.hasSuffix(#"add to "indexes" in firestore.indexes.json "# + element) == true)
    #expect(lines.first?.contains("for 10 results") == true)
  }

  @Test("the recommended JSON is an element of firestore.indexes.json")
  func recommendedJSON() throws {
    let odd = try #require(FieldPath(segments: ["a\"\n", "b"]))
    let group = CompositeIndex(
      collectionID: "c", scope: .collectionGroup, parts: [.init(Self.a, .descending)], namesDescend: true)
    let single = try #require(MissingIndex.single(group).configuration)
    #expect(single.list == "fieldOverrides")
    #expect(
      single.text
        == #"{"collectionGroup":"c","fieldPath":"a","indexes":[{"queryScope":"COLLECTION","order":"ASCENDING"},"#
        + #"{"queryScope":"COLLECTION","order":"DESCENDING"},{"queryScope":"COLLECTION","arrayConfig":"CONTAINS"},"#
        + #"{"queryScope":"COLLECTION_GROUP","order":"DESCENDING"}]}"#)
    let index = CompositeIndex(
      collectionID: "c", scope: .collectionGroup, parts: [.init(odd, .contains), .init(Self.b, .ascending)],
      namesDescend: true)
    let text = try #require(MissingIndex.composite(index, .unknown).configuration?.text)
    #expect(!text.contains("\n"))
    #expect(
      text.hasSuffix(
        #"{"fieldPath":"b","order":"ASCENDING"},{"fieldPath":"__name__","order":"DESCENDING"}]}"#))
    for status in [MissingIndex.Status.building, .failed("c/d: why")] {
      #expect(MissingIndex.composite(index, status).configuration == nil)
    }
  }
}
