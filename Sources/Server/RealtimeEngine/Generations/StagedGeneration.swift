// Stages the rows of a generation (a subtree whose rows have a separate prefix) in small commits off the
// executor. One small commit then installs the generation in the tree.
//
// A few of these commits are in flight concurrently, so that they share syncs of the disk.
//
// Invariants
//   1. The rows are invisible until the generation is installed.
//   2. The commits are sequenced in the order of their rows. The generation is installed only after all of
//      them are durable.
//   3. A generation that is not installed is cleared when its last reference is released, or after a crash at
//      the next start.

import Locking
import OrderedStore
import RealtimeModel

/// A generation that is being staged.
final class StagedGeneration: Sendable {
  let number: UInt64
  private let store: any OrderedDatabase
  private let cleaner: Cleaner
  private let priorityFlag = Guarded(false)
  private let inFlight = Guarded(CommitsInFlight())
  /// Whether one of its rows contains a priority.
  var hasPriority: Bool { priorityFlag.withLock { $0 } }
  var limits: StagingLimits { cleaner.limits }

  private init(_ number: UInt64, _ store: any OrderedDatabase, _ cleaner: Cleaner) {
    self.number = number
    self.store = store
    self.cleaner = cleaner
  }

  deinit { cleaner.unprotect(number) }

  /// Begins a generation without rows.
  static func begin(in store: any OrderedDatabase, _ cleaner: Cleaner) async throws -> StagedGeneration {
    let number = try await store.execute(validating: nil) { writer in
      let number = GenerationState.number(writer.commitVersion)
      cleaner.protect(number)
      try writer.set(
        RowKeys.pendingDelete(number),
        GenerationRows.encode(KeyRange(prefix: RowKeys.prefix(ofGeneration: number))))
      return number
    }.result
    return StagedGeneration(number, store, cleaner)
  }

  /// Adds rows by their paths relative to the location. A later row replaces an earlier one with the same
  /// path.
  ///
  /// Returns when more rows may be added. The rows are durable after ``waitUntilDurable()``.
  ///
  /// - Throws: the error of an earlier commit.
  func add(_ rows: [StagedRow]) async throws {
    recordPriorities(rows[...])
    try await commit { writer, prefix in
      for row in rows { try writer.set(prefix + row.path, row.value) }
    }
  }

  private func recordPriorities(_ rows: some Sequence<StagedRow>) {
    if !hasPriority, rows.contains(where: { RowKeys.hasPriority($0.path, $0.value) }) {
      priorityFlag.withLock { $0 = true }
    }
  }

  /// Adds and removes rows, in order and in small commits. Returns when more may be added, like ``add(_:)``.
  func apply(_ steps: [StagedStep]) async throws {
    recordPriorities(
      steps.lazy.compactMap { step -> StagedRow? in
        switch step {
        case .add(let row), .addPriority(let row, _): row
        case .remove: nil
        }
      })
    var done = 0
    while done < steps.count {
      let from = done
      let end = StagedStep.endOfAdditions(steps[from...], limits)
      if end > from {
        try await commit { writer, prefix in
          for case .add(let row) in steps[from..<end] { try writer.set(prefix + row.path, row.value) }
        }
        done = end
      } else {
        // The number of rows to remove is known only within the commit. So each commit reports where the next
        // one starts.
        done = try await store.execute(validating: nil) { [number, limits] writer in
          try StagedStep.apply(
            steps[from...], RowKeys.prefix(ofGeneration: number), limits, in: writer)
        }.result
      }
    }
  }

  // MARK: Commits in flight

  private struct CommitsInFlight {
    var count = 0
    var failure: (any Error)?
    /// The task that stages rows, if it waits, and the number of commits in flight at or below which it
    /// resumes.
    var waiting: (maximum: Int, continuation: CheckedContinuation<Void, any Error>)?
  }

  /// Starts a commit when fewer than the maximum are in flight.
  private func commit(
    _ body: @escaping @Sendable (any SequencedTransaction, _ prefix: [UInt8]) throws -> Void
  ) async throws {
    try await wait(atMost: limits.maximumCommitsInFlight - 1)
    inFlight.withLock { $0.count += 1 }
    let prefix = RowKeys.prefix(ofGeneration: number)
    // The completion handler retains the generation, so the generation is not cleared before the commit ends.
    store.execute(validating: nil) { writer in
      try body(writer, prefix)
    } completion: { outcome in
      self.commitEnded(outcome.map { _ in })
    }
  }

