// Runs the background work that deferred operations of one database wait for, then returns the operations to
// the queue.
//
// Each kind of work has a lane, which runs a bounded number of jobs; further jobs wait in order of arrival.
// Operations that wait for the build of an index use no lane: the end of the build resumes them.
//
// Invariants
//   1. Every deferred operation returns to the queue exactly once, even at shutdown or after its connection
//      is closed.
//   2. A lane never runs more jobs than its limit.
//
// Decision: docs/decisions/0020-one-deferral-mechanism.md

import Locking
import OrderedStore
import RealtimeModel

/// One piece of background work, and the operations that wait for it.
final class DeferralJob: Sendable {
  let work: any DeferredWork
  fileprivate let operations: Guarded<[RealtimeOperation]>
  private let context: DeferralRunner

  fileprivate init(_ work: any DeferredWork, _ operation: RealtimeOperation, _ context: DeferralRunner) {
    self.work = work
    self.context = context
    operations = Guarded([operation])
  }

  var queue: OperationQueue { context.queue }
  var runner: BatchRunner { context.runner }
  var cleaner: Cleaner { context.cleaner }
  /// Threads that all namespaces share, for slow computations.
  var threads: ThreadPool { context.threads }

  /// Whether a connection that waits for the work is still open.
  var isWanted: Bool {
    operations.withLock { $0.contains { !($0.connection?.isClosed ?? false) } }
  }

  /// - Throws: ``RealtimeError/abandoned`` once nobody waits for the work, or the server shuts down.
  func checkWanted() throws {
    if context.isStopped || !isWanted { throw RealtimeError.abandoned }
  }

  /// - Throws: ``RealtimeError/abandoned`` once the server shuts down.
  func checkRunning() throws {
    if context.isStopped { throw RealtimeError.abandoned }
  }

  /// Counts a location whose children were sorted, for tests of the cost.
  func countSortedOrder() { context.countSortedOrder() }
}

/// The background work of one database.
final class DeferralRunner: Sendable {
  private struct Lane {
    var waiting: [DeferralJob] = []
    var running = 0
  }

  private struct State {
    var lanes = [Lane](repeating: Lane(), count: DeferralLane.allCases.count)
    /// Jobs that later operations on the same location may still join.
    var shared: [Path: DeferralJob] = [:]
    var isStopped = false
    var sortedOrderCount = 0
  }

  let queue: OperationQueue
  let runner: BatchRunner
  let cleaner: Cleaner
  let threads: ThreadPool
  private let indexWaiters: IndexBuildWaiters
  private let state = Guarded(State())

  init(
    queue: OperationQueue, runner: BatchRunner, cleaner: Cleaner, threads: ThreadPool,
    indexWaiters: IndexBuildWaiters
  ) {
    self.queue = queue
    self.runner = runner
    self.cleaner = cleaner
    self.threads = threads
    self.indexWaiters = indexWaiters
  }

  /// How often the children of a location were sorted.
  var sortedOrderCount: Int { state.withLock { $0.sortedOrderCount } }

  fileprivate var isStopped: Bool { state.withLock { $0.isStopped } }

  fileprivate func countSortedOrder() { state.withLock { $0.sortedOrderCount += 1 } }

  /// Takes deferred operations of a batch out of the queue, together with the requests blocked behind them,
  /// and starts their work.
  ///
  /// - Parameter operations: in batch order; each is deferred or blocked.
  func start(_ operations: [RealtimeOperation]) {
    guard !operations.isEmpty else { return }
    queue.hold(operations)
    queue.resumeSkipped(
      operations.filter { if case .nextBatch? = $0.deferral { true } else { false } })
    for operation in operations {
      switch operation.deferral {
      case .indexBuild?: indexWaiters.add(operation)
      case .nextBatch?, nil: break
      case let deferral?: if let work = deferral.work { add(operation, work) }
      }
    }
  }

  /// Ends the location reads, and all waiting for indexes. The operations that needed a read or an index fail soon
  /// with ``RealtimeError/abandoned``.
  func stop() {
    state.withLock { $0.isStopped = true }
    indexWaiters.stop()
  }

