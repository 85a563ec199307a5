// Authorizes operations, and decides again about open listens whose permission may have ended.
//
// A permission may end for three reasons. The caller changes, expires or is revoked; another policy is published; or
// a write changes data that the decision has read. Each of these events makes the affected listens undecided (see
// `OpenListens`). A pass in the background then decides them, a few in each batch. Before a write is delivered, the
// undecided listens that it matches are decided first.
//
// Invariant: a listen that has lost its permission by a change receives no data that was sequenced after the change.

import Access
import OrderedStore
import RealtimeModel

/// Authorizes operations in a batch.
struct AuthorizationHandler: BatchHandler {
  let batch: BatchExecution

  private var listens: OpenListens { executor.openListens }

  // MARK: Operations

  /// Checks that a caller may read a location.
  ///
  /// - Throws: ``RealtimeError`` with status `permission_denied`; errors of the store.
  func mayRead(_ path: Path, _ query: QuerySpec, _ caller: Principal) throws {
    try mayRead(path, query, caller, isObserved: true)
  }

  private func mayRead(_ path: Path, _ query: QuerySpec, _ caller: Principal, isObserved: Bool) throws {
    try checkKeys(of: path)
    if try allowsEverything(caller) { return }
    let operation = RealtimeAccess.Operation.read(path, query)
    let decision = try allow(operation, caller, isObserved: isObserved) { TreeAccessView(tree, now: now) }
    if isObserved { try compare(decision, operation, caller) }
    try throwIfDenied(decision)
  }

  /// Checks that a caller may listen to a location, and returns what the permission depends on.
  ///
  /// - Throws: ``RealtimeError`` with status `permission_denied`; errors of the store.
  func mayListen(_ path: Path, _ query: QuerySpec, _ caller: Principal) throws -> ListenPermission {
    try checkKeys(of: path)
    if try allowsEverything(caller) { return ListenPermission() }
    var view: TreeAccessView?
    let operation = RealtimeAccess.Operation.listen(path, query)
    let decision = try allow(operation, caller) {
      let made = TreeAccessView(tree, now: now, recordsObservations: true)
      view = made
      return made
    }
    try compare(decision, operation, caller)
    try throwIfDenied(decision)
    var observations = view?.observations ?? []
    // If the policy names a path without reading it, every fact about the path counts as read.
    let read = Set(observations.map(\.path))
    for path in decision.dependencies where !read.contains(path) {
      for fact in [TreeFact.content, .priority, .childKeys(after: nil, limit: 1)] {
        observations.append(.init(path: path, fact: fact, answer: try tree.answer(to: fact, at: path)))
      }
    }
    return ListenPermission(observations: observations, dependsOnTime: decision.dependsOnTime)
  }

  /// Checks that a caller may perform a write.
  ///
  /// - Parameters:
  ///   - changes: in ascending order of paths, none inside another, with resolved server values.
  ///   - work: the work that the decision may spend; nil for no limit.
  /// - Throws: ``RealtimeError`` with status `permission_denied`; ``Access/DecisionInterrupted``; errors of the store.
  func mayWrite(
    _ operation: RealtimeAccess.Operation, _ changes: [(path: Path, value: Node)], _ caller: Principal,
    work: DecisionWork? = nil
  ) throws {
    let decision = try allow(operation, caller) {
      TreeAccessView(tree, changes: changes, now: now, work: work)
    }
    if work != nil { batch.canaryWork.refill(to: staging.minimumDecisionSteps) }
    do {
      try compare(decision, operation, caller, changes, work: work == nil ? nil : batch.canaryWork)
    } catch let interruption as DecisionInterrupted {
      // The interruption defers the write. The background job then decides with both rulesets: the rules in force, and
      // the canary, whose decisions are only compared with them. If the write cannot be deferred, the decisions are not
      // compared.
      if work === batch.decisionWork, batch.mayDefer, batch.writer != nil { throw interruption }
    }
    try throwIfDenied(decision)
  }

  /// Whether a caller may read a location. A denial is not recorded and the canary ruleset does not decide, because the
  /// client did not request to read.
  func canRead(_ path: Path, _ caller: Principal) throws -> Bool {
    do {
      try mayRead(path, .default, caller, isObserved: false)
      return true
    } catch is RealtimeError { return false }
  }

