// Compares the engine with a reference evaluator that implements Firestore's rules for queries by full scans. Each seed
// makes a program: random documents, indexes, queries and commits. A failing program is reduced to a minimal program and
// printed with its seed.
//
// The environment variable HEARTH_PROGRAMS sets the number of queries, and HEARTH_SEED sets the first seed.
// `make differential N=100000 SEED=1` runs many queries.

import FirestoreModel
import Foundation
import OrderedStore
import Testing

@testable import FirestoreEngine

@Suite("Differential tests") struct DifferentialTests {
  private static let environment = ProcessInfo.processInfo.environment
  private static let count = environment["HEARTH_PROGRAMS"].flatMap(Int.init) ?? 3_000
  private static let seed = environment["HEARTH_SEED"].flatMap(UInt64.init) ?? 1
  /// The number of queries that share one set of documents.
  private static let questionsPerProgram = 8

  @Test("queries, pages, aggregations, past reads and listeners agree with the reference evaluator")
  func programs() async throws {
    try await run(Self.count, RandomModel.program)
  }

  @Test("queries over values that index entries truncate agree with the reference evaluator")
  func longValues() async throws {
    try await run(max(Self.count / 20, 1), RandomModel.longValueProgram)
  }

  /// Runs programs until `count` queries have run.
  private func run(
    _ count: Int, _ makeProgram: (_ seed: UInt64, _ questions: Int) -> DifferentialProgram
  ) async throws {
    var failures = 0
    var valid = 0
    var composite = 0
    var seed = Self.seed
    while valid < count, failures < 3 {
      defer { seed += 1 }
      let program = makeProgram(seed, Self.questionsPerProgram)
      valid += program.questions.count
      if !program.indexes.indexes.isEmpty { composite += program.questions.count }
      guard let difference = await DifferentialRun.difference(program) else { continue }
      failures += 1
      let smallest = await program.shrunk()
      let now = await DifferentialRun.difference(smallest) ?? difference
      Issue.record("seed \(seed): \(now)\n\(smallest.description)\nmake differential N=1 SEED=\(seed)")
    }
    print(
      "differential: \(valid) programs, \(composite) with composite indexes, seeds \(Self.seed) to \(seed - 1), \(failures) failures"
    )
    #expect(composite > valid / 10 || count < 100)
  }
}