  private func add(_ operation: RealtimeOperation, _ work: any DeferredWork) {
    let lane = work.lane
    let startsTask = state.withLock { state -> Bool in
      if let path = work.sharedPath, let job = state.shared[path] {
        job.operations.withLock { $0.append(operation) }
        return false
      }
      let job = DeferralJob(work, operation, self)
      if let path = work.sharedPath { state.shared[path] = job }
      state.lanes[lane.rawValue].waiting.append(job)
      guard state.lanes[lane.rawValue].running < lane.maximumConcurrency else { return false }
      state.lanes[lane.rawValue].running += 1
      return true
    }
    if startsTask {
      Task {
        while let job = self.next(in: lane) { await self.run(job.work, job) }
      }
    }
  }

  private func next(in lane: DeferralLane) -> DeferralJob? {
    state.withLock { state in
      precondition(
        (1...lane.maximumConcurrency).contains(state.lanes[lane.rawValue].running),
        "invariant: a lane runs at most its limit of jobs")
      guard !state.lanes[lane.rawValue].waiting.isEmpty else {
        state.lanes[lane.rawValue].running -= 1
        return nil
      }
      return state.lanes[lane.rawValue].waiting.removeFirst()
    }
  }

  private func run<Work: DeferredWork>(_ work: Work, _ job: DeferralJob) async {
    let output = await work.start(job)
    var count = 0
    var next = takeOperation(of: job, isOpen: work.isOpen(output, after: count))
    while let operation = next {
      count += 1
      let ready = await work.finish(operation, with: output, job)
      next = takeOperation(of: job, isOpen: work.isOpen(output, after: count))
      if next == nil { work.release(output) }
      queue.resume(ready)
    }
    precondition(count > 0, "invariant: a job has an operation that waits for it")
  }

  /// The next operation that waits for a job; nil if no operation waits. After nil, no operation can join the
  /// job.
  private func takeOperation(of job: DeferralJob, isOpen: Bool) -> RealtimeOperation? {
    state.withLock { state in
      job.operations.withLock { operations in
        if !isOpen || operations.isEmpty, let path = job.work.sharedPath, state.shared[path] === job {
          state.shared[path] = nil
        }
        return operations.isEmpty ? nil : operations.removeFirst()
      }
    }
  }
}

/// The operations that wait until an index is built.
///
/// The executor calls ``resumeAll()`` in the sequenced batch that completes a build or changes the rules. An
/// operation that still finds its index incomplete is deferred again, and waits for the next such batch.
final class IndexBuildWaiters: Sendable {
  private struct State {
    var operations: [RealtimeOperation] = []
    var isStopped = false
  }

  private let queue: OperationQueue
  private let state = Guarded(State())

  init(_ queue: OperationQueue) { self.queue = queue }

  /// Adds a deferred operation. The next batch starts after this call, so no build can complete between the
  /// deferral and the call.
  func add(_ operation: RealtimeOperation) {
    state.withLock { $0.operations.append(operation) }
    // The connection may have been closed, or the database stopped, before the operation was added. No other
    // event would then resume the operation.
    resume { $0.isAbandoned }
  }

  /// Resumes every operation: a build is complete, or the rules have changed.
  func resumeAll() { resume { _ in true } }

  /// Resumes the operations of closed connections, because the last requests of these connections are blocked
  /// behind them.
  func resumeAbandoned() { resume { $0.isAbandoned } }

  /// Fails the operations that wait now or later with ``RealtimeError/abandoned``.
  func stop() {
    state.withLock { $0.isStopped = true }
    resumeAll()
  }

  private func resume(_ isIncluded: (RealtimeOperation) -> Bool) {
    let (resumed, isStopped) = state.withLock { state -> ([RealtimeOperation], Bool) in
      let resumed = state.operations.filter { state.isStopped || isIncluded($0) }
      if !resumed.isEmpty { state.operations.removeAll { state.isStopped || isIncluded($0) } }
      return (resumed, state.isStopped)
    }
    for var operation in resumed {
      operation.results.hasAwaitedIndex = true
      operation.results.locationReadCount = 0
      operation.results.location = isStopped ? .failure(.abandoned) : nil
      queue.resume(operation)
    }
  }
}
