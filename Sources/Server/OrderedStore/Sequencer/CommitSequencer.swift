// The commit sequencer of one database runs the bodies of its calls. A body is the caller's closure that
// reads and writes rows. Bodies run one at a time in the order of the calls, on a thread of the store's pool.
// Each sees all commits sequenced before it, durable or not. The sequencer passes each commit to the pipeline
// without waiting for its sync.
//
// The header of Commit/CommitPipeline.swift lists the files through which a commit passes.
//
// Invariants
//   1. Bodies of one database never run at the same time. Each body sees the writes of the bodies before it.
//   2. Versions of commits and reservations strictly increase: each is max(clock, last + 1 µs).
//   3. No outcome (result, error or conflict) is delivered before everything its body saw is durable and has been
//      delivered to the followers (subscribers) of the log.
//   4. Every call gets exactly one outcome.

import Locking

/// The commit sequencer of one database.
// SAFETY: every mutable field outside `queue` is only accessed by `drain`. `Queue.isScheduled` lets one drain run at a time,
// and the lock of the queue orders one drain after the other.
final class CommitSequencer: @unchecked Sendable {
  typealias Job = @Sendable (CommitSequencer) -> Void

  private struct Queue {
    var jobs: [Job] = []
    var isScheduled = false
    var isClosed = false
  }

  /// The number of calls after which the sequencer yields its thread to other databases.
  private static let callsPerTimeSlice = 128
  /// The maximum number of calls that are released to the writer together.
  private static let maximumCallsPerRelease = 64
  /// The time after which commits are released to the writer even if more calls are queued, in microseconds.
  private static let maximumReleaseDelay: UInt64 = 1000

  let layout: StorageKeyLayout
  let publishedState: PublishedState
  let keepsHistory: Bool
  /// The rows of commits that are not in the published snapshot yet, and the rows that the running body has
  /// written.
  var uncommitted = UncommittedRows()
  private let pipeline: CommitPipeline
  private let pool: ThreadPool
  private let options: StoreOptions
  private let queue = Guarded(Queue())
  /// The creation of the database; nil if it was in the catalogue when it was opened.
  private let creation: DatabaseCreation?
  /// Whether the database is provisional: no commit has created it yet.
  private(set) var isProvisional: Bool
  /// Whether the database was not in the catalogue when it was opened, and has had no commit since.
  private var lacksFirstRows: Bool
  /// The newest version of a commit or reservation.
  private var last: Version
  /// The newest version of a commit.
  private var newestCommit: Version
  private var recentWrites: RecentWrites
  private var isRunningBody = false
  private var hasReportedClock = false

  init(
    _ layout: StorageKeyLayout, _ publishedState: PublishedState, keepsHistory: Bool,
    creation: DatabaseCreation?, _ pipeline: CommitPipeline, _ pool: ThreadPool, _ options: StoreOptions
  ) {
    self.creation = creation
    isProvisional = creation != nil
    lacksFirstRows = creation != nil
    self.layout = layout
    self.publishedState = publishedState
    self.keepsHistory = keepsHistory
    self.pipeline = pipeline
    self.pool = pool
    self.options = options
    last = publishedState.latestVersion
    newestCommit = last
    recentWrites = RecentWrites(horizon: last)
  }

  /// Queues a job.
  /// - Throws: ``StoreError`` when the sequencer is closed or its queue is full. The job then never runs.
  func enqueue(_ job: @escaping Job) throws {
    let starts = try queue.withLock { queue in
      guard !queue.isClosed else { throw PublishedState.closed }
      guard queue.jobs.count < StoreLimits.maximumQueuedCalls else {
        throw StoreError.unavailable("\(StoreLimits.maximumQueuedCalls) calls wait for this database already")
      }
      queue.jobs.append(job)
      defer { queue.isScheduled = true }
      return !queue.isScheduled
    }
    if starts { schedule() }
  }

  /// Rejects calls from now on. Queued calls still run.
  func close() { queue.withLock { $0.isClosed = true } }

  private func schedule() {
    if !pool.submit({ self.drain() }) { drain() }
  }

  private func drain() {
    var served = 0
    while served < CommitSequencer.callsPerTimeSlice {
      let jobs = queue.withLock { queue -> [Job] in
        if queue.jobs.isEmpty { queue.isScheduled = false }
        defer { queue.jobs = [] }
        return queue.jobs
      }
      guard !jobs.isEmpty else { return }
      run(jobs)
      served += jobs.count
    }
    schedule()
  }