  /// Whether a caller may perform a write. A denial is not recorded and the canary ruleset does not decide: the write
  /// combines operations that are decided and recorded separately.
  ///
  /// - Parameter changes: in ascending order of paths, none inside another, with resolved server values.
  func canWrite(
    _ operation: RealtimeAccess.Operation, _ changes: [(path: Path, value: Node)], _ caller: Principal
  ) throws -> Bool {
    try allow(operation, caller, isObserved: false) { TreeAccessView(tree, changes: changes, now: now) }
      .denial == nil
  }

  private func checkKeys(of path: Path) throws {
    for key in path.keys {
      guard ChildKey.isValid(key.text) || key.isPriority else { throw RealtimeError.invalidPath }
    }
  }

  /// Whether a caller may perform every operation, so that an operation need not be prepared for a decision. False for
  /// users while there is a canary ruleset, because it decides each of their requests too.
  func allowsEverything(_ caller: Principal) throws -> Bool {
    guard try batch.policy().policy.allowsEverything(caller) else { return false }
    return try caller.role != nil || batch.canary() == nil
  }

  private func allow(
    _ operation: RealtimeAccess.Operation, _ caller: Principal, isObserved: Bool = true,
    _ view: () throws -> any TreeView
  ) throws -> RealtimeDecision {
    let policy = try batch.policy().policy
    guard isObserved else { return try policy.decide(caller, operation, isObserved: false, view: view) }
    let isRepeated = batch.decisionCount.now < batch.decisionCount.before
    let decision = try policy.decide(caller, operation, isRepeated: isRepeated, view: view)
    batch.decisionCount.now += 1
    return decision
  }

  private func throwIfDenied(_ decision: RealtimeDecision) throws {
    if let denial = decision.denial { throw denial.error }
  }

  /// Reports a different decision of the canary ruleset. It never changes the verdict of `decision`.
  private func compare(
    _ decision: RealtimeDecision, _ operation: RealtimeAccess.Operation, _ caller: Principal,
    _ changes: [(path: Path, value: Node)] = [], work: DecisionWork? = nil
  ) throws {
    guard caller.role == nil, let canary = try batch.canary() else { return }
    // The canary ruleset reads through a separate view, because an open listen depends only on the decision
    // in force.
    try canary.compare(decision, operation, caller, at: batch.clock, reportingTo: executor.canaryLog) {
      TreeAccessView(tree, changes: changes, now: now, work: work)
    }
  }

  // MARK: Decisions in the background

  /// Decides a write, and records what the decision depends on.
  ///
  /// - Parameters:
  ///   - changes: receives the changes that are sequenced later.
  ///   - checkRunning: called repeatedly. It throws once the server shuts down, which ends the decision.
  func decided(
    _ write: WriteDecision, _ changes: SequencedChanges, checkRunning: @escaping () throws -> Void
  ) throws -> DecidedWrite {
    var request = write.request
    let failure = try request.resolve(in: tree, now: now)
    let answers = RecordedAnswers(
      of: request, dependsOnReplacedData: write.request.dependsOnStoredData, checkRunning: checkRunning)
    let decision = try allow(write.operation, write.caller) {
      TreeAccessView(tree, changes: request.changes, now: now, answers: answers)
    }
    try compare(decision, write.operation, write.caller, request.changes)
    return DecidedWrite(
      request: request, error: decision.denial?.error ?? failure, caller: write.caller,
      policy: try batch.policy().version, dependencies: answers.dependencies, changes: changes,
      decisionCount: batch.decisionCount.now)
  }

  /// Whether a background decision still holds: the policy, the caller and the data that the decision read have not
  /// changed. False if the check takes too long for a batch.
  func isCurrent(_ decided: DecidedWrite, _ caller: Principal) throws -> Bool {
    do { return try holds(decided, caller) } catch is DecisionInterrupted { return false }
  }

  private func holds(_ decided: DecidedWrite, _ caller: Principal) throws -> Bool {
    guard try decided.policy == batch.policy().version, decided.caller == caller,
      let questions = decided.changedQuestions
    else { return false }
    guard !questions.isEmpty else { return true }
    let view = TreeAccessView(
      tree, changes: decided.request.changes, now: now,
      work: DecisionWork(steps: staging.maximumDecisionSteps))
    for question in questions {
      guard try view.answer(to: question) == decided.dependencies.answers[question] else { return false }
    }
    return true
  }

  // MARK: Open listens

  /// Maximum number of listens that a write or one step of the pass decides. Further listens wait for the next batch.
  static let maximumDecisions = 512

