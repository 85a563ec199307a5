// Defines the reasons for which a batch defers an operation, and the results with which the operation
// returns.
//
// Work that takes long in the sequencer would delay every client of the database. A handler that needs such
// work throws a `Deferral`. The operation leaves the batch, `DeferralRunner` runs the work in the background,
// and the operation is sequenced again with the result (decision 0020).

import Access
import OrderedStore
import RealtimeModel

/// The reason for which an operation leaves its batch.
enum Deferral: Error, Sendable {
  /// A conditional write has to compare the hash of a large value.
  case hash(HashComparison)
  /// The access policy takes long to decide a write.
  case decision(WriteDecision)
  /// The large values of a heavy write have to be staged first: stored invisibly, in small commits.
  case staging(WriteStaging)
  /// The parts of an imported value that clients listen to have to be read.
  case importedValues(ImportedValueRead)
  /// The value of a location has to be read, or a window of it prepared.
  case location(LocationRead)
  /// The window of a query (the children that the query shows) has to be read.
  case window(WindowRead)
  /// The operation needs an index of a large location, and this index is being built.
  case indexBuild
  /// The batch has used up its time for throttled operations, such as reads. The next batch executes the operation.
  case nextBatch

  /// The background work; nil if the operation waits for an event instead.
  var work: (any DeferredWork)? {
    switch self {
    case .hash(let work): work
    case .decision(let work): work
    case .staging(let work): work
    case .importedValues(let work): work
    case .location(let work): work
    case .window(let work): work
    case .indexBuild, .nextBatch: nil
    }
  }
}

/// The results of an operation's deferrals. The operation keeps them until it is answered.
///
/// One operation may be deferred several times, and keeps every result. A conditional write of a large value
/// may be staged, then read its location, then compare a hash.
struct DeferralResults: Sendable {
  /// How many decisions about the operation the coverage report of the rules has already counted.
  var decisionCount = 0
  /// The result of ``WriteDecision``, or the error of deciding.
  var decision: Result<DecidedWrite, RealtimeError>?
  /// Number of decisions in the background so far.
  var backgroundDecisionCount = 0
  /// The result of ``HashComparison``.
  var hash: HashComparison.Result?
  /// The staged part of a heavy write, or the error of staging.
  var staged: Result<StagedWrite, RealtimeError>?
  /// The background read of a location, or its error.
  var location: Result<BackgroundRead, RealtimeError>?
  /// Number of background reads so far.
  var locationReadCount = 0
  /// The window of a query, or the error of reading it.
  var window: Result<Node, RealtimeError>?
  /// The prepared first push of a listen. It is used if the value has not changed since.
  var firstPush: InitialListenData.Prepared?
  /// Whether the operation has waited for an index. Only operations on locations that exceed the size limit of a
  /// response wait for an index.
  var hasAwaitedIndex = false
}

/// The kinds of background work that have separate concurrency limits.
enum DeferralLane: Int, CaseIterable, Sendable {
  case hashing
  case decisions
  case staging
  case importedValues
  case locations
  case windows

  /// Maximum number of jobs of this lane that one database runs at a time.
  var maximumConcurrency: Int {
    switch self {
    // All namespaces share two threads. With one hashing job for each namespace, none can occupy both
    // threads.
    case .hashing: 1
    // All namespaces share the store's reader threads; see also `WriteDecision.maximumConcurrency`.
    case .decisions: 1
    // Each job has at most `StagingLimits.maximumCommitsInFlight` commits in flight.
    case .staging, .importedValues: 16
    // Each job holds a complete value or window in memory.
    case .locations, .windows: 2
    }
  }
}

/// Background work for deferred operations. It runs once and gives its result to every operation that waits
/// for it.
protocol DeferredWork: Sendable {
  associatedtype Output: Sendable

  var lane: DeferralLane { get }
  /// The location whose work several operations share; nil for work of a single operation.
  var sharedPath: Path? { get }

