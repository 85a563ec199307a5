// What operations wait for that need a value which is too large to be read in the sequencer: it is read aside, a few at a
// time, and then they go on, each with what is costly of its answer prepared.
//
// Invariants
//   1. An operation keeps its place among those of its connection; the others of the database pass.
//   2. Operations that wait for one location share one read, and what is prepared of it: its children are put into an
//      order once, for whoever asks for that order.
//   3. What is prepared for one operation is a turn; between two turns those of other locations and namespaces have theirs.
//   4. A read ends, between two pieces, once nobody waits for it any more.

import Locking
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
  /// How many operations one read serves before those that come later get another: other locations wait.
  private static let mostOfAJob = 1_024

  private let queue: OperationQueue
  private let runner: BatchRunner
  private let threads: ThreadPool
  private let state = Guarded(State())
  private let ordered = Guarded(0)

  /// How often the children of a location were put into an order.
  var ordersMade: Int { ordered.withLock { $0 } }

  init(_ queue: OperationQueue, _ runner: BatchRunner, _ threads: ThreadPool) {
    self.queue = queue
    self.runner = runner
    self.threads = threads
  }

  /// Has an operation that is held go on once its location was read.
  ///
  /// - Parameter known: a read that begins with the value in memory; used where no other of the location is under way.
  func add(_ operation: Operation, _ path: Path, _ known: LargeRead?) {
    let starts = state.withLock { state -> Bool in
      if let job = state.open[path] {
        job.operations.withLock { $0.append(operation) }
        return false
      }
      // Since the operation was put off, the read of another may have ended which has the order already.
      let reads = [runner.sequencer.largeReads.idle(at: path), known]
      let job = Job(operation, path, reads.compactMap { $0 }.first { $0.take() })
      state.open[path] = job
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
      var count = 0
      var next = take(job, count, read)
      while let operation = next {
        count += 1
        let ready = await prepare(operation, read)
        next = take(job, count, read)
        // What its connection asks for behind the last of them may begin with the same.
        if next == nil, case .success(let read) = read { read.leave() }
        queue.release(ready)
      }
    }
  }

  /// Finds out beforehand what is costly of an operation's answer.
  private func prepare(_ operation: Operation, _ read: Result<LargeRead, RealtimeError>) async -> Operation {
    var operation = operation
    operation.largeRead = read
    operation.largeReads += 1
    guard case .success(let read) = read, !operation.isAbandoned else { return operation }
    return await threads.run { [operation, ordered] in
      let before = read.known?.orderCount
      let prepared = operation.prepared(by: read)
      if let now = read.known?.orderCount, now != before { ordered.withLock { $0 += 1 } }
      return prepared
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

  /// The next operation that waits for a job, of which so many have had what they waited for; nil once there is none,
  /// and nobody else can join.
  private func take(_ job: Job, _ count: Int, _ read: Result<LargeRead, RealtimeError>) -> Operation? {
    state.withLock { state in
      job.operations.withLock { operations in
        // Whoever comes later is not to be told of a failure that was before, and has another read.
        let isOver =
          switch read {
          case .success(let read): read.isSpoiled || count >= LargeReading.mostOfAJob
          case .failure: true
          }
        if isOver || operations.isEmpty, state.open[job.path] === job { state.open[job.path] = nil }
        return operations.isEmpty ? nil : operations.removeFirst()
      }
    }
  }

  private func read(_ job: Job) async throws -> LargeRead {
    if let known = job.known { return known }
    let check = { @Sendable [self] in
      if state.withLock({ $0.isStopped }) || !job.isWanted { throw LargeReading.abandoned }
    }
    try check()
    let read = LargeRead(job.path)
    _ = read.take()
    runner.sequencer.largeReads.add(read)
    // What was sequenced before may be in flight, and would be missed.
    try await queue.pass()
    guard let store = runner.rows.current else {
      throw StoreError.unavailable("the database has no rows yet")
    }
    let held = try store.pinView()
    let reader = SubtreeReader(
      path: job.path, held: held, limits: runner.sequencer.limits,
      staging: runner.sequencer.generations.limits, threads: threads)
    read.land(try await reader.read(check), at: held.version)
    return read
  }
}

extension OperationQueue {
  /// Returns once everything that was sequenced before is durable.
  func pass() async throws {
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
  func prepared(by read: LargeRead) -> Operation {
    var operation = self
    switch action {
    case .get(_, let query): if !query.showsAll { read.prepare(query, withWindow: query.isWide) }
    case .listen(let listen) where listen.isDefault:
      read.catchUp()
      guard listen.isHashed, let node = read.known?.node else { break }
      operation.firstPush = ListenAnswer.Prepared(listen, node)
    case .listen(let listen):
      read.prepare(listen.query, withWindow: listen.query.isWide || listen.isHashed)
      guard listen.isHashed, let window = read.known?.view(of: listen.query)?.content else { break }
      operation.firstPush = ListenAnswer.Prepared(listen, window)
    default: break
    }
    return operation
  }
}

extension QuerySpec {
  /// Whether so many children may be in its window that this is not taken in passing.
  var isWide: Bool { !showsAll && (limit.map { $0.count > 256 } ?? true) }
}