  /// Notices a new policy and expired callers. Called before the first operation of a batch.
  func beginBatch() throws {
    try invalidateListensIfPolicyChanged()
    while let connection = executor.expiries.next(at: batch.clock, journal) { expire(connection) }
  }

  /// Makes all listens undecided if the policy in force has changed since they were decided.
  func invalidateListensIfPolicyChanged() throws {
    let version = try batch.policy().version
    guard listens.policyVersion != version else { return }
    precondition(
      version.published >= listens.policyVersion.published,
      "invariant: the versions of a database's policies rise")
    listens.policyVersion = version
    listens.invalidateAll()
  }

  /// Requests the next step of the pass if listens are undecided. Called after the last operation of a batch.
  func endBatch() { if listens.undecidedCount > 0 { executor.requestDecisions() } }

  private func expire(_ connection: ConnectionState) {
    // The rows of onDisconnect writes keep the stored caller, because its credentials were valid when the session
    // registered these writes.
    if connection.session.caller.hasExpired(at: batch.clock) { endAuthentication(of: connection) }
  }

  /// Ends the authentication of a connection if its caller's credentials are revoked. Its onDisconnect writes are
  /// then performed as nobody, even if the credentials had expired before.
  func revoke(_ connection: ConnectionState) throws {
    if executor.revocations.isRevoked(connection.session.caller) { endAuthentication(of: connection) }
    if let registered = connection.session.registeredCaller, executor.revocations.isRevoked(registered) {
      try batch.disconnects.store(.nobody, asCallerOf: connection)
    }
  }

  private func endAuthentication(of connection: ConnectionState) {
    guard !connection.session.hasEnded else { return }
    journal.change(connection, \.caller, to: .nobody)
    for listen in connection.session.listens.values { listens.invalidate(listen) }
    batch.add(.authRevoked(connection, .expiredToken))
  }

  /// Decides the undecided listens that a write matches, before the write changes the tree.
  ///
  /// - Throws: ``Deferral`` if they are too many for this batch.
  func prepare(for changes: [(path: Path, value: Node)]) throws {
    guard listens.undecidedCount > 0 else { return }
    let maximum = batch.mayDefer ? AuthorizationHandler.maximumDecisions : .max
    let matching = listens.undecided(matching: changes.map(\.path), atMost: maximum)
    let start = ContinuousClock.now
    for (position, listen) in matching.enumerated() {
      try decide(listen)
      guard batch.mayDefer, position + 1 < matching.count else { continue }
      if ContinuousClock.now - start >= staging.batchQuantum { throw Deferral.nextBatch }
    }
    if matching.count == maximum { throw Deferral.nextBatch }
  }

  /// Decides the listens that a write matches and whose permission it may have ended. Called after the write has changed
  /// the tree, and before its delivery.
  ///
  /// - Parameter changes: in ascending order of paths, none inside another.
  func decideListens(affectedBy changes: @autoclosure () -> [OpenListens.Change]) throws {
    guard listens.needsDecisions else { return }
    let changes = changes()
    try listens.updateFacts(changedBy: changes) { try tree.answer(to: $0, at: $1) }
    try decideAgain(matching: changes.map(\.path))
  }

  /// Decides again about the listens at, above and below some paths, if their decisions may no longer hold.
  /// Called before anything is delivered to them.
  ///
  /// - Parameter paths: in ascending order, none inside another.
  func decideAgain(matching paths: [Path]) throws {
    guard listens.needsDecisions else { return }
    for listen in listens.undecided(matching: paths, includesTimeDependent: true) { try decide(listen) }
  }

  /// Decides some undecided listens.
  func decideSome() throws {
    executor.hasRequestedDecisions = false
    let start = ContinuousClock.now
    for _ in 0..<AuthorizationHandler.maximumDecisions {
      guard let listen = listens.nextUndecided() else { return }
      try decide(listen)
      if ContinuousClock.now - start >= staging.batchQuantum { return }
    }
  }

  /// Decides about a listen, and ends it if it is denied.
  func decide(_ listen: OpenListen) throws {
    // `decisionCount` counts the decisions about the current operation only, so it is restored after this decision.
    let count = batch.decisionCount
    batch.decisionCount = (0, 0)
    defer { batch.decisionCount = count }
    do {
      let permission = try mayListen(listen.name.path, listen.query, listen.connection.session.caller)
      listens.permit(listen, permission)
    } catch let error as RealtimeError {
      batch.listens.revoke(listen.name, of: listen.connection, error)
    }
  }
}
