// Reads a large location in the background, once for every operation that waits for it, and prepares each
// answer.
//
// Invariants
//   1. An operation keeps its position among the requests of its connection; other connections pass it.
//   2. Operations on one location share one read. Its children are sorted once for each order.
//   3. Each answer is prepared in one job of the shared threads: other locations and namespaces run in
//      between.
//   4. A read stops, between two chunks, once every waiting connection is closed.

import OrderedStore
import RealtimeModel

/// The background read of one location.
struct LocationRead: DeferredWork {
  let path: Path
  /// A read that holds the value already; used unless another read of the location is idle.
  let known: BackgroundRead?

  /// Maximum number of attempts. Imports and failed commits spoil a read; the sequencer reads the value after
  /// that.
  static let maximumAttempts = 8
  /// Maximum number of operations that one read serves. Later ones start another read, behind those of other
  /// locations.
  private static let maximumOperations = 1_024

  var lane: DeferralLane { .locations }
  var sharedPath: Path? { path }

  func start(_ job: DeferralJob) async -> Result<BackgroundRead, RealtimeError> {
    // The read of an earlier operation may have ended since the deferral, and may have the order already.
    let reads = [job.runner.executor.backgroundReads.idle(at: path), known]
    if let read = reads.compactMap({ $0 }).first(where: { $0.reserve() }) { return .success(read) }
    do { return .success(try await readRows(job)) } catch {
      return .failure(RealtimeError(storeError: error))
    }
  }

  private func readRows(_ job: DeferralJob) async throws -> BackgroundRead {
    try job.checkWanted()
    let executor = job.runner.executor
    let read = BackgroundRead(path)
    _ = read.reserve()
    executor.backgroundReads.add(read)
    // Earlier batches may be in flight: a snapshot of durable rows would miss them.
    try await job.queue.barrier()
    let pinned = try job.runner.store.pinView()
    let reader = SubtreeReader(
      path: path, pinned: pinned, limits: executor.limits, staging: executor.generations.limits,
      threads: job.threads)
    read.setBase(try await reader.read { try job.checkWanted() }, at: pinned.version)
    return read
  }

  func finish(
    _ operation: RealtimeOperation, with output: Result<BackgroundRead, RealtimeError>, _ job: DeferralJob
  ) async -> RealtimeOperation {
    var operation = operation
    operation.results.location = output
    operation.results.locationReadCount += 1
    guard case .success(let read) = output, !operation.isAbandoned else { return operation }
    return await job.threads.run { [operation] in
      let before = read.location?.orderCount
      let prepared = operation.prepared(by: read)
      if let now = read.location?.orderCount, now != before { job.countSortedOrder() }
      return prepared
    }
  }

  func isOpen(_ output: Result<BackgroundRead, RealtimeError>, after count: Int) -> Bool {
    // A later operation must not receive an earlier failure.
    guard case .success(let read) = output else { return false }
    return !read.isSpoiled && count < LocationRead.maximumOperations
  }

  /// Frees the read for the next request of the last connection, which may begin with the same location.
  func release(_ output: Result<BackgroundRead, RealtimeError>) {
    if case .success(let read) = output { read.endReservation() }
  }
}

extension RealtimeOperation {
  /// The operation with the expensive parts of its answer computed from a value.
  func prepared(by read: BackgroundRead) -> RealtimeOperation {
    var operation = self
    switch action {
    case .get(_, let query): if !query.showsAll { read.prepare(query, withWindow: query.isWide) }
    case .listen(let listen) where listen.isDefault:
      read.catchUp()
      guard listen.isHashed, let node = read.location?.node else { break }
      operation.results.firstPush = InitialListenData.Prepared(listen, node)
    case .listen(let listen):
      read.prepare(listen.query, withWindow: listen.query.isWide || listen.isHashed)
      guard listen.isHashed, let window = read.location?.view(of: listen.query)?.content else { break }
      operation.results.firstPush = InitialListenData.Prepared(listen, window)
    default: break
    }
    return operation
  }
}

extension QuerySpec {
  /// Whether the window may hold so many children that finding it is expensive.
  var isWide: Bool { !showsAll && (limit.map { $0.count > 256 } ?? true) }
}

extension OperationQueue {
  /// Returns once everything that was sequenced before is durable.
  func barrier() async throws {
    let result: Result<RealtimeOperation.CallResult, RealtimeError> = await withCheckedContinuation {
      continuation in
      let operation = RealtimeOperation(
        .barrier, from: .call(.administrator) { continuation.resume(returning: $0) })
      if !append(operation) { continuation.resume(returning: .failure(.abandoned)) }
    }
    _ = try result.get()
  }
}
