// A case of Cloud Firestore: a request, and the documents at the time of the request.

import JSON
package import FirestoreModel

/// Documents in memory, which rules read with `get`, `exists`, `getAfter` and `existsAfter`.
package struct CaseDocuments: RuleDocumentSource, Sendable {
  /// The fields by path.
  package var fields: [ResourcePath: MapValue]
  /// The fields of all documents that are not listed; nil if those documents do not exist.
  package var others: MapValue?

  /// Makes documents.
  package init(_ fields: [ResourcePath: MapValue] = [:], others: MapValue? = nil) {
    self.fields = fields
    self.others = others
  }

  package func fields(of path: ResourcePath, afterWrites: Bool) -> MapValue? { fields[path] ?? others }
}

/// One request about one document or query, decided without a server.
package struct FirestoreCase: Sendable {
  /// The method of the request, such as `get`.
  package var method: RuleMethod
  /// The database's ID.
  package var database = DatabaseName.defaultDatabase
  /// The document; for `list` the collection, or a document in it.
  package var path: ResourcePath
  /// The caller of the request.
  package var caller = RuleCaller.nobody
  /// The time of the request.
  package var time: Timestamp
  /// The fields before the request; nil if the document does not exist.
  package var before: MapValue?
  /// The fields after the write; nil if the document does not exist then.
  package var after: MapValue?
  /// The query of a `list`; nil to read the complete collection.
  package var query: RuleQuery?
  /// The stored documents, which rules can look up.
  package var documents = CaseDocuments()

  /// Makes a request.
  package init(method: RuleMethod, path: ResourcePath, time: Timestamp) {
    self.method = method
    self.path = path
    self.time = time
  }

  /// Decides the request.
  /// - Returns: the verdict, and for a denial the reason.
  package func decide(by ruleset: FirestoreRuleset) -> TestedRules.Outcome {
    let (decision, explanation) = explainedDecision(by: ruleset)
    if decision.isAllowed { return TestedRules.Outcome(verdict: .allow, reason: nil) }
    return TestedRules.Outcome(
      verdict: .deny, reason: explanation?.report ?? "the rules deny the request")
  }

  /// Decides the request, and explains a denial.
  package func explainedDecision(
    by ruleset: FirestoreRuleset
  ) -> (decision: RuleDecision, explanation: DenialExplanation?) {
    let context = FirestoreRuleset.Context(
      database: database, caller: caller, time: time, documents: documents)
    switch method {
    case .get:
      let decision = ruleset.decideGet([(path, before)], context)
      return (decision, decision.isAllowed ? nil : ruleset.explainGet(path, before, context))
    case .create, .update, .delete:
      let change = RuleChange(path: path, method: method, before: before, after: after)
      let decision = ruleset.decideChanges([change], context)
      return (decision, decision.isAllowed ? nil : ruleset.explainChanges([change], context))
    case .list:
      let collection = path.segments.count.isMultiple(of: 2) ? path.parent ?? .root : path
      let query =
        query ?? RuleQuery(parent: collection.parent ?? .root, collectionID: collection.segments.last)
      // Reading documents in memory never fails.
      guard let decision = try? ruleset.decideQuery(query, context) else {
        return (RuleDecision(isAllowed: false, readsTime: false, dependencies: []), nil)
      }
      return (decision, decision.isAllowed ? nil : (try? ruleset.explainQuery(query, context)) ?? nil)
    }
  }

  /// Splits a path such as `users/alice` or `/databases/(default)/documents/users/alice`. The database is nil if the
  /// path does not name it.
  package static func path(_ text: String) -> (database: String?, path: ResourcePath) {
    let segments = text.split(separator: "/").map(String.init)
    let rest = segments.first == "projects" ? Array(segments.dropFirst(2)) : segments
    guard rest.count >= 3, rest[0] == "databases", rest[2] == "documents" else {
      return (nil, ResourcePath(segments))
    }
    return (rest[1], ResourcePath(Array(rest[3...])))
  }
}
