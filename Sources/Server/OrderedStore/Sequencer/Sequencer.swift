// One database's sequencer: runs bodies one at a time in the order of the calls, on one of the store's threads, over
// all sequenced commits, and hands each commit to the pipeline without waiting for its sync.
//
// Invariants
//   1. Bodies of one database never run at the same time; what one wrote the next one sees.
//   2. Versions of commits and reservations strictly increase: max(clock, last + 1 µs).
//   3. No answer, be it a result, an error or a conflict, leaves before everything its body saw is durable and has
//      been delivered to the log's followers.

import Locking

/// The sequencer of one database.
// Safety: what is not in `queue` is only touched by `drain`, of which one runs at a time (`Queue.scheduled`); the
// queue's lock orders one drain after the other.
final class Sequencer: @unchecked Sendable {
  private struct Queue {
    var jobs: [@Sendable (Sequencer) -> Void] = []
    var scheduled = false
    var closed = false
  }

  /// How many calls one turn on a thread serves before others get theirs.
  private static let turn = 128

  let layout: KeyLayout
  let standing: Standing
  let keepsHistory: Bool
  var overlay = Overlay()
  private let pipeline: CommitPipeline
  private let pool: ThreadPool
  private let options: StoreOptions
  private let queue = Guarded(Queue())
  private var last: Version
  private var newestChange: Version
  private var recent: RecentWrites
  private var reportedClock = false

  init(
    _ layout: KeyLayout, _ standing: Standing, keepsHistory: Bool, _ pipeline: CommitPipeline,
    _ pool: ThreadPool,
    _ options: StoreOptions
  ) {
    self.layout = layout
    self.standing = standing
    self.keepsHistory = keepsHistory
    self.pipeline = pipeline
    self.pool = pool
    self.options = options
    last = standing.latestVersion
    newestChange = last
    recent = RecentWrites(horizon: last)
  }

  /// Puts a call in line; throws if it cannot be.
  func enqueue(_ job: @escaping @Sendable (Sequencer) -> Void) throws {
    let starts = try queue.withLock { queue in
      guard !queue.closed else { throw Standing.gone }
      guard queue.jobs.count < StoreLimits.maximumQueuedCalls else {
        throw StoreError.unavailable("\(StoreLimits.maximumQueuedCalls) calls wait for this database already")
      }
      queue.jobs.append(job)
      defer { queue.scheduled = true }
      return !queue.scheduled
    }
    if starts { schedule() }
  }

  /// Refuses calls from now on; those in line are served.
  func close() { queue.withLock { $0.closed = true } }

  private func schedule() {
    if !pool.submit({ self.drain() }) { drain() }
  }

  private func drain() {
    var served = 0
    while served < Sequencer.turn {
      let jobs = queue.withLock { queue -> [@Sendable (Sequencer) -> Void] in
        if queue.jobs.isEmpty { queue.scheduled = false }
        defer { queue.jobs = [] }
        return queue.jobs
      }
      guard !jobs.isEmpty else { return }
      serve(jobs)
      served += jobs.count
    }
    schedule()
  }

  /// Runs calls that waited together, and lets their commits be written together, unless that keeps the first of them
  /// waiting: for longer than a millisecond, by the versions, which follow the clock.
  private func serve(_ jobs: [@Sendable (Sequencer) -> Void]) {
    var first: Version?
    for (index, job) in jobs.enumerated() {
      job(self)
      if let begun = first, last.microseconds - begun.microseconds > 1000 || index % 64 == 63 {
        pipeline.release()
        first = nil
      } else if first == nil {
        first = last
      }
    }
    pipeline.release()
  }

