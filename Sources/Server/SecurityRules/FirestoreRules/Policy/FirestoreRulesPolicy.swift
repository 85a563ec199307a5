// The access policy of a Firestore database with rules. It converts operations and documents of the access contract
// (the module Access) to the forms that rules use. A large operation is decided in several parts.

package import Access
import FirestoreModel

/// Decides operations of Cloud Firestore by a rules file.
package struct FirestoreRulesPolicy: AccessPolicy {
  /// The compiled rules that decide.
  package let ruleset: FirestoreRuleset
  private let explainsDenials: Bool
  private let namesStatements: Bool

  /// Makes a policy.
  /// - Parameters:
  ///   - explainsDenials: whether the reason of a denial names rules, lines and values. The evaluation is then repeated
  ///     for each denial.
  ///   - namesStatements: whether the caller's error names the evaluated statements, as in Google's emulator. The
  ///     statements depend on stored data, so only an emulator may name them.
  package init(_ ruleset: FirestoreRuleset, explainsDenials: Bool = false, namesStatements: Bool = false) {
    self.ruleset = ruleset
    self.explainsDenials = explainsDenials
    self.namesStatements = namesStatements
  }

  /// The text of the rules file.
  package var rules: String { ruleset.source }

  /// An operation of the access contract, as rules decide it.
  enum Request {
    /// The operation is allowed without rules, because it returns and changes no data.
    case allowed
    /// Rules cannot allow the operation, for a reason.
    case denied(String)
    /// Rules decide.
    case rules(Part, DatabaseName)
  }

  /// The part of an operation that is decided in one call.
  struct Part: Sendable {
    /// Maximum documents of a read that one part decides.
    static let maximumReadDocuments = 256

    /// The part's documents, or the query.
    var operation: RuleOperation
    /// The result of earlier parts.
    var progress = RuleProgress()
    /// The number of documents of the complete operation; nil for a query.
    var requestCount: Int?
    /// The number of documents of the part; nil for a query.
    var count: Int?
    /// Whether the decision may end before the end of the operation.
    var isDivisible = false

    /// A query.
    init(_ query: RuleQuery) { operation = .query(query) }

    /// Makes the part of an operation that one call decides: all documents, the first ones, or those after the earlier
    /// parts.
    /// - Parameters:
    ///   - limit: the maximum number of documents in a part.
    ///   - read: reads the documents of the part.
    init<Name>(
      of names: [Name], _ part: DecisionPart, limit: Int = .max,
      _ read: (ArraySlice<Name>) throws -> RuleOperation
    ) rethrows {
      switch part {
      case .all: break
      case .start: isDivisible = names.count > 1
      case .rest(let progress):
        isDivisible = true
        if let progress = progress as? RuleProgress { self.progress = progress }
      }
      var documents = names.dropFirst(progress.decided)
      if isDivisible { documents = documents.prefix(limit) }
      operation = try read(documents)
      requestCount = names.count
      count = documents.count
    }

    /// The progress with which the next part begins, after this part was allowed; nil after the last part.
    func progress(after decision: RuleDecision) -> RuleProgress? {
      guard let requestCount, let count else { return nil }
      let decided = progress.decided + (decision.finishedSteps ?? count)
      guard decided < requestCount else { return nil }
      return RuleProgress(
        decided: decided, lookups: decision.lookups, readsTime: decision.readsTime || progress.readsTime)
    }
  }

  /// Decides one operation.
  /// - Throws: any error that reading through `view` throws.
  package func decide(
    _ principal: Principal, _ operation: FirestoreOperation, view: any DocumentView
  ) throws -> FirestoreDecision { try decide(principal, operation, view, recording: false) }

  /// Decides one operation, counts the values of its expressions, and records the evaluations.
  /// - Throws: any error that reading through `view` throws.
  package func decideRecorded(
    _ principal: Principal, _ operation: FirestoreOperation, view: any DocumentView
  ) throws -> FirestoreDecision { try decide(principal, operation, view, recording: true) }

  private func decide(
    _ principal: Principal, _ operation: FirestoreOperation, _ view: any DocumentView, recording: Bool
  ) throws -> FirestoreDecision {
    switch try Self.request(for: operation, view) {
    case .allowed: return .allowed
    case .denied(let reason): return .deny(reason: reason)
    case .rules(let part, let database):
      let operation = part.operation
      var context = Self.context(
        principal, database, view.time, ViewedDocuments(database: database, view: view))
      context.resume(with: part)
      let decision =
        recording ? try ruleset.decideRecorded(operation, context) : try ruleset.decide(operation, context)
      if let failure = decision.failure { throw failure }
      let readsTime = decision.readsTime || part.progress.readsTime
      let dependencies = decision.dependencies.compactMap { DocumentName(database: database, path: $0) }
      var result = FirestoreDecision.allow(dependingOn: dependencies, time: readsTime)
      if !decision.isAllowed {
        let reason = explainsDenials ? try ruleset.explain(operation, context)?.report : nil
        let text = namesStatements ? try ruleset.denialText(operation, context) : nil
        result = .deny(
          text.map { .permissionDenied($0) }, reason: reason ?? "the rules deny the operation",
          dependingOn: dependencies, time: readsTime)
      }
      if recording { result.record = EvaluationRecord(decision.evaluations) }
      if decision.isAllowed {
        result.continuation = part.progress(after: decision)
      }
      return result
    }
  }

  /// The context of a decision.
  static func context(
    _ principal: Principal, _ database: DatabaseName, _ time: Timestamp, _ documents: any RuleDocumentSource
  ) -> FirestoreRuleset.Context {
    FirestoreRuleset.Context(
      database: database.database,
      caller: principal.user.map { RuleCaller(uid: $0.id, claims: $0.claims.fields) } ?? .nobody,
      time: time, documents: documents)
  }

  /// Converts an operation of the access contract to the form that rules decide.
  /// - Throws: any error that reading through `view` throws.
  static func request(for operation: FirestoreOperation, _ view: any DocumentView) throws -> Request {
    switch operation {
    case .get(let names):
      guard let database = names.first?.database else { return .allowed }
      let part = Part(of: names, view.part, limit: Part.maximumReadDocuments) { names in
        .read(names.map(\.path))
      }
      return .rules(part, database)
    case .list(let listed), .aggregate(let listed):
      guard let query = RuleQuery(listed.query) else {
        return .denied("the rules cannot decide the query")
      }
      return .rules(Part(query), listed.query.parent.database)
    case .commit(let writes):
      guard let database = writes.first?.name.database else { return .allowed }
      let part = try Part(of: writes, view.part) { writes in
        .changes(
          try writes.map { write in
            RuleChange(
              path: write.name.path, method: RuleMethod(write.kind),
              before: try view.document(write.name)?.fields,
              after: try view.documentAfter(write.name)?.fields, isConditional: write.isConditional)
          })
      }
      return .rules(part, database)
    case .transaction: return .allowed
    case .partition, .showMissing, .listCollections, .explain, .batchWrite:
      return .denied("only service accounts may perform this operation")
    }
  }
}

