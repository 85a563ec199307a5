// Commits writes: `FirestoreEngine.commit` takes a Commit request and calls its completion when the writes
// are durable or have failed.
//
// One commit takes these steps in the engine. FirestoreEndpoints/GRPC/Methods/TransactionMethods lists the files before and
// after them.
//   1. `FirestoreEngine.commit` validates the writes and finds the database. If the request names a
//      transaction, `FirestoreDatabase.commit` marks the transaction as committing. `attempt` submits the
//      body to the store's sequencer.
//   2. The body runs in the sequencer, one commit at a time. CommitPlan applies the writes to the stored documents
//      (Documents/DocumentRow) and finds the changed index entries (Indexes/IndexSet, Indexes/IndexEntries).
//      CommitCostBudget limits the cost. If the access policy needs long, the commit leaves the sequencer and repeats
//      step 2, where CommitDecision continues the decision. DecisionQueue lets one such commit continue at a time.
//   3. Transactions/LockTable records the commit's footprint (the keys that it changes) or reports a conflict. After a
//      conflict the commit leaves the sequencer, waits for the locks and repeats step 2.
//   4. `CommitPlan.write` passes the rows and the log record (CommitRecord) to the store, which makes them durable.
//   5. The store calls Watch/WatchHub (`publish`) with the log record, then the completion in `attempt`. CommitCall
//      reports the outcome to the caller.
//
// Invariant: a commit's body runs in the store's sequencer and sees every earlier commit. It checks everything there:
// preconditions, transforms, access, limits and locks. A commit that has to wait for locks leaves the sequencer, and its
// body runs again after the wait.

package import Access
import Locking
package import FirestoreModel
import OrderedStore

extension FirestoreEngine {
  /// Applies writes in order, all or none, and ends the transaction if one is named.
  ///
  /// Without writes and transaction nothing happens, and the response has no commit time. A failed commit
  /// also ends its transaction, since some clients do not send a rollback after a failed commit.
  ///
  /// Errors:
  /// - NOT_FOUND, ALREADY_EXISTS or FAILED_PRECONDITION for an unmet precondition;
  /// - ABORTED for contention;
  /// - INVALID_ARGUMENT for writes that can never be applied;
  /// - UNAVAILABLE if the outcome is unknown;
  /// - CANCELLED if the call was cancelled while it waited.
  ///
  /// - Parameter completion: called once with the outcome, on any thread; it must be quick and must not
  ///   block.
  /// - Returns: the call. Its `cancel` ends a wait for locks or for the database to open.
  @discardableResult
  package func commit(
    in name: DatabaseName, _ writes: [Write], transaction: [UInt8]? = nil, as caller: Principal,
    completion: @escaping @Sendable (Result<CommitResponse, FirestoreError>) -> Void
  ) -> CommitCall {
    let call = CommitCall { outcome in
      if case .failure = outcome, let transaction {
        self.failTransaction(transaction, in: name, as: caller)
      }
      completion(outcome)
    }
    do throws(FirestoreError) {
      for write in writes { try write.validate(in: name, limits: limits.data) }
      try writes.validateSequence()
    } catch {
      call.complete(.failure(error))
      return call
    }
    if !writes.isEmpty, let database = openDatabase(name) {
      database.commit(writes, transaction: transaction, as: caller, call)
      return call
    }
    call.startWaiting {
      do {
        let database = try await self.database(name)
        // The access policy decides about each write. A request without writes is authorized like beginning a
        // transaction.
        if writes.isEmpty { try await database.authoriseWithoutData(caller, .transaction) }
        if writes.isEmpty, transaction == nil {
          call.complete(.success(CommitResponse(writeResults: [], commitTime: nil)))
        } else {
          database.commit(writes, transaction: transaction, as: caller, call)
        }
      } catch {
        call.complete(.failure(FirestoreError(error)))
      }
    }
    return call
  }