  /// Runs jobs that were queued together, and releases their commits to the writer together. Releases them earlier after
  /// every 64 jobs, and when the first commit has waited for a millisecond. The waiting time is computed from versions,
  /// because versions follow the clock.
  private func run(_ jobs: [Job]) {
    var firstUnreleased: Version?
    for (index, job) in jobs.enumerated() {
      job(self)
      let waitsTooLong = firstUnreleased.map {
        last.microseconds - $0.microseconds > CommitSequencer.maximumReleaseDelay
      }
      let isLastOfRelease =
        index % CommitSequencer.maximumCallsPerRelease
        == CommitSequencer.maximumCallsPerRelease - 1
      if let waitsTooLong, waitsTooLong || isLastOfRelease {
        pipeline.release()
        firstUnreleased = nil
      } else if firstUnreleased == nil {
        firstUnreleased = last
      }
    }
    pipeline.release()
  }

  /// Runs one body and commits its writes.
  /// - Parameter validateOffSequencer: validates the reads on a reader thread, and queues the call again.
  func execute<Result: Sendable>(
    validating validation: ReadValidation?, _ body: (any SequencedTransaction) throws -> Result,
    _ call: SequencedCall<Result>, validateOffSequencer: (ReadValidation) -> Void
  ) {
    if let failure = pipeline.failure { return call.complete(.failure(failure)) }
    let state: SequencedState
    let delivered: Version
    do {
      let published = try publishedState.publishedView()
      delivered = published.delivered
      precondition(published.latest <= last, "invariant: only sequenced versions are published")
      uncommitted.removePublished(upTo: published.latest)
      let reader = RowReader(
        snapshot: published.snapshot, layout: layout, tier: .disk, newestVersion: published.latest)
      if let validation {
        guard let hasChanged = try hasChanged(since: validation, reader, published.floor) else {
          return validateOffSequencer(validation)
        }
        if hasChanged {
          return whenDurable(delivered) { call.complete(.failure($0 ?? StoreError.conflict)) }
        }
      }
      state = SequencedState(self, reader, nextVersion())
    } catch {
      return call.complete(.failure(error))
    }
    precondition(!isRunningBody, "invariant: bodies of one database run one at a time")
    isRunningBody = true
    defer { isRunningBody = false }
    do {
      let result = try body(state)
      if lacksFirstRows, state.hasContent { try creation?.writeFirstRows(to: state) }
      try state.finish(keepsHistory: keepsHistory)
      if state.wrote {
        let committed = Committed(result: result, version: state.commitVersion, wrote: true)
        commit(state) { call.complete($0.map { .failure($0) } ?? .success(committed)) }
      } else if state.reservesCommitVersion {
        let committed = Committed(result: result, version: state.commitVersion, wrote: false)
        reserve(state.commitVersion) { call.complete($0.map { .failure($0) } ?? .success(committed)) }
      } else {
        let committed = Committed(result: result, version: last, wrote: false)
        whenDurable(delivered) { call.complete($0.map { .failure($0) } ?? .success(committed)) }
      }
    } catch {
      state.rollBack()
      whenDurable(delivered) { call.complete(.failure($0 ?? error)) }
    }
  }

  /// The newest version that was assigned. Read, like ``isProvisional``, when the last handle of the database is released.
  /// Queued jobs retain a handle, so no job runs then.
  var newestVersion: Version { last }

  /// Creates the database, unless a commit has created it. Its first commit will write the first rows. `completion` is
  /// called when the entry is durable.
  func create(_ completion: @escaping @Sendable (StoreError?) -> Void) {
    let entry = takeCreation()
    let barrier = SequencedCommit(.barrier, of: publishedState, at: last, completion: completion)
    pipeline.submit(barrier) { entry?.add(to: $0) }
  }

  /// Takes the pending creation for the commit that performs it.
  private func takeCreation() -> DatabaseCreation? {
    guard isProvisional, let creation else { return nil }
    isProvisional = false
    creation.register()
    return creation
  }