extension FirestoreRuleset.Context {
  /// Continues with a part of an operation.
  mutating func resume(with part: FirestoreRulesPolicy.Part) {
    progress = part.progress
    requestCount = part.requestCount
    isDivisible = part.isDivisible
  }
}

extension RuleQuery {
  /// A query of the access contract; nil if rules cannot decide it.
  fileprivate init?(_ query: Query) {
    guard query.structured.from.count <= 1,
      let alternatives = query.structured.filter.map({ $0.disjunctions() }) ?? [[]]
    else { return nil }
    let selector = query.structured.from.first
    let id = selector?.collectionID ?? ""
    let shape = RuleQueryShape(
      limit: query.structured.limit.map(Int64.init), offset: Int64(query.structured.offset),
      orders: query.structured.orderBy.map {
        (field: $0.field.description, isAscending: $0.direction == .ascending)
      })
    self.init(
      parent: query.parent.path, collectionID: id.isEmpty ? nil : id,
      isGroup: selector?.allDescendants ?? false, alternatives: alternatives, shape: shape)
  }
}

extension RuleMethod {
  fileprivate init(_ kind: DocumentWrite.Kind) {
    self =
      switch kind {
      case .create: .create
      case .update: .update
      case .delete: .delete
      case .verify: .get
      }
  }
}

/// The documents of an operation, for lookups.
struct ViewedDocuments: RuleDocumentSource {
  let database: DatabaseName
  let view: any DocumentView

  func fields(of path: ResourcePath, afterWrites: Bool) throws -> MapValue? {
    guard let name = DocumentName(database: database, path: path) else { return nil }
    return try (afterWrites ? view.documentAfter(name) : view.document(name))?.fields
  }
}