  /// Commits as ``commit(in:_:transaction:as:completion:)`` does, and returns or throws its outcome.
  package func commit(
    in name: DatabaseName, _ writes: [Write], transaction: [UInt8]? = nil, as caller: Principal
  ) async throws(FirestoreError) -> CommitResponse {
    try await outcome { completion in
      self.commit(in: name, writes, transaction: transaction, as: caller, completion: completion)
    }.get()
  }
}

extension FirestoreDatabase {
  /// Thrown out of the sequencer by a commit that conflicts with another transaction's locks.
  private struct Blocked: Error {
    var footprint: LockTable.Footprint
  }

  /// One attempt to commit. If it fails because of locks or an unfinished decision, the next attempt gets its state.
  struct Attempt: Sendable {
    let call: CommitCall
    let writer: UInt64
    /// The transaction's reads, which the store validates; nil if there are none.
    var reads: ReadSet?
    /// The locking transaction that commits, whose own locks do not block it. Nil for other commits.
    var owner: LockTable.Owner?
    /// Whether the access policy must still decide about the commit if the store finds a conflict with the transaction's
    /// reads.
    var decidesAfterConflict = false
    /// Whether the store found a conflict. This attempt then only lets the policy decide, so that a denied caller
    /// does not learn of the conflict.
    var isConflicting = false
    /// When the wait for locks times out; nil before the first wait.
    var deadline: UInt64?
    /// The parts of the policy's decision so far; nil before the first.
    var decision: CommitDecision?
    /// Whether this commit may continue its decision now. At most one commit of the database may: see ``DecisionQueue``.
    var isContinuing = false
    /// The number of parts of the decision that the policy's observer has received.
    var observedPartCount = 0
    let plan:
      @Sendable (any SequencedTransaction, CommitDecision?, _ observedPartCount: Int) throws -> CommitPlan
    let completion: CommitCall.Completion
  }

  /// Commits validated writes, of a transaction if `token` is given.
  fileprivate func commit(
    _ writes: [Write], transaction token: [UInt8]?, as caller: Principal, _ call: CommitCall
  ) {
    let plan: @Sendable (any SequencedTransaction, CommitDecision?, Int) throws -> CommitPlan = {
      try self.plan(writes, as: caller, $0, $1, observedPartCount: $2)
    }
    guard let token else {
      return attempt(Attempt(call: call, writer: makeWriter(), plan: plan) { call.complete($0) })
    }
    let transaction: OpenTransaction
    do { transaction = try transactions.beginRequest(token, toCommit: true, as: caller) } catch {
      return call.complete(.failure(FirestoreError(error)))
    }
    let transactions = transactions
    let completion: CommitCall.Completion = { outcome in
      switch outcome {
      case .success: transactions.end(transaction.owner, as: .committed)
      case .failure(let error):
        transactions.end(transaction.owner, as: error.code == .aborted ? .aborted : .failed)
      }
      call.complete(outcome)
    }
    if writes.isEmpty { return commitReads(of: transaction, call, completion) }
    if transaction.mode == .readOnly {
      return completion(.failure(.invalidArgument("Cannot modify entities in a read-only transaction.")))
    }
    var reads = transaction.reads
    // Queries may have scanned overlapping ranges. Merged ranges do not overlap, so the store compares each part with
    // later commits only once.
    reads.ranges = KeyRange.union(of: reads.ranges)
    let hasReads = !reads.keys.isEmpty || !reads.ranges.isEmpty
    attempt(
      Attempt(
        call: call, writer: makeWriter(), reads: hasReads ? reads : nil,
        owner: transaction.mode == .optimistic ? nil : transaction.owner,
        decidesAfterConflict: !allowsEverything(caller), plan: plan,
        completion: completion))
  }

