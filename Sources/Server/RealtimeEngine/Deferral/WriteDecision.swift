// Decides a write in the background if the access policy takes long to decide it.
//
// The policy reads a durable state while other operations are sequenced. The decision records what it has read, and
// the changes that are sequenced until it is complete. The batch that executes the write compares the answers that
// these changes may affect. So the write is executed exactly if the policy would allow it at that position.
//
// Invariant: a write is executed only if its decision still holds. Every answer that the decision read is the same in
// the current state, and the policy and the caller have not changed.
//
// Decision: docs/decisions/0035-decisions-about-large-writes.md

import Access
import Locking
import OrderedStore
import RealtimeModel

/// The background decision about one write.
struct WriteDecision: DeferredWork {
  /// The write, with its server values.
  let request: WriteRequest
  let operation: RealtimeAccess.Operation
  let caller: Principal
  /// See ``BatchExecution/decisionCount``.
  let decisionCount: (before: Int, now: Int)

  /// Maximum number of attempts. An attempt fails if other clients change the data that it read. After the
  /// last one the batch itself decides, with at most ``StagingLimits/maximumDecisionSteps``.
  static let maximumAttempts = 8
  /// Maximum number of decisions of all namespaces at a time. Each occupies one of the store's four reader threads.
  static let maximumConcurrency = 2
  /// The error of a write whose decision takes too long for a batch and cannot be made in the background.
  static let undecided = RealtimeError(
    .unavailable, "the rules take long about this write, and its data changed meanwhile; try again")

  var lane: DeferralLane { .decisions }

  func start(_ job: DeferralJob) async -> Result<DecidedWrite, RealtimeError> {
    await job.runner.decisionLimit.run { await decide(job) }
  }

  private func decide(_ job: DeferralJob) async -> Result<DecidedWrite, RealtimeError> {
    do {
      try job.checkRunning()
      let executor = job.runner.executor
      let changes = SequencedChanges()
      executor.observers.add(changes)
      // Earlier batches may still be in flight. The barrier waits until they are durable, because the durable rows
      // would otherwise miss their writes.
      try await job.queue.barrier()
      let pinned = try job.runner.store.pinView()
      changes.begin(after: pinned.version)
      return .success(
        try await pinned.read {
          try executor.decide(self, in: $0, changes) { try job.checkRunning() }
        })
    } catch { return .failure(RealtimeError(storeError: error)) }
  }

  func finish(
    _ operation: RealtimeOperation, with output: Result<DecidedWrite, RealtimeError>, _ job: DeferralJob
  ) async -> RealtimeOperation {
    var operation = operation
    operation.results.decision = output
    operation.results.backgroundDecisionCount += 1
    if case .success(let decided) = output { operation.results.decisionCount = decided.decisionCount }
    return operation
  }
}

/// A write that was decided in the background, and what the decision depends on.
struct DecidedWrite: Sendable {
  /// The write with its server values resolved.
  let request: WriteRequest
  /// The error of the write; nil if it is allowed.
  let error: RealtimeError?
  let caller: Principal
  let policy: BatchExecution.PolicyVersion
  let dependencies: DecisionDependencies
  /// See ``BatchExecution/decisionCount``.
  let decisionCount: Int
  private let changes: SequencedChanges
  /// The questions whose answers earlier changes may have changed; nil if they are too many or not known.
  private var questions: Set<TreeQuestion>? = []

  /// Maximum number of questions whose answers a batch reads again.
  private static let maximumQuestions = 256
  /// Maximum number of changes that a batch compares with the questions. The background job has compared all earlier
  /// changes.
  private static let maximumChangesInBatch = 4_096

  init(
    request: WriteRequest, error: RealtimeError?, caller: Principal, policy: BatchExecution.PolicyVersion,
    dependencies: DecisionDependencies, changes: SequencedChanges, decisionCount: Int
  ) {
    self.request = request
    self.error = error
    self.caller = caller
    self.policy = policy
    self.dependencies = dependencies
    self.changes = changes
    self.decisionCount = decisionCount
    while questions != nil, let paths = changes.take(), !paths.isEmpty { questions = find(paths, questions) }
    changes.filter(by: dependencies)
  }

  /// The request.
  /// - Throws: the error of the write.
  func verdict() throws -> WriteRequest {
    if let error { throw error }
    return request
  }

  /// The questions whose answers may have changed since the decision; nil if they are too many or not known.
  var changedQuestions: Set<TreeQuestion>? {
    guard let paths = changes.all, paths.count <= Self.maximumChangesInBatch else { return nil }
    return find(paths, questions)
  }

  private func find(_ paths: [Path], _ questions: Set<TreeQuestion>?) -> Set<TreeQuestion>? {
    guard var questions else { return nil }
    for path in paths {
      guard
        dependencies.insertQuestions(changedBy: path, into: &questions, maximum: Self.maximumQuestions)
      else { return nil }
    }
    return questions
  }
}

/// The paths of the changes that are sequenced while a write is decided.
final class SequencedChanges: ChangeObserver {
  private struct State {
    /// In sequenced order. A change without a version may be earlier than the decision.
    var changes: [(version: Version?, path: Path)] = []
    var start = Version.zero
    /// The dependencies of the decision; nil until it is made.
    var dependencies: DecisionDependencies?
    var isSpoiled = false
  }

  /// Maximum number of changes. They take some 50 MB.
  private static let maximumCount = 200_000

  private let state = Guarded(State())

  func record(_ changed: Path, _ value: Node, at version: Version) { add(changed, version) }
  func invalidate(_ changed: Path) { add(changed, nil) }

  func spoil() { state.withLock { $0 = State(isSpoiled: true) } }

  private func add(_ path: Path, _ version: Version?) {
    state.withLock { state in
      if state.isSpoiled || version.map({ $0 <= state.start }) ?? false { return }
      if let dependencies = state.dependencies, !dependencies.mayDepend(on: path) { return }
      state.changes.append((version, path))
      if state.changes.count > Self.maximumCount { state = State(isSpoiled: true) }
    }
  }

  /// Ignores later changes that a decision does not depend on.
  func filter(by dependencies: DecisionDependencies) {
    state.withLock { if !$0.isSpoiled { $0.dependencies = dependencies } }
  }

  /// Forgets the changes up to a version.
  func begin(after version: Version) {
    state.withLock { state in
      state.start = version
      state.changes.removeAll { $0.version.map { $0 <= version } ?? false }
    }
  }

  /// The recorded changes; nil if some were missed or rolled back.
  var all: [Path]? { state.withLock { $0.isSpoiled ? nil : $0.changes.map(\.path) } }

  /// Removes the recorded changes and returns them; nil if some were missed or rolled back.
  func take() -> [Path]? {
    state.withLock { state in
      if state.isSpoiled { return nil }
      let paths = state.changes.map(\.path)
      state.changes = []
      return paths
    }
  }
}
