// Decides requests with a compiled rules file.
//
// The rules decide every document of a request, and every alternative (disjunct) of a query's filter, separately. A
// statement allows a document or an alternative if it is for the method, its block's pattern covers the path, and its
// condition is true. A request is allowed if all its documents and alternatives are allowed.

package import FirestoreModel

/// A compiled rules file that decides requests.
package final class FirestoreRuleset: Sendable {
  /// The compiled statements, functions and expressions.
  let program: RuleProgram
  /// The text with an index of its lines.
  let text: RuleSourceText
  /// The recorded coverage; empty unless decisions are recorded.
  let counts = CoverageCounts<RuleTrace.Outcome>()
  /// Whether an expression calls `debug()`.
  let usesDebug: Bool
  /// The SHA-256 hash of the text in hexadecimal digits, which identifies a release for operators.
  package let fingerprint: String

  /// The text of the rules file.
  package var source: String { program.source }
  /// The compiler's warnings.
  package var warnings: [RulesIssue] { program.warnings }

  /// Compiles a rules file.
  ///
  /// - Throws: all findings, if one of them is an error.
  package init(compiling source: String) throws(RulesError) {
    program = try RuleProgram(compiling: source)
    usesDebug = program.usesDebug
    text = RuleSourceText(source)
    fingerprint = RulesFingerprint.of(source)
  }

  /// The inputs of a decision about one request. A request with many documents may be decided in several parts.
  package struct Context {
    /// The database's id.
    package var database: String
    /// The caller, which rules see as `request.auth`.
    package var caller: RuleCaller
    /// The time of the request; the time that server timestamps receive.
    package var time: Timestamp
    /// Reads the stored documents that rules look up, and the documents that the operation names.
    package var documents: any RuleDocumentSource
    /// The result of earlier parts of the decision.
    var progress = RuleProgress()
    /// The number of documents of the complete request; nil if the operation contains all of them.
    var requestCount: Int?
    /// Whether the decision may end after a part of the operation.
    var isDivisible = false

    /// Makes a context.
    package init(
      database: String, caller: RuleCaller, time: Timestamp, documents: any RuleDocumentSource
    ) {
      self.database = database
      self.caller = caller
      self.time = time
      self.documents = documents
    }

    /// Makes the lookups of an operation: the documents that its rules read with `get()` and similar functions.
    /// - Parameter operationCount: the number of documents in this part of the operation.
    func lookups(operationCount: Int) -> RuleLookups {
      RuleLookups(documents, operationCount: requestCount ?? operationCount, state: progress.lookups)
    }
  }

  /// Decides a read of documents by name.
  ///
  /// - Parameter documents: the paths with their stored fields; nil for a document that does not exist.
  package func decideGet(
    _ documents: [(path: ResourcePath, fields: MapValue?)], _ context: Context
  ) -> RuleDecision {
    let steps = documents.lazy.map { DecisionStep.document(self.requestToRead($0.path, $0.fields, context)) }
    return decide(steps, context.lookups(operationCount: documents.count), context.workLimit)
  }

  /// Decides reads of documents by name. Each document is read when it is decided.
  ///
  /// - Parameter recording: whether to count the values of expressions and to add the evaluations to the decision.
  func decideRead(_ paths: [ResourcePath], _ context: Context, recording: Bool = false) -> RuleDecision {
    let lookups = context.lookups(operationCount: paths.count)
    let steps = paths.lazy.map {
      DecisionStep.document(self.requestToRead($0, lookups.requestedFields(of: $0), context))
    }
    return decide(steps, lookups, context.workLimit, recording: recording)
  }

  /// The request to read one document.
  func requestToRead(_ path: ResourcePath, _ fields: MapValue?, _ context: Context) -> RuleRequest {
    RuleRequest(
      method: .get, database: context.database, path: path, auth: context.caller.value, time: context.time,
      resource: .value(Self.document(path, fields, context)), newResource: nil, query: nil,
      requestedDocument: (path, fields, fields))
  }

  /// Decides the writes of a commit, after combining the writes of each document.
  ///
  /// - Parameter states: the fields of a document before and after all writes; nil where it does not exist.
  package func decideWrites(
    _ writes: [RuleWrite], _ context: Context,
    states: (ResourcePath) throws -> (before: MapValue?, after: MapValue?)
  ) rethrows -> RuleDecision {
    let changes = try Self.changes(of: writes, states: states)
    return decide(steps(changes, context), context.lookups(operationCount: writes.count), context.workLimit)
  }

  /// The net effects of a commit's writes.
  ///
  /// - Parameter states: the fields of a document before and after all writes; nil where it does not exist.
  package static func changes(
    of writes: [RuleWrite], states: (ResourcePath) throws -> (before: MapValue?, after: MapValue?)
  ) rethrows -> [RuleChange] {
    try NetWrite.combine(writes).map { change in
      let (before, after) = try states(change.path)
      return RuleChange(
        path: change.path, method: change.method(existsBefore: before != nil), before: before, after: after,
        isConditional: change.isConditional)
    }
  }

  /// Decides the net effects of a commit.
  package func decideChanges(_ changes: [RuleChange], _ context: Context) -> RuleDecision {
    decide(steps(changes, context), context.lookups(operationCount: changes.count), context.workLimit)
  }

  /// The steps of the documents that a commit writes.
  func steps(_ changes: [RuleChange], _ context: Context) -> [DecisionStep] {
    changes.map { change in
      var request = requestToRead(change.path, change.before, context)
      request.method = change.method
      request.requestedDocument = (change.path, change.before, change.after)
      switch change.method {
      case .create, .update: request.newResource = Self.document(change.path, change.after, context)
      case .delete: request.newResource = .null
      case .get, .list: break
      }
      return .document(request)
    }
  }

  static func document(_ path: ResourcePath, _ fields: MapValue?, _ context: Context) -> RuleValue {
    guard let fields else { return .null }
    return .map(.document(RuleDocument(database: context.database, path: path, fields: fields)))
  }

  /// One document, or one alternative (disjunct) of a query's filter, that the rules must allow.
  enum DecisionStep {
    /// A document.
    case document(RuleRequest)
    /// An alternative of a query over the documents of a collection.
    case query(RuleRequest)
    /// An alternative of a query over the documents of all collections, or of those with an id, below a document or
    /// the root.
    case group(RuleRequest, id: String?, below: ResourcePath)

    /// The request that the rules decide in this step.
    var request: RuleRequest {
      switch self {
      case .document(let request), .query(let request), .group(let request, _, _): request
      }
    }
  }

  /// How the steps of an operation share the limit of work.
  enum WorkLimit {
    /// All steps share one limit. Used for the alternatives of a query, which read few values.
    case shared
    /// Each step may spend the full limit, independently of the other steps.
    case each
    /// Each step may spend the full limit. Once the steps together have spent it, the decision is unfinished,
    /// and the next part continues it.
    case divided
  }

  /// Decides steps, up to the first that is denied.
  ///
  /// - Parameter recording: whether to count the values of expressions and to add the evaluations to the decision.
  func decide(
    _ steps: some Sequence<DecisionStep>, _ lookups: RuleLookups, _ limit: WorkLimit, recording: Bool = false
  ) -> RuleDecision {
    var decision = RuleDecision(isAllowed: true, readsTime: false, dependencies: [])
    var work = RuleBudget.maximumWork
    // If the filter of a query names one document, the rules decide the query by that document's contents. A listener's
    // query must therefore be decided again when the document changes.
    var named: [ResourcePath] = []
    for (index, step) in steps.enumerated() {
      if lookups.failure != nil { break }
      lookups.beginOperation()
      if step.request.method == .list, let document = step.request.requestedDocument {
        named.append(document.path)
      }
      if limit == .each { work = RuleBudget.maximumWork }
      let workOfStep = work
      var evaluator = RuleEvaluator(self, request: step.request, lookups: lookups, work: workOfStep)
      let isAllowed: Bool
      var evaluation: StepEvaluation?
      if recording {
        evaluation = evaluateAndTrace(step, &evaluator)
        isAllowed = evaluation?.isAllowed == true
      } else {
        isAllowed = self.isAllowed(step, &evaluator)
      }
      work = evaluator.budget.work
      decision.readsTime = decision.readsTime || evaluator.readsTime
      if lookups.failure != nil { break }
      if limit == .divided, work == 0, !isAllowed, index > 0 {
        // The earlier steps have left too little work for this step. It becomes the first step of the next
        // part.
        decision.finishedSteps = index
        break
      }
      if let evaluation {
        if let trace = evaluator.trace { count(trace) }
        decision.evaluations.append(evaluation)
      }
      if !isAllowed {
        decision.isAllowed = false
        decision.deniedOperation = index
        decision.workOfDenied = workOfStep
        break
      }
    }
    if let failure = lookups.failure {
      decision.failure = failure
      decision.isAllowed = false
    }
    decision.dependencies = lookups.paths + named
    decision.lookups = lookups.state
    return decision
  }

  /// Evaluates the statements for a step, up to the first that allows it.
  func isAllowed(
    _ step: DecisionStep, _ evaluator: inout RuleEvaluator,
    report: ((RuleProgram.Statement, RuleEvaluator, StatementOutcome) -> Void)? = nil
  ) -> Bool {
    var matched = -1
    var isMatch = false
    let bit = evaluator.request.method.bit
    for statement in program.statements where statement.methods & bit != 0 {
      if statement.pattern != matched {
        matched = statement.pattern
        do { try evaluator.budget.spend(work: RuleCost.block) } catch {
          report?(
            statement, evaluator, .failed(RuleEvaluator.Failure(fault: error, node: statement.condition)))
          return false
        }
        isMatch = matches(program.patterns[matched], step, &evaluator)
      }
      guard isMatch else { continue }
      do {
        let isTrue = try statement.condition < 0 ? true : evaluator.bool(statement.condition)
        if isTrue {
          report?(statement, evaluator, .allowed)
          return true
        }
        report?(statement, evaluator, .denied)
      } catch {
        report?(statement, evaluator, .failed(error))
      }
    }
    return false
  }

  /// The outcome of an allow statement.
  enum StatementOutcome {
    case allowed
    case denied
    case failed(RuleEvaluator.Failure)
  }

  private func matches(
    _ pattern: MatchPattern, _ step: DecisionStep, _ evaluator: inout RuleEvaluator
  ) -> Bool {
    switch step {
    case .document:
      return pattern.match(
        database: evaluator.request.database, path: evaluator.request.path, into: &evaluator.wildcards)
    case .query:
      return pattern.match(
        database: evaluator.request.database, collection: evaluator.request.path,
        into: &evaluator.wildcards)
    case .group(_, let id, let parent):
      return pattern.match(
        database: evaluator.request.database, group: id, below: parent, into: &evaluator.wildcards)
    }
  }
}

/// The result of the earlier parts of a decision, which allowed all their documents.
struct RuleProgress: Sendable {
  /// The number of documents that the earlier parts decided.
  var decided = 0
  /// The documents that rules have read.
  var lookups = RuleLookups.State()
  /// Whether a rule has read the time of the request.
  var readsTime = false
}

extension FirestoreRuleset.Context {
  /// How the documents of an operation share the limit of work.
  var workLimit: FirestoreRuleset.WorkLimit { isDivisible ? .divided : .each }
}
