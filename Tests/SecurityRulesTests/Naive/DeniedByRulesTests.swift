// Tests random rules on a real engine: no response contains a document that the naive evaluator denies. The naive
// evaluator is a second, simple implementation of Firestore rules.
//
// A read or write of one document is denied exactly if the naive evaluator denies it. Queries are proved from their
// filters; here the naive evaluator must grant `list` for each document that a query, a count or a listen returns. The
// environment variable HEARTH_RULES_PROGRAMS, which `NaiveComparisonTests` explains, also sets the length of this run.

import Access
import FirestoreModel
import JSON
import Locking
import OrderedStore
import RandomModels
import Testing

@testable import FirestoreEngine
@testable import SecurityRules

@Suite("Random rules on an engine", .timeLimit(.minutes(30))) struct DeniedByRulesTests {
  private static let count = max(1, NaiveComparisonTests.count / 3)

  @Test("gets, queries, counts, listens and commits return no denied document")
  func programs() async throws {
    var total = Counts()
    for seed in NaiveComparisonTests.seed..<NaiveComparisonTests.seed + Self.count {
      let ruledEngine = try await RuledEngine(seed: seed)
      for _ in 0..<40 { try await ruledEngine.step() }
      total.add(ruledEngine.counts)
    }
    print(
      "rules on engines: \(Self.count) programs, \(total.decisions) decisions, \(total.granted) granted,"
        + " \(total.returned) documents returned")
    #expect(total.granted > 0 && total.returned > 0)
  }
}

/// The decisions of a run.
private struct Counts {
  var decisions = 0
  var granted = 0
  /// Documents that queries and listens have returned.
  var returned = 0

  mutating func add(_ other: Counts) {
    decisions += other.decisions
    granted += other.granted
    returned += other.returned
  }
}

/// An engine with random rules, and the naive evaluator's view of its documents.
private final class RuledEngine {
  private let seed: UInt64
  private let tree: SyntaxTree
  private let engine: FirestoreEngine
  private let database = DatabaseName(project: "demo")
  private var program: RandomRules
  private var documents: [ResourcePath: MapValue]
  private(set) var counts = Counts()

  init(seed: UInt64) async throws {
    self.seed = seed
    program = RandomRules(seed: seed &+ 1_000_000)
    let source = program.file()
    tree = NaiveEvaluator.parse(source)
    engine = FirestoreEngine(
      store: try MemoryStore(), policy: FirestoreRulesPolicy(try FirestoreRuleset(compiling: source)),
      options: FirestoreEngine.Options(createsDatabases: true))
    documents = NaiveComparisonTests.documents(&program)
    for path in documents.keys {
      documents[path] = MapValue(
        (documents[path]?.entries ?? []).map { ($0.key, $0.value) } + [("marker", .string("mark-\(path)"))])
    }
    var writes: [Write] = []
    for (path, fields) in documents { writes.append(Write(.update(try name(path), fields: fields))) }
    _ = try await engine.commit(in: database, writes, as: .administrator)
  }

  private func name(_ path: ResourcePath) throws -> DocumentName {
    try #require(DocumentName(database: database, path: path))
  }

  private typealias Caller = (uid: String, claims: MapValue)

  private func principal(_ caller: Caller?) -> Principal {
    guard let caller else { return .nobody }
    var claims = JSONObject()
    claims["sub"] = .string(caller.uid)
    claims["admin"] = caller.claims["admin"] == .boolean(true) ? .bool(true) : .bool(false)
    claims["roles"] = .array([.string("a"), .int(1)])
    return Principal(.user(User(claims)))
  }

  private func naiveEvaluator(_ caller: Caller?, after: [ResourcePath: MapValue]? = nil) -> NaiveEvaluator {
    NaiveEvaluator(
      tree, before: documents, after: after, caller: caller.map { ($0.uid, NaiveValue.fields($0.claims)) })
  }

