// Group commit: whatever was sequenced while one group is being synced forms the next group, so that many commits
// share a sync, while sequencers go on running bodies.
//
// Invariants
//   1. Groups are written one at a time, in order; inside a group, commits of one database stand in sequence.
//   2. A group is published, delivered to followers and answered, in this order, only after the engine said that it
//      is durable. Whatever is sequenced after a commit is answered after that commit's delivery.
//   3. No version above the durable ceiling is published: a group that needs a higher one writes it with its rows.
//   4. After a failed write nothing is written any more: the outcome of that group is unknown until a restart, and
//      everything in flight and later is answered with that error.

import Locking

/// One sequenced call that waits for its group.
struct SequencedCommit {
  /// The database it belongs to.
  let standing: Standing
  /// The version it was given, or of the state it saw.
  let version: Version
  /// Whether it changed rows or logged something.
  let isCommit: Bool
  /// What it logged.
  let record: LogRecord?
  /// Called once, when it is durable or failed.
  let done: @Sendable (StoreError?) -> Void
}

/// The writer of a store.
final class CommitPipeline: Sendable {
  /// Commits that will share a sync.
  final class Group {
    let batch: any EngineBatch
    var commits: [SequencedCommit] = []
    var newest = Version.zero

    init(_ batch: any EngineBatch) { self.batch = batch }
  }

  private struct State {
    var open: Group
    var spare: Group?
    var failure: StoreError?
    var stopping = false
    /// Whether the open group may be written.
    var isDue = false
  }

  /// How far ahead of the clock the ceiling is persisted, in microseconds.
  static let ceilingLead: UInt64 = 1_000_000
  /// The bytes at which a group takes no more and sequencers wait for the one under way.
  static let groupBytes = 64 << 20

  private let engine: any StorageEngine
  private let options: StoreOptions
  private let published: Guarded<Published>
  private let ceiling: Guarded<Version>
  private let state: Guarded<State>

  init(
    _ engine: any StorageEngine, _ published: Guarded<Published>, ceiling: Version, _ options: StoreOptions
  ) {
    self.engine = engine
    self.options = options
    self.published = published
    self.ceiling = Guarded(ceiling)
    state = Guarded(State(open: Group(engine.makeBatch())))
  }

  /// The error that ended writing, if one did.
  var failure: StoreError? { state.withLock { $0.failure } }

  /// The highest version that may be published without a write.
  var durableCeiling: Version { ceiling.withLock { $0 } }

  /// Puts a sequenced call into the next group; `write` adds its rows. It stays there until ``release()``. May wait for
  /// room: never on the cooperative pool.
  func submit(_ commit: SequencedCommit, _ write: (any EngineBatch) -> Void = { _ in }) {
    let failure: StoreError? = state.wait { state -> StoreError?? in
      if let failure = state.failure { return .some(failure) }
      if state.open.batch.byteCount > CommitPipeline.groupBytes {
        // Nobody releases what this call waits behind, should the same thread have submitted it.
        if !state.isDue {
          state.isDue = true
          self.state.broadcast()
        }
        return nil
      }
      write(state.open.batch)
      state.open.commits.append(commit)
      state.open.newest = max(state.open.newest, commit.version)
      return .some(nil)
    }
    if let failure { commit.done(failure) }
  }

  /// Lets what was submitted be written. Whoever submits calls this once there is nothing more at hand, so that calls
  /// which came together share a sync, instead of the first taking one for itself.
  func release() {
    let wakes = state.withLock { state in
      guard !state.open.commits.isEmpty, !state.isDue else { return false }
      state.isDue = true
      return true
    }
    if wakes { state.broadcast() }
  }

  /// Ends ``run()`` once everything submitted is written.
  func stop() {
    state.withLock { $0.stopping = true }
    state.broadcast()
  }

  /// Refuses everything from now on. For writes that failed beside the pipeline too.
  func fail(_ cause: StoreError) -> StoreError {
    let failure = StoreError.unavailable(
      "writing failed, so nothing is written until the server restarts: \(cause.message)")
    let first = state.withLock { state in
      defer { if state.failure == nil { state.failure = failure } }
      return state.failure ?? nil
    }
    state.broadcast()
    if first == nil { options.report(failure.message) }
    return first ?? failure
  }

  /// Writes groups until stopped: the body of the writer's thread.
  func run() {
    while let group = nextGroup() {
      do {
        let snapshot = try write(group)
        publish(group, snapshot)
        recycle(group)
      } catch {
        let cause = error as? StoreError ?? StoreError.unavailable("\(error)")
        let failure = fail(cause)
        for commit in group.commits { commit.done(failure) }
        abandon(failure)
      }
    }
  }

  private func nextGroup() -> Group? {
    let next: Group?? = state.wait { state -> Group?? in
      if !state.open.commits.isEmpty, state.isDue || state.stopping {
        state.isDue = false
        let group = state.open
        state.open = state.spare ?? Group(engine.makeBatch())
        state.spare = nil
        return .some(group)
      }
      return state.stopping ? .some(nil) : nil
    }
    state.broadcast()
    return next ?? nil
  }

  /// Makes a group durable; returns the state after it if it changed anything.
  private func write(_ group: Group) throws -> (any EngineSnapshot)? {
    let durable = durableCeiling
    let half = CommitPipeline.ceilingLead / 2
    if group.newest > durable
      || (!group.batch.isEmpty && group.newest.microseconds + half > durable.microseconds)
    {
      let now = max(options.clock.now(), group.newest.microseconds)
      let raised = Version(microseconds: now + CommitPipeline.ceilingLead)
      CatalogueRows.putCeiling(raised, in: group.batch)
      try engine.commit(group.batch)
      ceiling.withLock { $0 = max($0, raised) }
      return engine.snapshot()
    }
    guard !group.batch.isEmpty else { return nil }
    try engine.commit(group.batch)
    return engine.snapshot()
  }

  /// Shows a durable group: to readers, then to followers, then to those who asked for it.
  private func publish(_ group: Group, _ snapshot: (any EngineSnapshot)?) {
    let (following, previous) = published.withLock { published in
      let previous = published.snapshot
      if let snapshot { published.snapshot = snapshot }
      return (
        group.commits.map { $0.standing.publishLocked($0) }, previous
      )
    }
    // Releasing a snapshot takes the engine's own lock: not while readers wait for ours.
    withExtendedLifetime(previous) {}
    var delivered: [Standing] = []
    for (commit, followers) in zip(group.commits, following) where !followers.isEmpty {
      guard let record = commit.record else { continue }
      for follower in followers { follower.deliver(record) }
      if delivered.last !== commit.standing { delivered.append(commit.standing) }
    }
    if !delivered.isEmpty {
      published.withLock { _ in for standing in delivered { standing.deliveredLocked() } }
    }
    for commit in group.commits { commit.done(nil) }
  }

  private func recycle(_ group: Group) {
    guard group.batch.byteCount < 1 << 20 else { return }
    group.batch.removeAll()
    group.commits.removeAll(keepingCapacity: true)
    group.newest = .zero
    state.withLock { state in if state.spare == nil { state.spare = group } }
  }

  /// Answers what came into the open group before the failure was known.
  private func abandon(_ failure: StoreError) {
    let rest = state.withLock { state in
      let rest = state.open.commits
      state.open = Group(engine.makeBatch())
      return rest
    }
    for commit in rest { commit.done(failure) }
  }
}
