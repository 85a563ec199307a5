// Handles puts, merges and conditional writes: checks the write, changes the tree, and notifies listeners.

import Access
import OrderedStore
import RealtimeModel

/// Executes writes in a batch.
struct WriteHandler: BatchHandler {
  let batch: BatchExecution

  /// Executes a write.
  ///
  /// - Parameter hash: the hash that the existing value must have, `""` for no value; nil to write
  ///   unconditionally.
  func perform(
    _ write: RealtimeWrite, ifHash hash: String?, for operation: RealtimeOperation
  ) throws -> OperationResult {
    let submitted =
      try operation.validated?.get()
      ?? WriteRequest(write, limits: limits, bytes: operation.maximumBytes(limits))
    if hash != nil, let target = submitted.changes.first {
      // The result of the comparison reveals the stored value.
      try batch.authorization.mayRead(target.path, .default, operation.caller)
    }
    let request = try authorized(submitted, of: operation) {
      hash == nil ? write.accessOperation($0) : .conditionalWrite($0.first ?? .root)
    }
    try batch.authorization.prepare(for: request.changes)
    let staged = try staged(submitted, of: operation)
    if let hash, let target = request.changes.first {
      let current = try batch.reads.value(at: target.path, for: operation).node
      guard try matches(current, hash, operation) else { return .stale(current) }
    }
    try apply(request.changes, staged)
    guard case .set = write, let written = request.changes.first else { return .written(.empty) }
    // An increment's result reveals the stored number.
    if hash == nil, submitted.dependsOnStoredData,
      try !batch.authorization.canRead(written.path, operation.caller)
    {
      return .written(nil)
    }
    return .written(written.value)
  }

  /// Checks access, and returns the request of an operation with its server values resolved.
  ///
  /// If the decision about a write takes long, it is made in the background. It is valid if nothing that it
  /// depends on has changed since; otherwise the write is decided again.
  /// - Throws: ``Deferral`` if the write has to be decided in the background; ``RealtimeError`` with status `unavailable`
  ///   if it cannot be decided there; the errors of ``authorized(_:_:work:_:)``.
  func authorized(
    _ request: WriteRequest, of operation: RealtimeOperation,
    _ accessOperation: ([Path]) -> RealtimeAccess.Operation
  ) throws -> WriteRequest {
    let caller = operation.caller
    if try batch.authorization.allowsEverything(caller) {
      return try authorized(request, caller, accessOperation)
    }
    if let decided = try operation.results.decision?.get(),
      try batch.authorization.isCurrent(decided, caller)
    {
      return try decided.verdict()
    }
    guard batch.mayDefer || batch.writer == nil,
      operation.results.backgroundDecisionCount < WriteDecision.maximumAttempts
    else {
      do {
        let work = DecisionWork(steps: staging.maximumDecisionSteps)
        return try authorized(request, caller, work: work, accessOperation)
      } catch is DecisionInterrupted { throw WriteDecision.undecided }
    }
    let isLong =
      request.changes.count > staging.decidedPaths || operation.weight > staging.minimumStagedBytes
      || operation.results.backgroundDecisionCount > 0
    do {
      if isLong, batch.mayDefer { throw DecisionInterrupted() }
      batch.decisionWork.refill(to: staging.minimumDecisionSteps)
      return try authorized(request, caller, work: batch.decisionWork, accessOperation)
    } catch is DecisionInterrupted {
      _ = try batch.requireWriter()
      throw Deferral.decision(
        WriteDecision(
          request: request, operation: accessOperation(request.changes.map(\.path)), caller: caller,
          decisionCount: batch.decisionCount))
    }
  }

  /// Checks access, and returns the request with its server values resolved.
  ///
  /// Whether an increment fails depends on stored data. Its error is therefore thrown only after access is allowed.
  /// - Parameter work: the work that the decision may spend; nil for no limit.
  /// - Throws: ``RealtimeError`` with status `permission_denied`, or for an increment whose result is not finite;
  ///   ``Access/DecisionInterrupted``.
  func authorized(
    _ request: WriteRequest, _ caller: Principal, work: DecisionWork? = nil,
    _ operation: ([Path]) -> RealtimeAccess.Operation
  ) throws -> WriteRequest {
    var resolved = request
    let failure = try resolved.resolve(in: tree, now: now)
    if try !batch.authorization.allowsEverything(caller) {
      try batch.authorization.mayWrite(
        operation(request.changes.map(\.path)), resolved.changes, caller, work: work)
    }
    if let failure { throw failure }
    return resolved
  }

