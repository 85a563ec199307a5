// The access policy of a Firestore database with rules: adapts operations and documents of the access contract.

package import Access
import FirestoreModel

/// Decides operations of Cloud Firestore by a rules file.
package struct FirestoreRulesPolicy: AccessPolicy {
  /// The rules.
  package let ruleset: FirestoreRuleset
  /// Whether the reason of a denial names rules, lines and values. The evaluation is then repeated for each denial.
  private let explainsDenials: Bool

  /// Makes a policy.
  package init(_ ruleset: FirestoreRuleset, explainsDenials: Bool = false) {
    self.ruleset = ruleset
    self.explainsDenials = explainsDenials
  }

  /// The text of the rules file.
  package var rules: String { ruleset.source }

  /// Decides one operation.
  /// - Throws: the errors of `view`.
  package func decide(
    _ principal: Principal, _ operation: FirestoreOperation, view: any DocumentView
  ) throws -> FirestoreDecision {
    switch operation {
    case .get(let names):
      guard let database = names.first?.database else { return .allowed }
      let context = context(principal, database, view)
      let documents = try names.map { (path: $0.path, fields: try view.document($0)?.fields) }
      let decision = ruleset.decideGet(documents, context)
      return try verdict(decision, database) {
        guard let denied = decision.deniedOperation else { return nil }
        return ruleset.explainGet(documents[denied].path, documents[denied].fields, context)
      }
    case .list(let listed), .aggregate(let listed): return try decide(listed.query, principal, view)
    case .commit(let writes): return try decide(writes, principal, view)
    case .transaction: return .allowed
    case .partition, .showMissing, .listCollections, .explain, .batchWrite:
      return .deny(reason: "only service accounts may perform this operation")
    }
  }

  private func context(
    _ principal: Principal, _ database: DatabaseName, _ view: any DocumentView
  ) -> FirestoreRuleset.Context {
    FirestoreRuleset.Context(
      database: database.database,
      caller: principal.user.map { RuleCaller(uid: $0.id, claims: $0.claims.fields) } ?? .nobody,
      time: view.time, documents: ViewedDocuments(database: database, view: view))
  }

  private func decide(
    _ query: Query, _ principal: Principal, _ view: any DocumentView
  ) throws -> FirestoreDecision {
    let database = query.parent.database
    guard query.structured.from.count <= 1,
      let alternatives = query.structured.filter.map({ $0.disjunctions() }) ?? [[]]
    else { return .deny(reason: "the rules cannot decide the query") }
    let selector = query.structured.from.first
    let id = selector?.collectionID ?? ""
    let shape = RuleQueryShape(
      limit: query.structured.limit.map(Int64.init), offset: Int64(query.structured.offset),
      orders: query.structured.orderBy.map {
        (field: $0.field.description, isAscending: $0.direction == .ascending)
      })
    let proof = RuleQuery(
      parent: query.parent.path, collectionID: id.isEmpty ? nil : id,
      isGroup: selector?.allDescendants ?? false, alternatives: alternatives, shape: shape)
    let context = context(principal, database, view)
    let decision = try ruleset.decideQuery(proof, context)
    return try verdict(decision, database) { try ruleset.explainQuery(proof, context) }
  }

  private func decide(
    _ writes: [DocumentWrite], _ principal: Principal, _ view: any DocumentView
  ) throws -> FirestoreDecision {
    guard let database = writes.first?.name.database else { return .allowed }
    let context = context(principal, database, view)
    let changes = try writes.map { write in
      RuleChange(
        path: write.name.path, method: RuleMethod(write.kind), before: try view.document(write.name)?.fields,
        after: try view.documentAfter(write.name)?.fields)
    }
    let decision = ruleset.decideChanges(changes, context)
    return try verdict(decision, database) { ruleset.explainChanges(changes, context) }
  }

  private func verdict(
    _ decision: RuleDecision, _ database: DatabaseName, explain: () throws -> DenialExplanation?
  ) throws -> FirestoreDecision {
    if let failure = decision.failure { throw failure }
    let dependencies = decision.dependencies.compactMap { DocumentName(database: database, path: $0) }
    if decision.isAllowed { return .allow(dependingOn: dependencies, time: decision.readsTime) }
    let reason = explainsDenials ? try explain()?.report : nil
    return .deny(
      reason: reason ?? "the rules deny the operation", dependingOn: dependencies, time: decision.readsTime)
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
private struct ViewedDocuments: RuleDocumentSource {
  let database: DatabaseName
  let view: any DocumentView

  func fields(of path: ResourcePath, afterWrites: Bool) throws -> MapValue? {
    guard let name = DocumentName(database: database, path: path) else { return nil }
    return try (afterWrites ? view.documentAfter(name) : view.document(name))?.fields
  }
}
