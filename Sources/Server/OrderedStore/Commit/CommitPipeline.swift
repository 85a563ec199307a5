// The commit pipeline is the group-commit writer of a store. Commits that are sequenced while one group is
// synced form the next group. Many commits therefore share one sync, and sequencers run further bodies during
// the sync. A body is the caller's closure that reads and writes rows.
//
// Path of one commit through the store, in order:
//   1. Contract/OrderedStore.swift        `OrderedDatabase.execute`, the call of a product's engine
//   2. Catalogue/EngineDatabase.swift     enqueues the call
//   3. Sequencer/CommitSequencer.swift    assigns the version and runs the body on a sequencer thread
//   4. Sequencer/SequencedState.swift     collects the writes, over Sequencer/UncommittedRows.swift
//   5. Commit/CommitPipeline.swift        adds the rows to the open group (keys: Engine/StorageKeyLayout.swift)
//   6. EmbeddedStore/RocksBatch.swift, RocksEngine.swift   sort the batch, write and sync it (MemoryEngine: in memory)
//   7. Commit/PublishedState.swift        makes the commit visible to readers
//   8. Commit/CommitPipeline.swift        delivers the log record to the followers (subscribers to the database's log in
//                                         this process), then completes the call
//
// Invariants
//   1. Groups are written one at a time, in order. Within a group, commits of one database keep their sequence.
//   2. A group is published, delivered to followers and completed, in this order, only after the engine reported it
//      durable. A call that is sequenced after a commit is completed only after that commit was delivered to followers.
//   3. No version above the durable ceiling is published. A group that needs a higher ceiling writes it with its rows.
//   4. After a failed write nothing more is written. The outcome of the failed group is unknown until a restart, and every
//      call in flight or later fails with that error.
//   5. Every submitted call completes exactly once.

import Locking

/// One sequenced call in a group.
struct SequencedCommit {
  enum Kind {
    /// The call changed rows or logged a record, at a new version.
    case commit
    /// The call reserved a new version and changed nothing.
    case reservation
    /// The call only waits for all calls sequenced before it. It gets no new version.
    case barrier
  }

  /// The database of the call.
  let publishedState: PublishedState
  let kind: Kind
  /// The version of the commit or reservation; for a barrier the version of the state that the call saw.
  let version: Version
  /// The log record of a commit.
  let record: LogRecord?
  /// Called exactly once, after the call is durable or has failed.
  let completion: @Sendable (StoreError?) -> Void

  init(
    _ kind: Kind, of publishedState: PublishedState, at version: Version, record: LogRecord? = nil,
    completion: @escaping @Sendable (StoreError?) -> Void
  ) {
    precondition(
      record == nil || (kind == .commit && record?.version == version),
      "invariant: a log record has the version of its commit")
    self.publishedState = publishedState
    self.kind = kind
    self.version = version
    self.record = record
    self.completion = completion
  }
}

/// The writer of a store.
final class CommitPipeline: Sendable {
  /// Commits that share a sync.
  final class Group {
    enum Stage { case open, writing, durable, completed }

    let batch: any EngineBatch
    var commits: [SequencedCommit] = []
    var newestVersion = Version.zero
    /// The position in the sequence of written groups, from 1; 0 while the group is open.
    var number: UInt64 = 0
    var stage = Stage.open

    init(_ batch: any EngineBatch) { self.batch = batch }
  }

  private struct State {
    var openGroup: Group
    var recycledGroup: Group?
    /// The number of groups that the writer has taken.
    var groupCount: UInt64 = 0
    var failure: StoreError?
    var isStopping = false
    /// Whether the writer has returned. Calls submitted later fail, because no thread would write them.
    var hasEnded = false
    /// Whether the writer may take the open group: a submitter has called `release()`, or the group is full.
    var isReleased = false
  }

  /// The distance between the clock and a newly written ceiling, in microseconds. Because of this lead, most
  /// groups need no new ceiling. After a kill, versions and server times are at most this far ahead of the clock.
  static let ceilingLead: UInt64 = 100_000
  /// The size of the open group's batch above which submitting threads wait until the writer takes the group,
  /// in bytes.
  static let maximumGroupBytes = 64 << 20
  /// The maximum size of a batch that is reused for a later group, in bytes. Larger batches are freed.
  private static let maximumRecycledBytes = 1 << 20

  private let engine: any StorageEngine
  private let options: StoreOptions
  private let published: Guarded<SharedState>
  private let ceiling: Guarded<Version>
  private let state: Guarded<State>

  init(
    _ engine: any StorageEngine, _ published: Guarded<SharedState>, ceiling: Version, _ options: StoreOptions
  ) {
    self.engine = engine
    self.options = options
    self.published = published
    self.ceiling = Guarded(ceiling)
    state = Guarded(State(openGroup: Group(engine.makeBatch())))
  }

  /// The error of the first failed write, if any.
  var failure: StoreError? { state.withLock { $0.failure } }

  /// The highest version that may be published without writing a new ceiling.
  var durableCeiling: Version { ceiling.withLock { $0 } }