  private func commitEnded(_ outcome: Result<Void, any Error>) {
    let (resumed, failure) = inFlight.withLock { inFlight in
      inFlight.count -= 1
      precondition(inFlight.count >= 0, "invariant: each commit of a generation completes once")
      if case .failure(let error) = outcome, inFlight.failure == nil { inFlight.failure = error }
      guard let waiting = inFlight.waiting, inFlight.failure != nil || inFlight.count <= waiting.maximum
      else {
        return (CheckedContinuation<Void, any Error>?.none, inFlight.failure)
      }
      inFlight.waiting = nil
      return (waiting.continuation, inFlight.failure)
    }
    if let failure { resumed?.resume(throwing: failure) } else { resumed?.resume() }
  }

  /// Waits until at most `maximum` commits are in flight.
  private func wait(atMost maximum: Int) async throws {
    try await withCheckedThrowingContinuation { continuation in
      let outcome = inFlight.withLock { inFlight -> Result<Void, any Error>? in
        if let failure = inFlight.failure { return .failure(failure) }
        if inFlight.count <= maximum { return .success(()) }
        precondition(inFlight.waiting == nil, "invariant: one task at a time adds rows to a generation")
        inFlight.waiting = (maximum, continuation)
        return nil
      }
      if let outcome { continuation.resume(with: outcome) }
    }
  }

  /// Waits until all added rows are durable.
  ///
  /// - Throws: the error of a commit.
  func waitUntilDurable() async throws { try await wait(atMost: 0) }

  /// Reads the added rows under the keys that they will have at a location.
  func read<Result: Sendable>(
    as location: [UInt8], _ body: @escaping @Sendable (any ReadView) throws -> Result
  ) async throws -> Result {
    let generations = SubtreeGenerations(sorted: [SubtreeGeneration(prefix: location, number: number)])
    return try await store.read(at: nil) { try body(GenerationView(base: $0, generations: generations)) }
  }
}

/// A row of a generation.
struct StagedRow: Sendable {
  /// The path relative to the generation's location, encoded as in row keys.
  let path: [UInt8]
  let value: [UInt8]

  var size: Int { path.count + value.count }
}

/// A change of a generation that is being staged.
enum StagedStep: Sendable {
  /// Adds a row, or replaces the row with the same path.
  case add(StagedRow)
  /// Removes the rows at and below a path.
  case remove([UInt8])
  /// Adds a priority row if there are rows below the given path.
  case addPriority(StagedRow, of: [UInt8])

  /// The index after the leading additions that fit into one commit.
  fileprivate static func endOfAdditions(_ steps: ArraySlice<StagedStep>, _ limits: StagingLimits) -> Int {
    var bytes = 0
    for (position, step) in zip(steps.indices, steps) {
      guard case .add(let row) = step, position - steps.startIndex < limits.stepRows, bytes < limits.stepBytes
      else { return position }
      bytes += row.size
    }
    return steps.endIndex
  }

  /// Applies the steps that fit into one commit. Returns the index of the first step that remains.
  fileprivate static func apply(
    _ steps: ArraySlice<StagedStep>, _ prefix: [UInt8], _ limits: StagingLimits,
    in writer: any SequencedTransaction
  ) throws -> Int {
    var rows = 0
    var bytes = 0
    for (position, step) in zip(steps.indices, steps) {
      guard rows < limits.stepRows, bytes < limits.stepBytes else { return position }
      switch step {
      case .add(let row):
        rows += 1
        bytes += row.size
        try writer.set(prefix + row.path, row.value)
      case .addPriority(let row, let path):
        rows += 1
        bytes += row.size
        var exists = false
        try writer.scan(KeyRange(prefix: prefix + path), reverse: false) { _, _, _ in
          exists = true
          return false
        }
        if exists { try writer.set(prefix + row.path, row.value) }
      case .remove(let path):
        var keys: [[UInt8]] = []
        try writer.scan(KeyRange(prefix: prefix + path), reverse: false) { key, _, _ in
          keys.append(Array(key))
          return keys.count < limits.stepRows
        }
        for key in keys { try writer.clear(key) }
        rows += keys.count + 1
        // More rows of this removal may remain, so the next commit repeats the step.
        if keys.count >= limits.stepRows { return position }
      }
    }
    return steps.endIndex
  }
}
