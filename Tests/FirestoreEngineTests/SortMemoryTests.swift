// What queries that no index orders hold together, and the first few of many elements.

import FirestoreModel
import Locking
import OrderedStore
import RandomModels
import Testing

@testable import FirestoreEngine

@Suite("Memory for sorting", .timeLimit(.minutes(5))) struct SortMemoryTests {
  private struct Gone: Error {}

  @Test("queries that hold results for slow readers share one budget, and give it back however they end")
  func shared() async throws {
    // About 1.3 MB of results, in two pages.
    let fixture = try EngineFixture(sortMemory: 2_000_000)
    let bytes = Value.bytes([UInt8](repeating: 1, count: 4_000))
    try await fixture.commit(
      try (0..<300).map { index in
        Write(
          .update(
            try fixture.name(ResourcePath(["c", "d\(index)"])),
            fields: ["a": .integer(Int64(index * 7 % 300)), "b": 1, "x": bytes]))
      })
    let structured = StructuredQuery(
      from: [.init("c", allDescendants: true)],
      orderBy: [.init(FieldPath(field: "b")), .init(FieldPath(field: "a"))])
    let query = Query(parent: fixture.root, structured)
    let sorting = fixture.engine.sorting
    let pages = Collected<Int>()
    try await fixture.engine.runQuery(query, as: .administrator) { page in
      pages.append(page.documents.count)
      guard !page.isLast else { return }
      #expect(sorting.used > 1_200_000)
      let second = await failure { try await fixture.query(structured) }
      #expect(second?.code == .resourceExhausted)
      #expect(second?.message.contains("2000000 in all") == true)
      // What an index orders holds nothing.
      let ordered = try await fixture.query(StructuredQuery(from: [.init("c")]))
      #expect(ordered.count == 300)
    }
    #expect(pages.all.count > 1 && pages.all.reduce(0, +) == 300)
    #expect(sorting.used == 0)
    await #expect(throws: Gone.self) {
      try await fixture.engine.runQuery(query, as: .administrator) { _ in throw Gone() }
    }
    #expect(sorting.used == 0)
    #expect(try await fixture.query(structured).count == 300)
    var request = ListDocumentsRequest(parent: fixture.root, collectionID: "c", pageSize: 10)
    request.orderBy = "b, a"
    #expect(try await fixture.engine.listDocuments(request, as: .administrator).documents.count == 10)
    #expect(sorting.used == 0)
  }

  @Test("the first elements are those of the sorted list, and one that comes later costs one comparison")
  func leading() {
    var random = SeededGenerator(seed: 3)
    for wanted in [1, 2, 7, 100, .max] {
      let all = (0..<300).map { _ in Int.random(in: 0..<1_000_000, using: &random) }
      var first = LeadingElements<Int>(wanted) { $0 < $1 }
      var dropped: [Int] = []
      for element in all {
        if let one = first.add(element) { dropped.append(one) }
        #expect(first.count <= wanted)
      }
      let kept = first.take()
      #expect(kept == Array(all.sorted().prefix(wanted)))
      #expect((kept + dropped).sorted() == all.sorted() && first.isEmpty)
    }
    func comparisons(_ elements: some Sequence<Int>) -> Int {
      let count = Guarded(0)
      var first = LeadingElements<Int>(1_000) { a, b in
        count.withLock { $0 += 1 }
        return a < b
      }
      for element in elements { _ = first.add(element) }
      return count.withLock { $0 }
    }
    #expect(comparisons(0..<20_000) < 20_000 + 3_000)
    // Each displaces another.
    #expect(comparisons((0..<20_000).reversed()) < 20_000 * 22)
  }
}
