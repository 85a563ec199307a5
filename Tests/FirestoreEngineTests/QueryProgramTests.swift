// Random schemas, documents and queries against an evaluator that knows only the product's rules. A program that fails
// is made as small as it can be and printed. HEARTH_QUERY_PROGRAMS sets how many run; a few hundred by default.

import FirestoreModel
import Foundation
import OrderedStore
import Testing

@testable import FirestoreEngine

@Suite struct QueryProgramTests {
  /// Documents and one query over them.
  struct Program {
    var documents: [(path: ResourcePath, fields: MapValue)]
    var query: Query
    /// Asked for the last results, as clients do: from the other end, and turned round.
    var isToLast: Bool

    var description: String {
      var lines = documents.map { "  \($0.path): \($0.fields)" }
      lines.append("  query under \(query.parent.path)\(isToLast ? ", to last" : ""): \(query.structured)")
      return lines.joined(separator: "\n")
    }
  }

  private static let count =
    ProcessInfo.processInfo.environment["HEARTH_QUERY_PROGRAMS"].flatMap(Int.init) ?? 400
  /// Queries over one set of documents.
  private static let queriesEach = 8

  @Test(
    "every query gives what the product's rules give, also if it pauses wherever it can",
    arguments: [EngineLimits.scanRows, 1, 7])
  func programs(scanRows: Int) async throws {
    var failures = 0
    var valid = 0
    var seed: UInt64 = 1
    while valid < Self.count, failures < 3 {
      defer { seed += 1 }
      var model = RandomModel(seed: seed &* 7_919, database: DatabaseName(project: "demo"))
      var documents: [ResourcePath: MapValue] = [:]
      for _ in 0..<Int.random(in: 1...25, using: &model.random) { documents[model.path()] = model.fields() }
      let rows = documents.map { (path: $0.key, fields: $0.value) }.sorted { $0.path < $1.path }
      let fixture = try await Self.fixture(rows, scanRows: scanRows)
      for _ in 0..<Self.queriesEach {
        var query = model.query(root: fixture.root)
        let isToLast = model.chance(25) && !query.structured.orderBy.isEmpty && query.structured.limit != nil
        if isToLast { query.structured.offset = 0 }
        guard (try? NormalizedQuery(query)) != nil else { continue }
        valid += 1
        let program = Program(documents: rows, query: query, isToLast: isToLast)
        guard let difference = try await Self.difference(program, fixture) else { continue }
        failures += 1
        let least = try await Self.shrunk(program, scanRows)
        Issue.record("seed \(seed): \(difference)\n\(least.description)")
        break
      }
    }
  }

  /// - Parameter scanRows: so few that a query pauses wherever it can.
  private static func fixture(
    _ documents: [(path: ResourcePath, fields: MapValue)], scanRows: Int = EngineLimits.scanRows
  ) async throws -> EngineFixture {
    let fixture = try EngineFixture(scanRows: scanRows)
    if !documents.isEmpty {
      try await fixture.commit(
        try documents.map { Write(.update(try fixture.name($0.path), fields: $0.fields)) })
    }
    return fixture
  }

  /// What is wrong with the engine's answer; nil if nothing is.
  private static func difference(_ program: Program, _ fixture: EngineFixture) async throws -> String? {
    let reference = ReferenceEvaluator(
      database: fixture.database,
      documents: Dictionary(program.documents.map { ($0.path, $0.fields) }, uniquingKeysWith: { $1 }))
    var asked = program.query
    var expected: [(path: ResourcePath, fields: MapValue)]
    if program.isToLast {
      asked.structured = asked.structured.reversed
      var all = program.query
      all.structured.limit = nil
      expected = Array(reference.result(of: all).suffix(program.query.structured.limit ?? 0))
    } else {
      expected = reference.result(of: program.query)
    }
    let found: [StoredDocument]
    do {
      let result = try await fixture.query(asked)
      found = program.isToLast ? result.reversed() : result
    } catch { return "\(error)" }
    if found.map(\.name.path) != expected.map(\.path) {
      return "found \(found.map(\.name.path)), not \(expected.map(\.path))"
    }
    for (document, (path, fields)) in zip(found, expected) where try document.fields() != fields.stored {
      return "\(path) is \(try document.fields()), not \(fields)"
    }
    return nil
  }

  // MARK: Shrinking

  /// A smallest program that still fails: no document and no part of the query can be left out.
  private static func shrunk(_ program: Program, _ scanRows: Int) async throws -> Program {
    var least = program
    var goesOn = true
    while goesOn {
      goesOn = false
      for smaller in candidates(least) where (try? NormalizedQuery(smaller.query)) != nil {
        if try await difference(smaller, try await fixture(smaller.documents, scanRows: scanRows)) != nil {
          least = smaller
          goesOn = true
          break
        }
      }
    }
    return least
  }

  private static func candidates(_ program: Program) -> [Program] {
    var smaller: [Program] = []
    for index in program.documents.indices {
      var one = program
      one.documents.remove(at: index)
      smaller.append(one)
    }
    func change(_ body: (inout StructuredQuery) -> Void) {
      var one = program
      body(&one.query.structured)
      if one.query != program.query { smaller.append(one) }
    }
    change { $0.filter = nil }
    for part in parts(of: program.query.structured.filter) { change { $0.filter = part } }
    change { $0.startAt = nil }
    change { $0.endAt = nil }
    change { $0.offset = 0 }
    change { $0.limit = nil }
    change { $0.select = nil }
    for index in program.query.structured.orderBy.indices { change { $0.orderBy.remove(at: index) } }
    if program.isToLast {
      var one = program
      one.isToLast = false
      smaller.append(one)
    }
    for (index, document) in program.documents.enumerated() {
      for entry in document.fields.entries {
        var one = program
        one.documents[index].fields[entry.key] = nil
        smaller.append(one)
      }
    }
    return smaller
  }

  /// The filter with one part less, or one of its parts alone.
  private static func parts(of filter: Filter?) -> [Filter] {
    guard case .composite(let op, let parts)? = filter else { return [] }
    var smaller = parts
    if parts.count > 1 {
      for index in parts.indices {
        var rest = parts
        rest.remove(at: index)
        smaller.append(.composite(op, rest))
      }
    }
    for (index, part) in parts.enumerated() {
      for less in self.parts(of: part) {
        var changed = parts
        changed[index] = less
        smaller.append(.composite(op, changed))
      }
    }
    return smaller
  }
}
