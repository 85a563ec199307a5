// Records the denied operations of one Firestore database. An emulator's observer also counts the coverage of all
// decisions, publishes them in the request feed, and reports the values of `debug()`.

package import Access
package import FirestoreModel
import JSON

/// Observes the decisions about one Firestore database.
package struct FirestoreDecisionObserver: DecisionObserver {
  private let database: DatabaseName
  private let logs: DenialLogs<DatabaseName>
  private let now: @Sendable () -> Int64
  private let feed: RequestFeed?
  private let debug: @Sendable (String) -> Void

  /// Makes an observer.
  /// - Parameters:
  ///   - feed: receives every decision by rules, and turns on the counting of coverage; nil in production.
  ///   - debug: receives the values of `debug()` as text, if there is a feed.
  ///   - now: the clock in microseconds since 1970.
  package init(
    _ database: DatabaseName, logs: DenialLogs<DatabaseName>, feed: RequestFeed? = nil,
    debug: @escaping @Sendable (String) -> Void = { _ in }, now: @escaping @Sendable () -> Int64
  ) {
    self.database = database
    self.logs = logs
    self.feed = feed
    self.debug = debug
    self.now = now
  }

  /// Whether the observer also receives decisions that allow: the feed and the coverage need them.
  package var observesAllowed: Bool { feed != nil }

  package func observe(
    _ decision: FirestoreDecision, about operation: FirestoreOperation, of principal: Principal,
    by policy: any AccessPolicy<FirestoreAccess>, view: (any DocumentView)?
  ) {
    let rules = policy as? FirestoreRulesPolicy
    if let feed, let rules, let record = decision.record as? EvaluationRecord {
      for evaluation in record.evaluations {
        evaluation.debugTexts.forEach(debug)
        feed.publish(evaluation, by: rules.ruleset, of: database)
      }
    }
    guard let denial = decision.denial else { return }
    let log = logs.log(of: database)
    let time = now()
    guard log.admit(at: time) else { return }
    var members = DenialMembers.common(
      microseconds: time, operation: operation.name, paths: operation.paths, principal, reason: denial.reason)
    var request: RecordedRequest?
    if let rules, let view {
      members["ruleset"] = .string(rules.ruleset.fingerprint)
      request = explain(operation, of: principal, by: rules.ruleset, view, &members)
    }
    request = DenialMembers.addReplay(request, limit: log.limits.requestBytes, &members)
    log.append(members, request: request)
  }

  /// Adds the explanation of a denial, and returns the request with everything that the decision read.
  private func explain(
    _ operation: FirestoreOperation, of principal: Principal, by ruleset: FirestoreRuleset,
    _ view: any DocumentView, _ members: inout JSONObject
  ) -> RecordedRequest? {
    guard case .rules(var part, let database)? = try? FirestoreRulesPolicy.request(for: operation, view)
    else { return nil }
    let source = ViewedDocuments(database: database, view: view)
    guard let loaded = try? part.operation.loadingDocuments(from: source) else { return nil }
    part.operation = loaded
    let documents = RecordedDocuments(source: source)
    var context = FirestoreRulesPolicy.context(principal, database, view.time, documents)
    context.resume(with: part)
    guard let explanation = try? ruleset.explain(part.operation, context) else { return nil }
    members["decision"] = ExplainedDecision(explanation).json
    members["data"] = .object(part.operation.summary(of: explanation.path))
    let lookupBytes = documents.recorded.values.reduce(0) { $0 + RuleOperation.bytes($1) }
    return .firestore(
      RecordedFirestoreRequest(
        part: part, database: database, principal: principal, time: view.time,
        lookups: documents.recorded, bytes: part.operation.bytes + lookupBytes))
  }
}

extension FirestoreOperation {
  /// The name of the operation for operators.
  fileprivate var name: String {
    switch self {
    case .get: "get"
    case .list(let query): query.isListen ? "listen" : "list"
    case .aggregate: "aggregate"
    case .commit: "commit"
    case .transaction: "transaction"
    case .partition: "partition"
    case .showMissing: "showMissing"
    case .listCollections: "listCollections"
    case .explain: "explain"
    case .batchWrite: "batchWrite"
    }
  }

  /// The documents or collections of the operation, relative to the database.
  fileprivate var paths: [String] {
    switch self {
    case .get(let names): names.map { $0.path.description }
    case .list(let listed), .aggregate(let listed): [Self.path(of: listed.query)]
    case .commit(let writes): writes.map { $0.name.path.description }
    case .partition(let query), .explain(let query): [Self.path(of: query)]
    case .showMissing(let parent, let id): [parent.path.appending(id).description]
    case .listCollections(let parent): [parent.path.description]
    case .transaction, .batchWrite: []
    }
  }

  private static func path(of query: Query) -> String {
    let selector = query.structured.from.first
    let path = query.parent.path.appending(selector?.collectionID ?? "").description
    return selector?.allDescendants == true ? "group \(path)" : path
  }
}

extension RuleOperation {
  /// The approximate size of the documents, in bytes.
  fileprivate var bytes: Int {
    switch self {
    case .get(let documents): documents.reduce(0) { $0 + Self.bytes($1.fields) }
    case .read(let paths): paths.count * Self.bytes(nil)
    case .changes(let changes): changes.reduce(0) { $0 + Self.bytes($1.before) + Self.bytes($1.after) }
    case .query(let query): 256 * query.alternatives.reduce(0) { $0 + $1.count }
    }
  }

  fileprivate static func bytes(_ fields: MapValue?) -> Int {
    64 + (fields.map { RuleWeight.of(.map(.stored($0)), limit: 1 << 20) } ?? 0)
  }

  /// The names and types of the denied document's fields. For a query, the filtered fields, the number of alternatives
  /// (disjuncts), and the limit.
  fileprivate func summary(of path: ResourcePath) -> JSONObject {
    switch self {
    case .get(let documents):
      return ["document": Self.fields(documents.first { $0.path == path }?.fields)]
    case .read: return [:]
    case .changes(let changes):
      guard let change = changes.first(where: { $0.path == path }) else { return [:] }
      return ["before": Self.fields(change.before), "after": Self.fields(change.after)]
    case .query(let query):
      let filtered = Set(query.alternatives.joined().map { $0.field.description }).sorted()
      return [
        "isGroup": .bool(query.isGroup),
        "filteredFields": .array(filtered.prefix(DenialMembers.maximumNames).map { .string($0) }),
        "alternatives": .int(Int64(query.alternatives.count)),
        "limit": query.shape.limit.map { .int($0) } ?? .null,
      ]
    }
  }

  private static func fields(_ fields: MapValue?) -> JSONValue {
    guard let fields else { return .null }
    var object = JSONObject()
    for entry in fields.entries.prefix(DenialMembers.maximumNames) {
      object[String(entry.key.prefix(100))] = .string(RuleValue(entry.value).typeName)
    }
    return .object(["fieldCount": .int(Int64(fields.count)), "fields": .object(object)])
  }
}