  /// Commits a transaction without writes. Its commit time is that of the snapshot that it read or, if locks keep
  /// its reads valid, that of a new version.
  private func commitReads(
    of transaction: OpenTransaction, _ call: CommitCall, _ completion: @escaping CommitCall.Completion
  ) {
    if let snapshot = transaction.snapshot {
      return completion(.success(CommitResponse(writeResults: [], commitTime: snapshot.timestamp)))
    }
    call.startWaiting {
      do {
        let version = try await self.rows.reserveVersion()
        completion(.success(CommitResponse(writeResults: [], commitTime: version.timestamp)))
      } catch {
        completion(.failure(FirestoreError(error)))
      }
    }
  }

  /// Commits one write of type update and returns the resulting document.
  func update(_ write: Write, as caller: Principal) async throws -> StoredDocument {
    let document = Guarded<StoredDocument?>(nil)
    let outcome = await outcome { completion in
      let call = CommitCall(completion)
      self.attempt(
        Attempt(
          call: call, writer: self.makeWriter(),
          plan: { view, decision, observedPartCount in
            let plan = try self.plan(
              [write], as: caller, view, decision, observedPartCount: observedPartCount)
            let result = plan.document(at: 0)
            document.withLock { $0 = result }
            return plan
          }
        ) { call.complete($0) })
      return call
    }
    _ = try outcome.get()
    guard let document = document.withLock({ $0 }) else {
      preconditionFailure("invariant: an update that commits leaves a document")
    }
    return document
  }

  /// Runs the plan in the sequencer, and again after each wait for locks.
  private func attempt(_ attempt: Attempt) {
    let locks = locks
    rows.execute(validating: attempt.reads) { view in
      try self.planAndWrite(attempt, view)
    } completion: { outcome in
      locks.removeFootprint(of: attempt.writer)
      if case .failure(let undecided as UndecidedCommit) = outcome {
        return self.resume(attempt, undecided.decision)
      }
      self.endContinuation(of: attempt)
      switch outcome {
      case .success(let committed):
        attempt.completion(
          .success(CommitResponse(writeResults: committed.result, commitTime: committed.version.timestamp)))
      case .failure(let blocked as Blocked): self.wait(for: blocked.footprint, attempt)
      case .failure(let error as StoreError) where error.code == .conflict && attempt.decidesAfterConflict:
        var decided = attempt
        decided.isContinuing = false
        decided.reads = nil
        decided.decidesAfterConflict = false
        decided.isConflicting = true
        self.attempt(decided)
      case .failure(let error): attempt.completion(.failure(FirestoreError(error)))
      }
    }
  }

  /// Enqueues a commit with an unfinished decision again.
  private func resume(_ attempt: Attempt, _ decision: CommitDecision) {
    if let error = failure(of: attempt, decision) {
      endContinuation(of: attempt)
      return attempt.completion(.failure(error))
    }
    var next = attempt
    next.decision = decision
    next.observedPartCount = max(next.observedPartCount, decision.partCount)
    next.isContinuing = true
    if attempt.isContinuing || undecidedCommits.continueOrEnqueue(next) { self.attempt(next) }
  }

  /// The error that ends an unfinished decision; nil if the decision may continue.
  private func failure(of attempt: Attempt, _ decision: CommitDecision) -> FirestoreError? {
    if attempt.call.isCancelled { return FirestoreError(CancellationError()) }
    guard decision.startCount <= EngineLimits.maximumCommitDecisions else { return LockTable.contention }
    guard decision.cost <= options.maximumCommitCost else {
      let denial = FirestoreDecision.Denial(
        FirestoreAccess.permissionDenied, reason: "the rules need too long for so many large documents")
      options.reportDenial?(name, denial)
      return denial.error
    }
    return nil
  }

  /// Lets the next commit continue its decision, if `attempt` continued its own.
  private func endContinuation(of attempt: Attempt) {
    guard attempt.isContinuing else { return }
    while let next = undecidedCommits.dequeue() {
      if !next.call.isCancelled { return self.attempt(next) }
      next.completion(.failure(FirestoreError(CancellationError())))
    }
  }