  /// Runs the work.
  func start(_ job: DeferralJob) async -> Output
  /// Returns the operation with the result.
  func finish(_ operation: RealtimeOperation, with output: Output, _ job: DeferralJob) async
    -> RealtimeOperation
  /// Whether another operation may join after `count` operations have finished with the result.
  func isOpen(_ output: Output, after count: Int) -> Bool
  /// Frees what the result reserves. Called once, before the last operation that waits for the result is sequenced.
  func release(_ output: Output)
}

extension DeferredWork {
  var sharedPath: Path? { nil }
  func isOpen(_ output: Output, after count: Int) -> Bool { false }
  func release(_ output: Output) {}
}

// MARK: Hashes

/// Compares the hash of a conditional write with the hash of a large value.
///
/// Nodes are immutable and cache their hash. So hashing a value again after a small change is cheap.
struct HashComparison: DeferredWork {
  /// Whether a value has the expected hash.
  struct Result: Sendable {
    let node: Node
    let matches: Bool
  }

  let node: Node
  let hash: String

  var lane: DeferralLane { .hashing }

  func start(_ job: DeferralJob) async -> Result {
    await job.threads.run { Result(node: node, matches: node.matches(hash: hash)) }
  }

  func finish(
    _ operation: RealtimeOperation, with output: Result, _ job: DeferralJob
  ) async -> RealtimeOperation {
    var operation = operation
    operation.results.hash = output
    return operation
  }
}

// MARK: Staged writes

/// Stores the large values of a write in small commits, before one small commit moves them to their location.
struct WriteStaging: DeferredWork {
  let request: WriteRequest

  var lane: DeferralLane { .staging }

  func start(_ job: DeferralJob) async -> Result<StagedWrite, RealtimeError> {
    do {
      return .success(try await StagedWrite.stage(request, in: job.runner.store, job.cleaner))
    } catch { return .failure(RealtimeError(storeError: error)) }
  }

  func finish(
    _ operation: RealtimeOperation, with output: Result<StagedWrite, RealtimeError>, _ job: DeferralJob
  ) async -> RealtimeOperation {
    var operation = operation
    operation.results.staged = output
    return operation
  }
}

// MARK: Imports

/// Reads the parts of an imported value that clients listen to.
struct ImportedValueRead: DeferredWork {
  let imported: ImportedTree
  let path: Path
  /// The locations of the listeners, in ascending order.
  let locations: [Path]

  var lane: DeferralLane { .importedValues }

  func start(_ job: DeferralJob) async -> ImportedTree {
    await imported.reading(locations, of: path, job.runner.executor.limits)
  }

  func finish(
    _ operation: RealtimeOperation, with output: ImportedTree, _ job: DeferralJob
  ) async -> RealtimeOperation {
    var next = RealtimeOperation(.installImport(path, output), from: operation.origin)
    next.database = operation.database
    return next.deferred(.importedValues(self))
  }
}

// MARK: Windows

/// Reads the window of a query that is too wide for the sequencer.
///
/// The window contains every write that was sequenced before the deferral. Later writes of other clients may
/// be missing.
struct WindowRead: DeferredWork {
  let path: Path
  let query: QuerySpec
  let caller: Principal

  var lane: DeferralLane { .windows }

  func start(_ job: DeferralJob) async -> Result<Node, RealtimeError> {
    guard job.isWanted else { return .failure(.abandoned) }
    do {
      // Earlier batches may still be in flight. The barrier waits until they are durable, because the read of durable
      // rows would otherwise miss their writes.
      try await job.queue.barrier()
      let read = RealtimeOperation(.get(path, query), from: .call(caller) { _ in })
      guard case .value(let node) = try await job.runner.read(read) else {
        return .failure(RealtimeError(.failure, "internal error"))
      }
      return .success(node)
    } catch { return .failure(RealtimeError(storeError: error)) }
  }

  func finish(
    _ operation: RealtimeOperation, with output: Result<Node, RealtimeError>, _ job: DeferralJob
  ) async -> RealtimeOperation {
    var operation = operation
    operation.results.window = output
    return operation
  }
}

extension RealtimeError {
  /// The error of a read that ended early, because its connection is closed or the server shuts down.
  static let abandoned = RealtimeError(.unavailable, "the server is shutting down")
}