  /// The error of a request; nil if it succeeds.
  private func failure(_ request: () async throws -> Void) async throws -> FirestoreError? {
    do { try await request() } catch let error as FirestoreError { return error }
    return nil
  }

  /// Sends one random request and checks its outcome.
  func step() async throws {
    let caller = program.caller()
    let collection = program.pick(RandomRules.collections)
    let path = ResourcePath([collection, program.pick(["a", "b", "none"])])
    switch program.below(8) {
    case 0, 1: try await get([path], caller)
    case 2: try await get([path, ResourcePath([program.pick(RandomRules.collections), "a"])], caller)
    case 3, 4: try await query(query(collection), caller)
    case 5: try await listen(query(collection), caller)
    default: try await commit(path, caller)
    }
  }

  private func expect(_ condition: Bool, _ description: String) {
    counts.decisions += 1
    #expect(condition, "seed \(seed): \(description)")
  }

  private func get(_ paths: [ResourcePath], _ caller: Caller?) async throws {
    let naive = naiveEvaluator(caller)
    let isGranted = try paths.allSatisfy { try naive.allows("get", $0) }
    let text = Guarded("")
    let error = try await failure {
      try await engine.batchGetDocuments(in: database, try paths.map(name), as: principal(caller)) { page in
        for case .found(let document) in page.items {
          let fields = try document.fields()
          text.withLock { $0 += "\(document.name) \(fields)" }
        }
      }
    }
    if error == nil { counts.granted += 1 }
    expect((error == nil) == isGranted, "get \(paths) by \(caller?.uid ?? "nobody")")
    if !isGranted {
      expect(
        error?.code == .permissionDenied && !text.withLock { $0 }.contains("mark"), "denied get \(paths)")
      expect(!(error?.message.contains("mark") ?? false), "denied get \(paths)")
    }
  }

  private func query(_ collection: String) -> StructuredQuery {
    var filters: [Filter] = []
    func add(_ field: String, _ op: FieldFilter.Operator, _ value: Value) {
      filters.append(.field(FieldFilter(FieldPath(field: field), op, value)))
    }
    for _ in 0..<program.below(3) {
      switch program.below(filters.isEmpty ? 5 : 4) {
      case 0:
        add(
          "n", program.pick([.equal, .greaterThan, .lessThanOrEqual, filters.isEmpty ? .notEqual : .equal]),
          .integer(Int64(program.below(4))))
      case 1:
        add(
          "s", program.pick([.equal, .greaterThanOrEqual, .lessThan]),
          .string(program.pick(["a", "b", "u1"])))
      case 2: add("owner", .equal, .string(program.pick(["u1", "u2"])))
      case 3: add("b", .equal, .boolean(program.chance(50)))
      default: add("l", .arrayContains, .string(program.pick(["a", "b"])))
      }
    }
    var query = StructuredQuery(from: [.init(collection, allDescendants: program.chance(15))])
    if filters.count == 1 { query.filter = filters[0] }
    if filters.count > 1 {
      query.filter = program.chance(30) ? .composite(.or, filters) : .composite(.and, filters)
    }
    return query
  }

  private func query(_ structured: StructuredQuery, _ caller: Caller?) async throws {
    let query = Query(parent: ParentName(rootOf: database), structured)
    let found = Guarded<[ResourcePath]>([])
    let queryFailure = try await failure {
      try await engine.runQuery(query, as: principal(caller)) { page in
        found.withLock { $0 += page.documents.map(\.name.path) }
      }
    }
    if queryFailure == nil { counts.granted += 1 }
    let countFailure = try await failure {
      _ = try await engine.runAggregationQuery(
        AggregationQuery(structured, [.init("n", .count(upTo: nil))]), under: query.parent,
        as: principal(caller))
      // Reads the documents that the aggregation counted.
      try await engine.runQuery(query, as: .administrator) { page in
        found.withLock { $0 += page.documents.map(\.name.path) }
      }
    }
    let denied = [queryFailure, countFailure].compactMap(\.self)
    expect(denied.isEmpty || denied.count == 2, "a query and its count differ: \(structured)")
    expect(denied.allSatisfy { $0.code == .permissionDenied && !$0.message.contains("mark") }, "\(denied)")
    try checkReturned(found.withLock { $0 }, structured, caller)
  }