  /// Waits until the footprint's locks are free, then attempts the commit again.
  private func wait(for footprint: LockTable.Footprint, _ blocked: Attempt) {
    var next = blocked
    let deadline = next.deadline ?? options.clock.now() + options.lockWait
    next.deadline = deadline
    next.isContinuing = false
    next.observedPartCount = max(next.observedPartCount, (next.decision?.partCount ?? 0) + 1)
    next.call.startWaiting { [next] in
      do {
        try await self.locks.waitToWrite(footprint, as: next.writer, for: next.owner, until: deadline)
        self.attempt(next)
      } catch {
        next.completion(.failure(FirestoreError(error)))
      }
    }
  }

  /// Plans a commit and writes it, in the sequencer.
  private func planAndWrite(_ attempt: Attempt, _ view: any SequencedTransaction) throws -> [WriteResult] {
    let plan = try attempt.plan(view, attempt.decision, attempt.observedPartCount)
    if attempt.isConflicting { throw LockTable.contention }
    guard locks.tryAddFootprint(plan.footprint, as: attempt.writer, for: attempt.owner) else {
      throw Blocked(footprint: plan.footprint)
    }
    try plan.write(to: view)
    // Even a commit that changes nothing gets a version, so that its commit time is above every earlier read
    // time.
    view.reserveCommitVersion()
    return plan.results
  }

  /// Applies writes and authorizes them.
  /// - Parameters:
  ///   - decision: the parts of the policy's decision so far; nil before the first.
  ///   - observedPartCount: the number of parts that the policy's observer has received.
  /// - Throws: ``UndecidedCommit`` if the decision needs another time slice.
  func plan(
    _ writes: [Write], as caller: Principal, _ view: any SequencedTransaction,
    _ decision: CommitDecision? = nil, observedPartCount: Int = 0
  ) throws -> CommitPlan {
    let pinned = policies.current
    let caller = caller.acting(in: name.project)
    let needsDecisions = !pinned.allowsEverything(caller)
    // The policy has decided earlier parts for certain server timestamps, so the new plan uses the same timestamps.
    var earlier = needsDecisions && decision?.policyVersion == pinned.version ? decision : nil
    var plan = try makePlan(writes, view, needsDecisions: needsDecisions, at: earlier?.requestTime)
    var cost = decision?.cost ?? 0
    if let current = earlier, try !current.isCurrent(plan) {
      cost += max(plan.cost, writes.size)
      earlier = nil
      plan = try makePlan(writes, view, needsDecisions: needsDecisions, at: nil)
    }
    if needsDecisions {
      do {
        try decide(
          AuthorizedOperation(caller: caller, operation: .commit(plan.netWrites)), by: pinned,
          isRepeated: (earlier?.partCount ?? 0) < observedPartCount
        ) { plan.documentView(earlier?.nextPart ?? .start) }
      } catch let unfinished as UnfinishedDecision<FirestoreAccess> {
        throw UndecidedCommit(
          decision: try CommitDecision(
            unfinished, policyVersion: pinned.version, plan, after: earlier,
            startCount: earlier?.startCount ?? (decision?.startCount ?? 0) + 1,
            cost: cost + max(plan.cost, writes.size)))
      }
      plan.markAllowed()
      try plan.throwFailure()
    }
    try plan.finish()
    precondition(plan.results.count == writes.count, "invariant: a commit has a result for each write")
    return plan
  }

  /// A plan with the writes applied.
  /// - Parameter requestTime: the `requestTime` of an earlier plan of this commit, if the access policy continues its
  ///   unfinished decision about that plan; nil to use the commit's time.
  private func makePlan(
    _ writes: [Write], _ view: any SequencedTransaction, needsDecisions: Bool, at requestTime: Timestamp?
  ) throws -> CommitPlan {
    var plan = CommitPlan(
      view, indexes.current, options.limits, costBudget: CommitCostBudget(limit: options.maximumCommitCost),
      needsDecisions: needsDecisions, requestTime: requestTime)
    try plan.apply(writes)
    return plan
  }
}
