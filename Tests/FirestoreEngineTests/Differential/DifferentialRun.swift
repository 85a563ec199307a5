// Runs a program of the differential test on an engine, and compares every result with that of the reference evaluator. A
// run has latest and past reads, pages by cursors, aggregations, and listeners over two streams.

import Access
import FirestoreModel
import OrderedStore

@testable import FirestoreEngine

/// The state of a running program.
struct DifferentialRun {
  /// A description of the first wrong result.
  struct Difference: Error { var message: String }

  private typealias State = [ResourcePath: MapValue]

  private static let probe: ResourcePath = "probe/x"
  private static let probeTarget: Int32 = 1_001

  private let program: DifferentialProgram
  private let timeout: UInt64
  private let fixture: EngineFixture
  private var state: State = [:]
  private var commitCount: Int64 = 0

  /// Runs a program and describes the first difference; nil if every result is correct.
  /// - Parameter timeout: Microseconds to wait for a listener's snapshot.
  static func difference(_ program: DifferentialProgram, timeout: UInt64 = 30_000_000) async -> String? {
    do {
      var run = try DifferentialRun(program, timeout)
      try await run.runAll()
      return nil
    } catch let difference as Difference {
      return difference.message
    } catch {
      return "\(error)"
    }
  }

  private init(_ program: DifferentialProgram, _ timeout: UInt64) throws {
    self.program = program
    self.timeout = timeout
    fixture = try EngineFixture(maximumScanRows: program.maximumScanRows)
  }

  private mutating func runAll() async throws {
    let hasIndexes = program.indexes != DatabaseIndexConfiguration()
    if hasIndexes, program.indexTime == .before { try await fixture.setIndexes(program.indexes) }
    var last = try await commit(program.documents.map { ($0.path, $0.fields) })
    if hasIndexes, program.indexTime != .before {
      try await fixture.setIndexes(program.indexes, untilStable: program.indexTime == .afterCleanup)
    }
    let first = (time: last, state: state)
    for question in program.questions { try await compareAll(question) }
    var listener = try await listen(WatchClient())
    try await compare(listener.client, at: last)
    for (index, changes) in program.commits.enumerated() {
      if index % 2 == 1 {
        listener.stream.close()
        listener = try await listen(WatchClient(), after: listener.client.view)
      }
      last = try await commit(changes)
      for question in program.questions { try await compare(question) }
      try await compare(listener.client, at: last)
    }
    listener.stream.close()
    if !program.commits.isEmpty {
      for question in program.questions { try await compare(question, first.state, at: first.time) }
    }
    let report = try await fixture.check()
    guard report.isConsistent else { throw Difference(message: "the check finds: \(report)") }
  }

  /// Commits the changes, and a probe document that changes in every commit.
  private mutating func commit(_ changes: [DifferentialProgram.Change]) async throws -> Timestamp {
    var writes: [Write] = []
    for (path, fields) in changes {
      let name = try fixture.name(path)
      writes.append(Write(fields.map { .update(name, fields: $0) } ?? .delete(name)))
      state[path] = fields?.stored
    }
    // The probe gets a new value each time, because a write that changes nothing notifies no listener.
    commitCount += 1
    writes.append(Write(.update(try fixture.name(Self.probe), fields: ["n": .integer(commitCount)])))
    guard let time = try await fixture.commit(writes).commitTime else {
      throw Difference(message: "a commit without a time")
    }
    // The reference evaluator's documents include the probe, because queries over every collection match the probe.
    state[Self.probe] = try await fixture.get(Self.probe)
    return time
  }

  // MARK: Queries

  private func compareAll(_ question: DifferentialProgram.Question) async throws {
    try await compare(question)
    if let size = question.pageSize { try await comparePages(question, size) }
    if !question.aggregates.isEmpty { try await compareAggregates(question) }
  }

  private func expected(_ question: DifferentialProgram.Question, _ state: State) -> [(
    path: ResourcePath, fields: MapValue
  )] {
    let reference = ReferenceEvaluator(database: fixture.database, documents: state)
    guard question.isToLast else { return reference.result(of: question.query) }
    var all = question.query
    all.structured.limit = nil
    return Array(reference.result(of: all).suffix(question.query.structured.limit ?? 0))
  }

  private func compare(
    _ question: DifferentialProgram.Question, _ past: State? = nil, at time: Timestamp? = nil
  )
    async throws
  {
    let found = try await fixture.query(question.engineQuery, time.map { .readTime($0) } ?? .latest)
    try expectEqual(
      question.isToLast ? found.reversed() : found, expected(question, past ?? state),
      time == nil ? "the query" : "the query at a past time")
  }