  /// The naive evaluator must grant each returned document.
  private func checkReturned(
    _ paths: [ResourcePath], _ structured: StructuredQuery, _ caller: Caller?
  ) throws {
    let naive = naiveEvaluator(caller)
    for path in paths {
      counts.returned += 1
      let isGranted = try naive.allows("list", path)
      expect(isGranted, "\(path) by \(caller?.uid ?? "nobody") for \(structured)")
    }
  }

  private func listen(_ structured: StructuredQuery, _ caller: Caller?) async throws {
    let output = ReceivedDocuments()
    let stream = try await engine.watch(database, as: principal(caller), output: output)
    stream.addTarget(WatchTarget(id: 2, .query(Query(parent: ParentName(rootOf: database), structured))))
    try await output.waitUntilCurrent()
    stream.close()
    try checkReturned(output.paths, structured, caller)
  }

  /// The stored fields of a document.
  private func stored(_ path: ResourcePath) async throws -> MapValue? {
    let found = Guarded<MapValue?>(nil)
    try await engine.batchGetDocuments(in: database, [try name(path)], as: .administrator) { page in
      for case .found(let document) in page.items {
        let fields = try document.fields()
        found.withLock { $0 = fields }
      }
    }
    return found.withLock { $0 }
  }

  private func commit(_ path: ResourcePath, _ caller: Caller?) async throws {
    var after = documents
    let write: Write
    let method: String
    if program.chance(25) {
      method = "delete"
      write = Write(.delete(try name(path)))
      after[path] = nil
    } else {
      method = documents[path] == nil ? "create" : "update"
      let fields = program.fields(marker: "mark-\(path)")
      write = Write(.update(try name(path), fields: fields))
      after[path] = fields
    }
    let isGranted = try naiveEvaluator(caller, after: after).allows(method, path)
    let error = try await failure {
      _ = try await engine.commit(in: database, [write], as: principal(caller))
    }
    if error == nil { counts.granted += 1 }
    expect((error == nil) == isGranted, "\(method) \(path) by \(caller?.uid ?? "nobody")")
    if isGranted {
      documents = after
    } else {
      expect(
        error?.code == .permissionDenied && !(error?.message.contains("mark") ?? true), "denied \(method)")
    }
    let stored = try await stored(path)
    expect(stored == documents[path], "\(path) after \(method)")
  }
}

/// A listener that records the documents that it receives, until its target is current or removed.
private final class ReceivedDocuments: WatchOutput {
  private struct State {
    var paths: [ResourcePath] = []
    var hasFinished = false
    var waiter: CheckedContinuation<Void, Never>?
  }

  private let state = Guarded(State())

  var paths: [ResourcePath] { state.withLock { $0.paths } }

  func send(_ responses: [WatchResponse]) async {
    let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
      for response in responses {
        switch response {
        case .documentChange(let document, _, _): state.paths.append(document.name.path)
        case .targetChange(let change):
          if change.kind == .current || change.kind == .remove { state.hasFinished = true }
        default: break
        }
      }
      guard state.hasFinished, let waiter = state.waiter else { return nil }
      state.waiter = nil
      return waiter
    }
    waiter?.resume()
  }

  func fail(_ error: FirestoreError) async {
    let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
      state.hasFinished = true
      defer { state.waiter = nil }
      return state.waiter
    }
    waiter?.resume()
  }

  /// Waits until the target is current or removed.
  func waitUntilCurrent() async throws {
    await withCheckedContinuation { continuation in
      let hasFinished = state.withLock { state in
        if !state.hasFinished { state.waiter = continuation }
        return state.hasFinished
      }
      if hasFinished { continuation.resume() }
    }
  }
}
