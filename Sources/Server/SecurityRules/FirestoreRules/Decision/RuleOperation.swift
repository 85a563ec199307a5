// An operation of Cloud Firestore with the documents that rules need to decide it. A recorded operation can be decided
// again by other rules.

package import FirestoreModel

/// An operation as rules decide it.
package enum RuleOperation: Sendable {
  /// Read documents by name; nil fields for a missing one.
  case get([(path: ResourcePath, fields: MapValue?)])
  /// Read documents by name. The context provides them, and a decision reads only the documents that it
  /// decides.
  case read([ResourcePath])
  /// Apply the net effects of a commit.
  case changes([RuleChange])
  /// Read the results of a query.
  case query(RuleQuery)
}

extension RuleOperation {
  /// The operation with the documents that it reads. Only a `read` changes: it becomes a `get` with the fields.
  /// - Throws: any error that reading from `documents` throws.
  func loadingDocuments(from documents: any RuleDocumentSource) throws -> RuleOperation {
    guard case .read(let paths) = self else { return self }
    return .get(try paths.map { (path: $0, fields: try documents.fields(of: $0, afterWrites: false)) })
  }
}

extension FirestoreRuleset {
  /// Decides an operation.
  /// - Throws: any error that reading a document through `context` throws.
  package func decide(_ operation: RuleOperation, _ context: Context) throws -> RuleDecision {
    switch operation {
    case .get(let documents): decideGet(documents, context)
    case .read(let paths): decideRead(paths, context)
    case .changes(let changes): decideChanges(changes, context)
    case .query(let query): try decideQuery(query, context)
    }
  }

  /// Decides an operation, counts the values of its expressions, and adds the evaluations to the decision.
  /// - Throws: any error that reading a document through `context` throws.
  func decideRecorded(_ operation: RuleOperation, _ context: Context) throws -> RuleDecision {
    if case .read(let paths) = operation { return decideRead(paths, context, recording: true) }
    let steps = try steps(operation, context)
    return decide(
      steps, lookups(for: operation, steps, context), workLimit(for: operation, context), recording: true)
  }

  /// The lookups of an operation. All alternatives (disjuncts) of a query's filter together have the limit of one
  /// operation.
  func lookups(for operation: RuleOperation, _ steps: [DecisionStep], _ context: Context) -> RuleLookups {
    if case .query = operation { return context.lookups(operationCount: 1) }
    return context.lookups(operationCount: steps.count)
  }

  /// How the steps of an operation share the limit of work.
  func workLimit(for operation: RuleOperation, _ context: Context) -> WorkLimit {
    if case .query = operation { return .shared }
    return context.workLimit
  }

  /// The steps of an operation, all of which must be allowed.
  func steps(_ operation: RuleOperation, _ context: Context) throws -> [DecisionStep] {
    switch operation {
    case .get(let documents): documents.map { .document(requestToRead($0.path, $0.fields, context)) }
    case .read(let paths):
      try paths.map {
        .document(requestToRead($0, try context.documents.fields(of: $0, afterWrites: false), context))
      }
    case .changes(let changes): steps(changes, context)
    case .query(let query): try steps(query, context)
    }
  }

  /// Explains the denial of an operation; nil if it is allowed.
  /// - Throws: any error that reading a document through `context` throws.
  package func explain(_ operation: RuleOperation, _ context: Context) throws -> DenialExplanation? {
    let steps = try steps(operation, context)
    return denial(of: steps, lookups(for: operation, steps, context), workLimit(for: operation, context))
      .map { explain($0) }
  }
}
