// Commits: from a request's writes to a durable version.
//
// Invariant: a commit's body runs in the store's sequencer, sees every commit before it and decides everything
// there: preconditions, transforms, access, limits, locks. What it waits for, it waits for outside and then runs anew.

import FirestoreModel
import Locking
import OrderedStore

extension FirestoreDatabase {
  /// Thrown out of the sequencer by a commit that met another transaction's locks.
  private struct Blocked: Error {
    var footprint: LockTable.Footprint
  }

  /// Commits outside of any transaction, or for one that holds `owner`'s locks.
  func commit(
    _ writes: [Write], reads: ReadSet?, owner: LockTable.Owner?, as caller: Caller
  ) async throws -> CommitResponse {
    let (results, version) = try await execute(reads: reads, owner: owner) { view in
      try self.plan(writes, as: caller, view)
    }
    return CommitResponse(writeResults: results, commitTime: version.timestamp)
  }

  /// Commits outside of any transaction; `answer` is told once, on a thread of the store's: nil if a lock is in the way,
  /// which only the waiting form can wait for.
  func tryCommit(
    _ writes: [Write], as caller: Caller,
    answer: @escaping @Sendable (Result<CommitResponse, FirestoreError>?) -> Void
  ) {
    let writer = makeWriter()
    let locks = locks
    rows.execute(
      validating: nil,
      { view in try self.sequence(view, as: writer, for: nil) { try self.plan(writes, as: caller, $0) } }
    ) { outcome in
      locks.leave(writer)
      switch outcome {
      case .success(let committed):
        answer(
          .success(CommitResponse(writeResults: committed.result, commitTime: committed.version.timestamp)))
      case .failure(is Blocked): answer(nil)
      case .failure(let error): answer(.failure(FirestoreError(error)))
      }
    }
  }

  /// Plans a commit and writes it, in the sequencer.
  private func sequence(
    _ view: any SequencedTransaction, as writer: UInt64, for owner: LockTable.Owner?,
    _ plan: (any SequencedTransaction) throws -> CommitPlan
  ) throws -> [WriteResult] {
    let plan = try plan(view)
    guard locks.enter(plan.footprint, as: writer, for: owner) else {
      throw Blocked(footprint: plan.footprint)
    }
    try plan.write(to: view)
    // A commit that changes nothing has a time of its own all the same, above every time read before.
    view.reserveCommitVersion()
    return plan.results
  }

  /// Commits one update and returns the document as it is then.
  func update(_ write: Write, as caller: Caller) async throws -> StoredDocument {
    let document = Guarded<StoredDocument?>(nil)
    _ = try await execute(reads: nil, owner: nil) { view in
      let plan = try self.plan([write], as: caller, view)
      let result = plan.document(at: 0)
      document.withLock { $0 = result }
      return plan
    }
    guard let document = document.withLock({ $0 }) else {
      throw FirestoreError.internalError("The update of \(write.document) left no document.")
    }
    return document
  }

  /// Applies writes and asks the policy about them.
  func plan(_ writes: [Write], as caller: Caller, _ view: any SequencedTransaction) throws -> CommitPlan {
    let asks = !policy.allowsEverything(caller)
    var plan = CommitPlan(
      view, indexes.current, options.limits, work: CommitWork(limit: options.commitWork), recordsSteps: asks)
    try plan.apply(writes)
    if asks { try plan.authorise(caller, policy) }
    try plan.finish()
    return plan
  }

  /// Runs a plan in the sequencer until no lock is in its way.
  private func execute(
    reads: ReadSet?, owner: LockTable.Owner?,
    _ plan: @escaping @Sendable (any SequencedTransaction) throws -> CommitPlan
  ) async throws -> ([WriteResult], Version) {
    let writer = makeWriter()
    let deadline = options.clock.now() + options.lockWait
    let locks = locks
    while true {
      do {
        defer { locks.leave(writer) }
        let committed = try await rows.execute(validating: reads) { view in
          try self.sequence(view, as: writer, for: owner, plan)
        }
        return (committed.result, committed.version)
      } catch let blocked as Blocked {
        try await locks.waitToWrite(blocked.footprint, as: writer, for: owner, until: deadline)
      }
    }
  }

  /// Commits a transaction, which ends whatever comes of it.
  func commit(_ writes: [Write], transaction token: [UInt8], as caller: Caller) async throws -> CommitResponse
  {
    let transaction = try transactions.enter(token, toCommit: true, as: caller)
    do {
      let response = try await commit(writes, transaction, as: caller)
      transactions.end(transaction.owner, as: .committed)
      return response
    } catch {
      let failure = FirestoreError(error)
      transactions.end(transaction.owner, as: failure.code == .aborted ? .aborted : .failed)
      throw failure
    }
  }

  private func commit(
    _ writes: [Write], _ transaction: OpenTransaction, as caller: Caller
  ) async throws -> CommitResponse {
    if writes.isEmpty {
      // Nothing to write: the transaction took place where it read, or, under its locks, takes place now.
      if let snapshot = transaction.snapshot {
        return CommitResponse(writeResults: [], commitTime: snapshot.timestamp)
      }
      return CommitResponse(writeResults: [], commitTime: try await rows.reserveVersion().timestamp)
    }
    var reads = transaction.reads
    // What many of its queries went over is compared with the commits since but once.
    reads.ranges = KeyRange.union(of: reads.ranges)
    let hasRead = !reads.keys.isEmpty || !reads.ranges.isEmpty
    switch transaction.mode {
    case .readOnly:
      throw FirestoreError.invalidArgument("Cannot modify entities in a read-only transaction.")
    case .optimistic:
      return try await commit(writes, reads: hasRead ? reads : nil, owner: nil, as: caller)
    case .pessimistic:
      return try await commit(
        writes, reads: hasRead ? reads : nil, owner: transaction.owner, as: caller)
    }
  }
}