  /// Reserves a version. `completion` is called after all commits below it are durable.
  func reserve(_ completion: @escaping @Sendable (Swift.Result<Version, any Error>) -> Void) {
    if let failure = pipeline.failure { return completion(.failure(failure)) }
    let version = nextVersion()
    reserve(version) { completion($0.map { .failure($0) } ?? .success(version)) }
  }

  /// Reserves a version for a call that changes nothing. `completion` is called after all commits below the version are
  /// durable and the version is below the durable ceiling, so that no later process assigns it again.
  private func reserve(_ version: Version, _ completion: @escaping @Sendable (StoreError?) -> Void) {
    advance(to: version)
    pipeline.submit(
      SequencedCommit(.reservation, of: publishedState, at: version, completion: completion))
  }

  /// Removes the database after all commits sequenced before this call. `write` adds the changes that remove
  /// it to the batch.
  func remove(
    _ write: @escaping @Sendable (any EngineBatch) -> Void,
    _ completion: @escaping @Sendable (StoreError?) -> Void
  ) {
    publishedState.remove()
    pipeline.submit(SequencedCommit(.barrier, of: publishedState, at: last, completion: completion), write)
  }

  private func commit(_ state: SequencedState, _ completion: @escaping @Sendable (StoreError?) -> Void) {
    let version = state.commitVersion
    let keys = KeyList(state.changes.lazy.map(\.key))
    advance(to: version)
    newestCommit = version
    uncommitted.recordCommit(bytes: state.byteCount, at: version)
    recentWrites.add(keys, at: version)
    let commit = SequencedCommit(
      .commit, of: publishedState, at: version, record: state.record, completion: completion)
    let entry = takeCreation()
    lacksFirstRows = false
    pipeline.submit(commit) { batch in
      entry?.add(to: batch)
      state.addRows(to: batch, keepsHistory: keepsHistory)
    }
  }

  /// Calls `completion` after everything sequenced so far is durable and delivered to followers.
  private func whenDurable(_ delivered: Version, _ completion: @escaping @Sendable (StoreError?) -> Void) {
    if last <= delivered { return completion(nil) }
    pipeline.submit(SequencedCommit(.barrier, of: publishedState, at: last, completion: completion))
  }

  private func advance(to version: Version) {
    precondition(version > last, "invariant: versions of commits and reservations strictly increase")
    last = version
  }

  private func nextVersion() -> Version {
    let now = options.clock.now()
    let tolerance = CommitPipeline.ceilingLead * 2
    if now + tolerance < last.microseconds {
      if !hasReportedClock {
        hasReportedClock = true
        options.report(
          "the clock was set back: it reads \(now) µs, below the assigned version \(last); versions do not follow it"
        )
      }
    } else {
      hasReportedClock = false
    }
    return Version(microseconds: max(now, last.microseconds + 1))
  }

  /// Whether any row of a read set has changed since it was read; nil if the check would take long.
  private func hasChanged(
    since validation: ReadValidation, _ reader: RowReader, _ floor: Version
  ) throws -> Bool? {
    let reads = validation.reads
    if validation.hasChanged { return true }
    if reads.version >= newestCommit { return false }
    if validation.mayDefer, keepsHistory, reads.version >= floor {
      return recentWrites.hasChangedAmongFew(since: reads)
    }
    if let hasChanged = recentWrites.hasChanged(since: reads) { return hasChanged }
    guard keepsHistory, reads.version >= floor else { return true }
    return try ChangeSearch(reader, uncommitted.orderedRows()).hasChanged(since: reads)
  }
}

/// The completion of one call. Traps if it is called twice, or if it is released before it was called.
// SAFETY: `isCompleted` is only accessed by the thread that runs the call at that time: first the caller's thread, then
// the sequencer's, then the writer's. Each thread passes the call to the next one under a lock. The last reference is
// released after that.
final class SequencedCall<Result: Sendable>: @unchecked Sendable {
  typealias Outcome = Swift.Result<Committed<Result>, any Error>

  private let completion: @Sendable (Outcome) -> Void
  private var isCompleted = false

  init(_ completion: @escaping @Sendable (Outcome) -> Void) { self.completion = completion }

  deinit { precondition(isCompleted, "invariant: a call is completed before it is released") }

  /// Completes the call.
  func complete(_ outcome: Outcome) {
    precondition(!isCompleted, "invariant: a call is completed only once")
    isCompleted = true
    completion(outcome)
  }
}