  /// Runs one body; `answer` is called once.
  func execute<Result: Sendable>(
    validating reads: ReadSet?, _ body: (any SequencedTransaction) throws -> Result,
    _ answer: @escaping @Sendable (Swift.Result<Committed<Result>, any Error>) -> Void
  ) {
    if let failure = pipeline.failure { return answer(.failure(failure)) }
    let state: SequencedState
    let durable: Version
    do {
      let moment = try standing.moment()
      durable = moment.delivered
      overlay.settle(moment.latest)
      let reader = RowReader(snapshot: moment.snapshot, layout: layout, tier: .disk)
      if let reads, try changed(since: reads, reader, moment.floor) {
        return whenDurable(durable) { answer(.failure($0 ?? StoreError.conflict)) }
      }
      state = SequencedState(self, reader, nextVersion())
    } catch {
      return answer(.failure(error))
    }
    do {
      let result = try body(state)
      try state.finish(keepsHistory: keepsHistory)
      guard state.wrote else {
        if state.keepsVersion {
          let committed = Committed(result: result, version: state.commitVersion, wrote: false)
          return reserve(state.commitVersion) { answer($0.map { .failure($0) } ?? .success(committed)) }
        }
        let committed = Committed(result: result, version: last, wrote: false)
        return whenDurable(durable) { answer($0.map { .failure($0) } ?? .success(committed)) }
      }
      let committed = Committed(result: result, version: state.commitVersion, wrote: true)
      commit(state) { answer($0.map { .failure($0) } ?? .success(committed)) }
    } catch {
      state.rollBack()
      whenDurable(durable) { answer(.failure($0 ?? error)) }
    }
  }

  /// Hands out a version; `answer` is called once all commits below it are durable.
  func reserve(_ answer: @escaping @Sendable (Swift.Result<Version, any Error>) -> Void) {
    if let failure = pipeline.failure { return answer(.failure(failure)) }
    let version = nextVersion()
    reserve(version) { answer($0.map { .failure($0) } ?? .success(version)) }
  }

  /// Takes a version for something that changes nothing; `done` is called once all commits below it are durable, and
  /// the version is below the durable ceiling, so that no later process hands it out again.
  private func reserve(_ version: Version, _ done: @escaping @Sendable (StoreError?) -> Void) {
    last = version
    pipeline.submit(
      SequencedCommit(standing: standing, version: version, isCommit: false, record: nil, done: done))
  }

  /// Removes the database: `write` gives the rows of the removal, after all commits in line.
  func remove(
    _ write: @escaping @Sendable (any EngineBatch) -> Void,
    _ answer: @escaping @Sendable (StoreError?) -> Void
  ) {
    standing.remove()
    pipeline.submit(
      SequencedCommit(standing: standing, version: last, isCommit: false, record: nil, done: answer), write)
  }

  private func commit(_ state: SequencedState, _ done: @escaping @Sendable (StoreError?) -> Void) {
    let version = state.commitVersion
    let keys = state.changes.map(\.key)
    last = version
    newestChange = version
    overlay.sequenced(version, keys)
    recent.note(version, keys)
    let commit = SequencedCommit(
      standing: standing, version: version, isCommit: true, record: state.record, done: done)
    pipeline.submit(commit) { batch in
      CommitRows.write(
        state.changes, state.record, at: version, keepsHistory: keepsHistory, layout, into: batch)
    }
  }

  /// Calls `done` once everything sequenced so far is durable and delivered to followers.
  private func whenDurable(_ durable: Version, _ done: @escaping @Sendable (StoreError?) -> Void) {
    if last <= durable { return done(nil) }
    pipeline.submit(
      SequencedCommit(standing: standing, version: last, isCommit: false, record: nil, done: done))
  }

  private func nextVersion() -> Version {
    let now = options.clock.now()
    let lead = CommitPipeline.ceilingLead * 2
    if now + lead < last.microseconds {
      if !reportedClock {
        reportedClock = true
        options.report(
          "the clock was set back: it reads \(now) µs where version \(last) has been handed out; it is not followed"
        )
      }
    } else {
      reportedClock = false
    }
    return Version(microseconds: max(now, last.microseconds + 1))
  }

  /// Whether anything of a read set has changed since it was read.
  private func changed(since reads: ReadSet, _ reader: RowReader, _ floor: Version) throws -> Bool {
    if reads.version >= newestChange { return false }
    if let changed = recent.changed(since: reads) { return changed }
    guard keepsHistory, reads.version >= floor else { return true }
    return try ChangeSearch(reader, overlay).changed(since: reads)
  }
}