  /// Adds a sequenced call to the open group; `write` adds its rows. The group is written after ``release()``.
  ///
  /// Blocks while the open group is full: never call it on the cooperative pool.
  func submit(_ commit: SequencedCommit, _ write: (any EngineBatch) -> Void = { _ in }) {
    let failure: StoreError? = state.wait { state -> StoreError?? in
      if let failure = state.failure { return .some(failure) }
      if state.hasEnded { return .some(PublishedState.closed) }
      if state.openGroup.batch.byteCount > CommitPipeline.maximumGroupBytes {
        // This thread may have filled the group without releasing it. It must release the group before it
        // waits, or it would wait forever.
        if !state.isReleased {
          state.isReleased = true
          self.state.broadcast()
        }
        return nil
      }
      precondition(state.openGroup.stage == .open, "invariant: calls join only the open group")
      write(state.openGroup.batch)
      state.openGroup.commits.append(commit)
      state.openGroup.newestVersion = max(state.openGroup.newestVersion, commit.version)
      return .some(nil)
    }
    if let failure { commit.completion(failure) }
  }

  /// Lets the writer take the open group. A sequencer calls this after it has run the calls that arrived
  /// together, so that they share a sync.
  func release() {
    let wakes = state.withLock { state in
      guard !state.openGroup.commits.isEmpty, !state.isReleased else { return false }
      state.isReleased = true
      return true
    }
    if wakes { state.broadcast() }
  }

  /// Ends ``run()`` once everything submitted is written.
  func stop() {
    state.withLock { $0.isStopping = true }
    state.broadcast()
  }

  /// Fails every call from now on. The trimmer also calls it when one of its writes fails.
  /// - Returns: the error of the first failed write, with which all calls fail.
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

  /// Writes groups until the pipeline is stopped: the body of the writer thread.
  func run() {
    while let group = nextGroup() {
      if let failure {
        abandon(group, failure)
        continue
      }
      do {
        let snapshot = try write(group)
        publish(group, snapshot)
        recycle(group)
      } catch {
        abandon(group, fail(error as? StoreError ?? StoreError.unavailable("\(error)")))
      }
    }
  }

  /// Waits for the next group to write; nil once the pipeline is stopped and everything is written.
  private func nextGroup() -> Group? {
    let next: Group?? = state.wait { state -> Group?? in
      if !state.openGroup.commits.isEmpty, state.isReleased || state.isStopping || state.failure != nil {
        state.isReleased = false
        let group = state.openGroup
        state.groupCount += 1
        group.number = state.groupCount
        group.stage = .writing
        state.openGroup = state.recycledGroup ?? Group(engine.makeBatch())
        state.recycledGroup = nil
        return .some(group)
      }
      guard state.isStopping else { return nil }
      state.hasEnded = true
      return .some(nil)
    }
    state.broadcast()
    return next ?? nil
  }

  /// Makes a group durable.
  /// - Returns: the state after the group; nil if the group changed nothing.
  private func write(_ group: Group) throws -> (any EngineSnapshot)? {
    let durable = durableCeiling
    let halfLead = CommitPipeline.ceilingLead / 2
    if group.newestVersion > durable
      || (!group.batch.isEmpty && group.newestVersion.microseconds + halfLead > durable.microseconds)
    {
      let now = max(options.clock.now(), group.newestVersion.microseconds)
      let raised = Version(microseconds: now + CommitPipeline.ceilingLead)
      CatalogueRows.putCeiling(raised, in: group.batch)
      try engine.commit(group.batch)
      ceiling.withLock { $0 = max($0, raised) }
    } else {
      guard !group.batch.isEmpty else {
        group.stage = .durable
        return nil
      }
      try engine.commit(group.batch)
    }
    group.stage = .durable
    return engine.snapshot()
  }

  /// Makes a durable group visible: publishes it for readers, then delivers its log records to the followers, then
  /// completes its calls.
  private func publish(_ group: Group, _ snapshot: (any EngineSnapshot)?) {
    precondition(group.stage == .durable, "invariant: a group is published only after it is durable")
    precondition(
      group.newestVersion <= durableCeiling, "invariant: the durable ceiling is above every published version"
    )
    let (followers, previous) = published.withLock { published in
      precondition(
        group.number == published.groupNumber + 1, "invariant: groups are published in the order of writing")
      published.groupNumber = group.number
      let previous = published.snapshot
      if let snapshot { published.snapshot = snapshot }
      return (group.commits.map { $0.publishedState.publish($0) }, previous)
    }
    // Releasing the previous snapshot takes the engine's lock. It is released here, outside the lock of
    // `published`, so that readers do not wait for it.
    withExtendedLifetime(previous) {}
    var delivered: [PublishedState] = []
    for (commit, followers) in zip(group.commits, followers) where !followers.isEmpty {
      guard let record = commit.record else { continue }
      for follower in followers { follower.deliver(record) }
      if delivered.last !== commit.publishedState { delivered.append(commit.publishedState) }
    }
    if !delivered.isEmpty {
      published.withLock { _ in for state in delivered { state.markDelivered() } }
    }
    complete(group, nil)
  }

  /// Completes every call of a group.
  private func complete(_ group: Group, _ failure: StoreError?) {
    precondition(group.stage != .completed, "invariant: every submitted call completes exactly once")
    group.stage = .completed
    for commit in group.commits { commit.completion(failure) }
  }

  private func recycle(_ group: Group) {
    guard group.batch.byteCount < CommitPipeline.maximumRecycledBytes else { return }
    group.batch.removeAll()
    group.commits.removeAll(keepingCapacity: true)
    group.newestVersion = .zero
    group.number = 0
    group.stage = .open
    state.withLock { state in if state.recycledGroup == nil { state.recycledGroup = group } }
  }

  /// Fails the calls of a group that could not be written, and the calls of the open group.
  private func abandon(_ group: Group, _ failure: StoreError) {
    complete(group, failure)
    let rest = state.withLock { state in
      let rest = state.openGroup
      state.openGroup = Group(engine.makeBatch())
      return rest
    }
    complete(rest, failure)
  }
}
