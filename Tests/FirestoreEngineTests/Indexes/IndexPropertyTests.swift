// Tests random queries over random indexes. Results never depend on the indexes. In strict mode, a query fails without
// the indexes that Firebase requires, and each index that its error requests serves the query. The environment variable
// HEARTH_QUERY_PROGRAMS sets the number of queries.

import Access
import FirestoreModel
import Foundation
import OrderedStore
import Testing

@testable import FirestoreEngine

@Suite("Random queries over random indexes", .timeLimit(.minutes(10))) struct IndexPropertyTests {
  private static let count =
    ProcessInfo.processInfo.environment["HEARTH_QUERY_PROGRAMS"].flatMap(Int.init) ?? 2_000

  private static func documents(_ model: inout RandomModel) -> [ResourcePath: MapValue] {
    var documents: [ResourcePath: MapValue] = [:]
    for _ in 0..<Int.random(in: 1...25, using: &model.random) { documents[model.path()] = model.fields() }
    return documents
  }

  private static func expected(
    _ query: Query, _ documents: [ResourcePath: MapValue], _ fixture: EngineFixture
  ) -> [ResourcePath] {
    ReferenceEvaluator(database: fixture.database, documents: documents).result(of: query).map(\.path)
  }

  @Test(
    "results depend neither on the indexes nor on whether indexes were built before or after the documents")
  func resultsIgnoreIndexes() async throws {
    var valid = 0
    var composite = 0
    var seed: UInt64 = 0
    while valid < Self.count {
      seed += 1
      var model = RandomModel(seed: seed &* 104_729, database: DatabaseName(project: "demo"))
      let documents = Self.documents(&model)
      let fixture = try EngineFixture()
      let queries = (0..<20).map { _ in model.query(root: fixture.root) }
      var configuration = model.indexes()
      for query in queries where model.chance(40) { try configuration.add(for: query) }
      let isEarly = model.chance(50)
      if isEarly { try await fixture.setIndexes(configuration) }
      try await fixture.commit(
        try documents.map { Write(.update(try fixture.name($0.key), fields: $0.value)) })
      if !isEarly { try await fixture.setIndexes(configuration, untilStable: model.chance(50)) }
      for query in queries {
        guard (try? NormalizedQuery(query)) != nil else { continue }
        valid += 1
        let pages = Collected<QueryPage>()
        try await fixture.engine.runQuery(query, explain: .analyze, as: .administrator) { pages.append($0) }
        let found = pages.all.flatMap(\.documents).map(\.name.path)
        let expected = Self.expected(query, documents, fixture)
        let used = pages.all.last?.explanation?.indexesUsed ?? []
        if used.contains(where: { $0.properties.filter { $0 == "," }.count > 1 }) { composite += 1 }
        if found != expected {
          Issue.record(
            "seed \(seed): \(found), not \(expected)\n\(query.structured)\n\(configuration)\nby \(used)\n\(documents)"
          )
          return
        }
      }
      let report = try await fixture.check()
      #expect(report.isConsistent, "seed \(seed): \(report)")
    }
    #expect(composite > valid / 20, "composite indexes were used \(composite) times in \(valid)")
  }

  @Test("strict mode rejects a query until the indexes that its errors link to exist")
  func strictMode() async throws {
    var valid = 0
    var rejections = 0
    var seed: UInt64 = 0
    while valid < Self.count / 8 {
      seed += 1
      var model = RandomModel(seed: seed &* 15_485_863, database: DatabaseName(project: "demo"))
      let documents = Self.documents(&model)
      let fixture = try EngineFixture(strict: true)
      try await fixture.commit(
        try documents.map { Write(.update(try fixture.name($0.key), fields: $0.value)) })
      var configuration = DatabaseIndexConfiguration()
      for _ in 0..<4 {
        let query = model.query(root: fixture.root)
        guard (try? NormalizedQuery(query)) != nil else { continue }
        valid += 1
        for attempt in 0... {
          do {
            let found = try await fixture.query(query).map(\.name.path)
            let expected = Self.expected(query, documents, fixture)
            #expect(found == expected, "seed \(seed): \(query.structured)\n\(configuration)\n\(documents)")
            break
          } catch let error as FirestoreError where error.code == .failedPrecondition && attempt < 40 {
            rejections += 1
            let message = error.message
            let before = configuration
            guard configuration.add(linkedFrom: message), configuration != before else {
              Issue.record("seed \(seed): no new index from \(message)\n\(query.structured)")
              return
            }
            try await fixture.setIndexes(configuration)
          }
        }
      }
    }
    #expect(rejections > valid / 4, "\(rejections) refusals in \(valid) queries")
  }
}
