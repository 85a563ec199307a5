// Reads a large location in the background for deferred operations, and prepares the answer of each.
// Operations on the same location share one read.
//
// Invariants
//   1. An operation keeps its position among the requests of its connection. Operations of other connections
//      may overtake it.
//   2. The operations that share a read sort its children only once for each order.
//   3. Each answer is prepared in a separate job of the shared threads, so that jobs of other locations and
//      namespaces run in between.
//   4. A read stops, between two chunks, once every waiting connection is closed.

import Access
import OrderedStore
import RealtimeModel

/// The background read of one location.
struct LocationRead: DeferredWork {
  let path: Path
  /// An earlier read that already holds the value; nil if there is none. If the location has an idle read when the job
  /// starts, the job uses that read instead.
  let availableRead: BackgroundRead?

  /// Maximum number of attempts. An import or a failed commit makes a read unusable. After the last attempt
  /// the batch itself reads the value.
  static let maximumAttempts = 8
  /// Maximum number of operations that one read serves. Later operations start another read, which waits
  /// behind the reads of other locations.
  private static let maximumOperations = 1_024

  var lane: DeferralLane { .locations }
  var sharedPath: Path? { path }

  func start(_ job: DeferralJob) async -> Result<BackgroundRead, RealtimeError> {
    // A read for an earlier operation may have ended since the deferral. It may already have the children in
    // the required order.
    let reads = [job.runner.executor.observers.idleRead(at: path), availableRead]
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
    executor.observers.add(read)
    // Earlier batches may still be in flight. The barrier waits until they are durable, because the snapshot of durable
    // rows would otherwise miss their writes.
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
    // An operation that joins later must not receive this failure.
    guard case .success(let read) = output else { return false }
    return !read.isSpoiled && count < LocationRead.maximumOperations
  }

  /// Ends the reservation before the last operation resumes, because the next request of its connection may
  /// use the same read.
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
  /// Whether the window (the children that the query selects) may hold so many children that finding it is expensive.
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