  private func expectEqual(
    _ found: [StoredDocument], _ expected: [(path: ResourcePath, fields: MapValue)], _ subject: String
  ) throws {
    guard found.map(\.name.path) == expected.map(\.path) else {
      throw Difference(message: "\(subject) found \(found.map(\.name.path)), not \(expected.map(\.path))")
    }
    for (document, (path, fields)) in zip(found, expected) where try document.fields() != fields {
      throw Difference(message: "\(subject) found \(path) as \(try document.fields()), not \(fields)")
    }
  }

  /// Compares the concatenated pages with the complete result.
  private func comparePages(_ question: DifferentialProgram.Question, _ size: Int) async throws {
    var query = question.query
    query.structured.offset = 0
    query.structured.limit = nil
    let reference = ReferenceEvaluator(database: fixture.database, documents: state)
    let expected = reference.result(of: query)
    query.structured.limit = size
    var found: [StoredDocument] = []
    for _ in 0...expected.count {
      let page = try await fixture.query(query)
      found += page
      guard page.count == size, let last = page.last?.name.path else { break }
      query.structured.startAt = Cursor(reference.cursorValues(last, query.structured), before: false)
    }
    try expectEqual(found, expected, "pages of \(size)")
  }

  private func compareAggregates(_ question: DifferentialProgram.Question) async throws {
    let query = question.query
    let aggregation = AggregationQuery(query.structured, question.aggregates.map { .init("", $0) })
    let result = try await fixture.engine.runAggregationQuery(
      aggregation, under: query.parent, as: .administrator)
    let found = question.aggregates.indices.map { result.fields["field_\($0 + 1)"] ?? .string("missing") }
    let expected = ReferenceEvaluator(database: fixture.database, documents: state)
      .aggregates(query, question.aggregates)
    guard zip(found, expected).allSatisfy({ Self.isSame($0, $1) }) else {
      throw Difference(message: "aggregates are \(found), not \(expected)")
    }
  }

  /// Compares two aggregates. Sums may differ in the last bits, because the order of additions is not
  /// defined.
  private static func isSame(_ a: Value, _ b: Value) -> Bool {
    guard case .double(let one) = a, case .double(let other) = b else { return a == b }
    return one == other || (one.isNaN && other.isNaN) || abs(one - other) <= abs(one) * 1e-12
  }

  // MARK: Listeners

  private func listen(_ client: WatchClient, after previous: WatchClient.View? = nil) async throws -> (
    client: WatchClient, stream: WatchStream
  ) {
    let stream = try await fixture.watch(client)
    if let previous { client.setCachedDocuments(previous.snapshots.last?.documents ?? [:]) }
    let start = previous.map { WatchTarget.Start.resumeToken($0.token) } ?? .beginning
    for (index, question) in program.questions.enumerated() {
      stream.addTarget(WatchTarget(id: Int32(index * 2 + 2), .query(question.engineQuery), start: start))
    }
    stream.addTarget(
      WatchTarget(id: Self.probeTarget, .documents([try fixture.name(Self.probe)]), start: start))
    return (client, stream)
  }

  private func compare(_ client: WatchClient, at time: Timestamp) async throws {
    let wanted = Set(program.questions.indices.map { Int32($0 * 2 + 2) } + [Self.probeTarget])
    let clock = SystemClock()
    let deadline = clock.now() + timeout
    var view = client.view
    while view.failure == nil, view.violations.isEmpty,
      !(view.snapshots.last.map { $0.time >= time && wanted.isSubset(of: $0.documents.keys) } ?? false)
    {
      guard clock.now() < deadline else {
        throw Difference(message: "the listener receives no further snapshot")
      }
      try await Task.sleep(nanoseconds: 500_000)
      view = client.view
    }
    guard view.failure == nil, view.violations.isEmpty, let snapshot = view.snapshots.last else {
      throw Difference(message: "the listener: \(view.violations) \(view.failure.map { "\($0)" } ?? "")")
    }
    for (index, question) in program.questions.enumerated() {
      let found = snapshot.documents[Int32(index * 2 + 2)] ?? [:]
      let expected = expected(question, state)
      guard Set(found.keys) == Set(expected.map(\.path)) else {
        throw Difference(
          message: "the listener has \(found.keys.sorted()), not \(expected.map(\.path).sorted())")
      }
      for (path, fields) in expected {
        guard let document = found[path], try document.fields() == fields else {
          throw Difference(message: "the listener has \(path) otherwise than \(fields)")
        }
      }
    }
  }
}