  /// The values of a heavy write that a background job has staged (stored invisibly, in small commits); empty for other
  /// writes.
  /// - Throws: ``Deferral`` if the values still have to be staged.
  private func staged(_ request: WriteRequest, of operation: RealtimeOperation) throws -> StagedWrite {
    if let staged = operation.results.staged {
      let staged = try staged.get()
      guard operation.weight(without: staged) <= RowWeight.maximumCommitBytes else {
        throw RealtimeError.writeTooBig
      }
      return staged
    }
    if operation.weight > staging.minimumStagedBytes {
      _ = try batch.requireWriter()
      if batch.mayDefer { throw Deferral.staging(WriteStaging(request: request)) }
    }
    guard operation.weight <= RowWeight.maximumCommitBytes else { throw RealtimeError.writeTooBig }
    return StagedWrite()
  }

  /// Whether a value has the hash of a conditional write.
  ///
  /// A large value is hashed in the background. If the value changes before the hash is known, the condition fails:
  /// the client could not know the new value when it sent the hash.
  /// - Throws: ``Deferral`` if a large value still has to be hashed.
  private func matches(_ current: Node, _ hash: String, _ operation: RealtimeOperation) throws -> Bool {
    if let result = operation.results.hash { return result.matches && result.node == current }
    if batch.mayDefer, !hash.isEmpty, current.estimatedSize > staging.preparedBytes {
      throw Deferral.hash(HashComparison(node: current, hash: hash))
    }
    return current.matches(hash: hash)
  }

  /// Changes the tree, its index rows and the log, and notifies listeners.
  ///
  /// - Parameter changes: in ascending order of paths, none inside another.
  func apply(_ changes: [(path: Path, value: Node)], _ staged: StagedWrite = StagedWrite()) throws {
    let writer = try batch.requireWriter()
    try batch.markIfEmpty()
    var effective: [Change] = []
    var emptied: [Path] = []
    // Many changes may have the same parent. Two facts about a parent are therefore looked up only once. `object` is
    // a parent that is known to have children. `removed` is the last removed child, whose parent may have lost its
    // last child.
    var object: Path?
    var removed: Path?
    var gap = RowGap(around: changes, minimumChanges: staging.minimumGapChanges)
    // Priorities are written last, because another change of the same write may create the location of a
    // priority.
    for priorities in [false, true] {
      for (position, change) in changes.enumerated() where change.path.isPriority == priorities {
        let parent = priorities ? nil : change.path.parent
        if let removedPath = removed, priorities || !change.value.isEmpty || removedPath.parent != parent {
          let orphaned = try tree.clearOrphanedPriorities(above: removedPath, in: writer)
          if !orphaned.isEmpty { gap?.forget() }
          emptied += orphaned
          removed = nil
        }
        let indexed = try batch.indexes.indexes(around: change.path)
        let isStaged = staged.changes[position] != nil
        let outcome =
          if let (generation, deferred) = staged.changes[position] {
            (
              changed: true,
              before: try tree.install(generation, at: change.path, change.value, deferred, in: writer)
            )
          } else {
            try tree.set(change.path, to: change.value, inside: object, &gap, in: writer)
          }
        if isStaged { gap?.forget() }
        if !priorities, !change.value.isEmpty { object = parent }
        if outcome.changed {
          if !priorities, change.value.isEmpty { removed = change.path }
          if let indexed {
            try batch.indexes.update(
              indexed, at: change.path, isStaged ? nil : change.value,
              hadChildren: outcome.before.map { !$0.isEmpty && !$0.isLeaf } ?? true, in: writer)
          }
          effective.append(Change(path: change.path, value: change.value, before: outcome.before))
        }
      }
    }
    if let removed { emptied += try tree.clearOrphanedPriorities(above: removed, in: writer) }
    guard !effective.isEmpty else { return }
    effective.sort { $0.path < $1.path }
    batch.logChanges(effective.map { ($0.path, $0.value) })
    try batch.notify(batch.notifications.notifications(for: effective, emptied: emptied))
  }
}

extension RealtimeWrite {
  /// The write as an operation about which a policy decides.
  func accessOperation(_ paths: [Path]) -> RealtimeAccess.Operation {
    switch self {
    case .set(let path, _): .write(path)
    case .update: .merge(paths)
    }
  }
}
