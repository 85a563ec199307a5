// What operations wait for that need a value which is too large to be read in the sequencer: it is read aside, a few at a
// time, and then they go on, each with what is costly of its answer prepared.
//
// Invariants
//   1. An operation keeps its place among those of its connection; the others of the database pass.
//   2. Operations that wait for one location share one read.
//   3. A read ends, between two pieces, once nobody waits for it any more.

import OrderedStore
import RealtimeModel

/// The large reads of one database.
final class LargeReading: Sendable {
  /// One location, and who waits for it.
  private final class Job: Sendable {
    let path: Path
    let operations: Guarded<[Operation]>
    /// The read, where the value was in memory already.
    let known: LargeRead?

    init(_ operation: Operation, _ path: Path, _ known: LargeRead?) {
      self.path = path
      self.known = known
      operations = Guarded([operation])
    }

    var isWanted: Bool {
      operations.withLock { $0.contains { !($0.connection?.isClosed ?? false) } }
    }
  }

  private struct State {
    var waiting: [Job] = []
    /// Jobs that others may still join.
    var open: [Path: Job] = [:]
    var running = 0
    var isStopped = false
  }

  /// How many locations of one database are read at a time.
  private static let mostAtOnce = 2
  /// Nobody waits any more, or the server shuts down.
  static let abandoned = RealtimeError(.unavailable, "the server is shutting down")
  /// How often a read is tried again that others spoil, by imports or failed commits.
  static let mostAttempts = 8

  private let queue: OperationQueue
  private let runner: BatchRunner
  private let threads: ThreadPool
  private let state = Guarded(State())

  init(_ queue: OperationQueue, _ runner: BatchRunner, _ threads: ThreadPool) {
    self.queue = queue
    self.runner = runner
    self.threads = threads
  }

  /// Has an operation that is held go on once its location was read.
  func add(_ operation: Operation, _ path: Path, _ known: LargeRead?) {
    let starts = state.withLock { state -> Bool in
      if known == nil, let job = state.open[path] {
        job.operations.withLock { $0.append(operation) }
        return false
      }
      let job = Job(operation, path, known)
      if known == nil { state.open[path] = job }
      state.waiting.append(job)
      guard state.running < LargeReading.mostAtOnce else { return false }
      state.running += 1
      return true
    }
    if starts { Task { await self.run() } }
  }

  /// Ends all reading soon: what waits for it is told that the server shuts down.
  func stop() { state.withLock { $0.isStopped = true } }

  private func run() async {
    while let job = next() {
      let read: Result<LargeRead, RealtimeError>
      do {
        read = .success(try await self.read(job))
      } catch { read = .failure(RealtimeError(storeError: error)) }
      let operations = close(job)
      var ready: [Operation] = []
      for var operation in operations {
        operation.largeRead = read
        operation.largeReads += 1
        ready.append(operation)
      }
      if case .success(let read) = read {
        ready = await threads.run { [ready] in
          let prepared = ready.map { $0.prepared(by: read) }
          read.catchUp()
          return prepared
        }
      }
      for operation in ready { queue.release(operation) }
    }
  }

  private func next() -> Job? {
    state.withLock { state in
      guard !state.waiting.isEmpty else {
        state.running -= 1
        return nil
      }
      return state.waiting.removeFirst()
    }
  }

  /// Lets nobody else join; who has.
  private func close(_ job: Job) -> [Operation] {
    state.withLock { state in
      if state.open[job.path] === job { state.open[job.path] = nil }
      return job.operations.withLock { $0 }
    }
  }

  private func read(_ job: Job) async throws -> LargeRead {
    if let known = job.known { return known }
    let check = { @Sendable [self] in
      if state.withLock({ $0.isStopped }) || !job.isWanted { throw LargeReading.abandoned }
    }
    try check()
    let read = LargeRead(job.path)
    runner.sequencer.largeReads.add(read)
    // What was sequenced before may be in flight, and would be missed.
    try await queue.pass()
    guard let store = runner.rows.current else {
      throw StoreError.unavailable("the database has no rows yet")
    }
    let held = try store.hold()
    let reader = SubtreeReader(
      path: job.path, held: held, limits: runner.sequencer.limits,
      staging: runner.sequencer.generations.limits, threads: threads)
    read.land(try await reader.read(check), at: held.version)
    return read
  }
}

extension OperationQueue {
  /// Returns once everything that was sequenced before is durable.
  fileprivate func pass() async throws {
    let result: Result<Operation.CallResult, RealtimeError> = await withCheckedContinuation { continuation in
      let operation = Operation(.pass, from: .call(.administrator) { continuation.resume(returning: $0) })
      if !append(operation) {
        continuation.resume(returning: .failure(LargeReading.abandoned))
      }
    }
    _ = try result.get()
  }
}

extension Operation {
  /// With what can be found out beforehand of a value.
  fileprivate func prepared(by read: LargeRead) -> Operation {
    var operation = self
    switch action {
    case .get(_, let query): if !query.showsAll { read.index(by: query.ordering) }
    case .listen(let listen):
      if listen.tag != nil || !listen.query.showsAll { read.index(by: listen.query.ordering) }
      read.catchUp()
      guard let hash = listen.hash, !hash.isEmpty, let node = read.known, listen.tag == nil else { break }
      operation.firstPush = ListenAnswer.Prepared(listen, node)
    default: break
    }
    return operation
  }
}
