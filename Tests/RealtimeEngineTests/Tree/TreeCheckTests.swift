// Tests that the consistency check of a stored tree finds rows that the engine never writes.

import Access
import OrderedStore
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite(.timeLimit(.minutes(2))) struct TreeCheckTests {
  @Test("The engine's rows are consistent; invalid values and values above children are reported")
  func faults() async throws {
    let store = try MemoryStore()
    let engine = RealtimeEngine(store: store, policy: OpenPolicy())
    let database = try await engine.database("shop")
    let goods = Node.object([("tea", .leaf(.int(4))), ("milk", .leaf(.string("none")))])
    _ = try await database.set("goods", to: goods, as: .nobody)
    _ = try await database.set("goods/.priority", to: .leaf(.int(2)), as: .nobody)
    #expect(try await TreeCheck.run(store) == [TreeReport(namespace: "shop", leaves: 2)])

    let rows = try await store.database(
      named: RealtimeEngine.cataloguePrefix + "shop", history: .activeReadersOnly)
    _ = try await rows.execute(validating: nil) { writer in
      try writer.set(RowKeys.row(of: "goods/tea"), [0x77])
      try writer.set(RowKeys.row(of: "goods"), NodeEncoder.encode(.leaf(.bool(true))))
      try writer.set([RowKeys.tree, 0xFF, 0x00], NodeEncoder.encode(.leaf(.bool(true))))
    }
    let report = try #require(try await TreeCheck.run(store).first)
    #expect(report.problemCount == 5)
    #expect(
      report.problems == [
        "/goods: lies below a location that has a value itself",
        "/goods/milk: lies below a location that has a value itself",
        "/goods/tea: the row's value cannot be read",
        "/goods/tea: lies below a location that has a value itself", "74ff00: the row's key is no path",
      ])
    try await store.close()
  }
}
