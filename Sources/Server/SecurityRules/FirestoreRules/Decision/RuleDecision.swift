// The decision of rules about a request, and the writes on which rules decide.

package import FirestoreModel

/// The verdict on a request.
package struct RuleDecision: Sendable {
  /// Whether the request is allowed.
  package var isAllowed: Bool
  /// Whether a rule read the time of the request: the verdict may change without a change of data.
  package var readsTime: Bool
  /// The documents that rules read; the verdict may change with them.
  package var dependencies: [ResourcePath]
  /// An error of reading documents. The request fails with it.
  package var failure: (any Error)?
  /// The position of the denied operation among the request's documents or alternatives.
  package var deniedOperation: Int?
  /// The units of work that were available to the denied operation.
  var workOfDenied = RuleBudget.maximumWork
  /// The number of steps that an unfinished decision has decided and allowed; nil for a finished decision.
  var finishedSteps: Int?
  /// The documents that rules have read.
  var lookups = RuleLookups.State()
  /// The evaluations, for the request feed; none unless they were requested.
  var evaluations: [StepEvaluation] = []
}

/// A write of a request on one document, before the writes of each document are combined.
package struct RuleWrite: Sendable {
  /// The kinds of writes.
  package enum Kind: Sendable {
    /// Sets or updates the document.
    case set
    /// Deletes the document.
    case delete
    /// Only verifies a precondition.
    case verify
  }

  /// The path of the written document.
  package var path: ResourcePath
  /// Whether the write sets, deletes or only verifies the document.
  package var kind: Kind
  /// Whether a precondition requires that the document exists, or does not exist; nil without a precondition. An
  /// update time requires that it exists.
  package var requiresExistence: Bool?

  /// Makes a write.
  package init(path: ResourcePath, kind: Kind, requiresExistence: Bool? = nil) {
    self.path = path
    self.kind = kind
    self.requiresExistence = requiresExistence
  }
}

/// The net effect of a commit on one document.
package struct RuleChange: Sendable {
  /// The path of the changed document.
  package var path: ResourcePath
  /// The method that the change needs; `get` to verify a precondition only.
  package var method: RuleMethod
  /// The fields before the commit; nil if the document does not exist.
  package var before: MapValue?
  /// The fields after the commit; nil if the document does not exist.
  package var after: MapValue?
  /// Whether a precondition determined the method.
  package var isConditional: Bool

  /// Makes a change.
  package init(
    path: ResourcePath, method: RuleMethod, before: MapValue?, after: MapValue?, isConditional: Bool = false
  ) {
    self.path = path
    self.method = method
    self.before = before
    self.after = after
    self.isConditional = isConditional
  }
}

/// The shape of a query as `request.query` shows it.
package struct RuleQueryShape: Sendable {
  /// The maximum number of results; nil without a limit.
  package var limit: Int64?
  /// The number of results to skip.
  package var offset: Int64
  /// The explicit orders: field path and whether ascending.
  package var orders: [(field: String, isAscending: Bool)]

  /// Makes a shape.
  package init(limit: Int64?, offset: Int64 = 0, orders: [(field: String, isAscending: Bool)] = []) {
    self.limit = limit
    self.offset = offset
    self.orders = orders
  }

  /// The value of `request.query`.
  var value: RuleValue {
    let order = orders.map { RuleMap.Entry(RuleText($0.field), .text($0.isAscending ? "ASC" : "DESC")) }
    return .map(
      .built([
        RuleMap.Entry(RuleText("limit"), limit.map(RuleValue.int) ?? .null),
        RuleMap.Entry(RuleText("offset"), .int(offset)),
        RuleMap.Entry(RuleText("orderBy"), .map(.built(order))),
      ]))
  }
}
