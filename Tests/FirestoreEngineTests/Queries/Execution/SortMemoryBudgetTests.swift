// Tests of the memory budget that all queries share if no index provides their order, and of the selection of the first
// elements of a result without sorting all elements.

import Access
import FirestoreModel
import Locking
import OrderedStore
import RandomModels
import Testing

@testable import FirestoreEngine

@Suite("Memory for sorting", .timeLimit(.minutes(5))) struct SortMemoryBudgetTests {
  private struct Disconnected: Error {}

  @Test(
    "queries that hold sorted results for slow clients share one memory budget, and release it however they end"
  )
  func shared() async throws {
    // The results are about 1.3 MB, in two pages.
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
    let sorting = fixture.engine.sortMemory
    let pages = Collected<Int>()
    try await fixture.engine.runQuery(query, as: .administrator) { page in
      pages.append(page.documents.count)
      guard !page.isLast else { return }
      #expect(sorting.reservedBytes > 1_200_000)
      let second = await failure { try await fixture.query(structured) }
      #expect(second?.code == .resourceExhausted)
      #expect(second?.message.contains("2000000 bytes for all queries") == true)
      // A query in index order reserves nothing.
      let ordered = try await fixture.query(StructuredQuery(from: [.init("c")]))
      #expect(ordered.count == 300)
    }
    #expect(pages.all.count > 1 && pages.all.reduce(0, +) == 300)
    #expect(sorting.reservedBytes == 0)
    await #expect(throws: Disconnected.self) {
      try await fixture.engine.runQuery(query, as: .administrator) { _ in throw Disconnected() }
    }
    #expect(sorting.reservedBytes == 0)
    #expect(try await fixture.query(structured).count == 300)
    var request = ListDocumentsRequest(parent: fixture.root, collectionID: "c", pageSize: 10)
    request.orderBy = "b, a"
    #expect(try await fixture.engine.listDocuments(request, as: .administrator).documents.count == 10)
    #expect(sorting.reservedBytes == 0)
  }

  @Test("the first elements equal those of the sorted list, and a later element costs one comparison")
  func leadingElements() {
    var random = SeededGenerator(seed: 3)
    for wanted in [1, 2, 7, 100, .max] {
      let all = (0..<300).map { _ in Int.random(in: 0..<1_000_000, using: &random) }
      var first = TopKElements<Int>(wanted) { $0 < $1 }
      var dropped: [Int] = []
      for element in all {
        if let one = first.add(element) { dropped.append(one) }
        #expect(first.count <= wanted)
      }
      let kept = first.takeSorted()
      #expect(kept == Array(all.sorted().prefix(wanted)))
      #expect((kept + dropped).sorted() == all.sorted() && first.isEmpty)
    }
    func comparisons(_ elements: some Sequence<Int>) -> Int {
      let count = Guarded(0)
      var first = TopKElements<Int>(1_000) { a, b in
        count.withLock { $0 += 1 }
        return a < b
      }
      for element in elements { _ = first.add(element) }
      return count.withLock { $0 }
    }
    #expect(comparisons(0..<20_000) < 20_000 + 3_000)
    // In reverse order every added element displaces an earlier element.
    #expect(comparisons((0..<20_000).reversed()) < 20_000 * 22)
  }
}
