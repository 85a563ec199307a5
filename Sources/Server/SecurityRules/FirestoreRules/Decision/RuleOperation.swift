// An operation of Cloud Firestore with the documents that rules need to decide it. A recorded operation can be decided
// again by other rules.

package import FirestoreModel

/// An operation as rules decide it.
package enum RuleOperation: Sendable {
  /// Read documents by name; nil fields for a missing one.
  case get([(path: ResourcePath, fields: MapValue?)])
  /// Apply the net effects of a commit.
  case changes([RuleChange])
  /// Read the results of a query.
  case query(RuleQuery)
}

extension FirestoreRuleset {
  /// Decides an operation.
  /// - Throws: the errors of the context's documents.
  package func decide(_ operation: RuleOperation, _ context: Context) throws -> RuleDecision {
    switch operation {
    case .get(let documents): decideGet(documents, context)
    case .changes(let changes): decideChanges(changes, context)
    case .query(let query): try decideQuery(query, context)
    }
  }

  /// Decides an operation, counts the values of its expressions, and adds the evaluations to the decision.
  /// - Throws: the errors of the context's documents.
  func decideRecorded(_ operation: RuleOperation, _ context: Context) throws -> RuleDecision {
    let steps = try steps(operation, context)
    let count =
      switch operation {
      case .get, .changes: steps.count
      case .query: 1
      }
    return decide(steps, RuleLookups(context.documents, operationCount: count), recording: true)
  }

  /// The steps of an operation, all of which must be allowed.
  func steps(_ operation: RuleOperation, _ context: Context) throws -> [DecisionStep] {
    switch operation {
    case .get(let documents): documents.map { .document(getRequest($0.path, $0.fields, context)) }
    case .changes(let changes): steps(changes, context)
    case .query(let query): try steps(query, context)
    }
  }

  /// Explains the denial of an operation; nil if it is allowed.
  /// - Throws: the errors of the context's documents.
  package func explain(_ operation: RuleOperation, _ context: Context) throws -> DenialExplanation? {
    firstDenial(of: try steps(operation, context), context)
  }
}
