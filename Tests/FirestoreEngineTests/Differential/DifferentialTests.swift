// Random schemas, documents, indexes, queries and later changes against an evaluator that knows only the product's rules
// and goes over the whole collection. A program that fails is made as small as it can be and printed with its seed.
//
// HEARTH_PROGRAMS sets how many programs run, a program being one query over its schema, documents, indexes and changes;
// HEARTH_SEED where the seeds begin. `make differential N=100000 SEED=1` is the long run.

import FirestoreModel
import Foundation
import OrderedStore
import Testing

@testable import FirestoreEngine

@Suite struct DifferentialTests {
  private static let environment = ProcessInfo.processInfo.environment
  private static let count = environment["HEARTH_PROGRAMS"].flatMap(Int.init) ?? 3_000
  private static let seed = environment["HEARTH_SEED"].flatMap(UInt64.init) ?? 1
  /// Queries over one set of documents.
  private static let questionsEach = 8

  @Test("planner, cursors, aggregates, past reads and listeners give what the product's rules give")
  func programs() async throws {
    var failures = 0
    var valid = 0
    var composite = 0
    var seed = Self.seed
    while valid < Self.count, failures < 3 {
      defer { seed += 1 }
      let program = RandomModel.program(seed: seed, questions: Self.questionsEach)
      valid += program.questions.count
      if !program.indexes.indexes.isEmpty { composite += program.questions.count }
      guard let difference = await DifferentialRun.difference(program) else { continue }
      failures += 1
      let least = await program.shrunk()
      let now = await DifferentialRun.difference(least) ?? difference
      Issue.record("seed \(seed): \(now)\n\(least.description)\nmake differential N=1 SEED=\(seed)")
    }
    print(
      "differential: \(valid) programs, \(composite) beside composite indexes, seeds \(Self.seed) to \(seed - 1), \(failures) failures"
    )
    #expect(composite > valid / 10 || Self.count < 100)
  }
}
