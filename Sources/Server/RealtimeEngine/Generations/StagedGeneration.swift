// A generation that is filled in small commits beside the sequencer, before one small commit puts it into its place.
//
// A few of these commits are under way at once, so that they share syncs instead of each waiting for its own.
//
// Invariants: nobody sees its rows before; commits are sequenced in the order of what they bring, and it is put into its
// place only once all of them are durable; if it never finds its place, whoever held it last has it cleared, and what a
// killed server left is cleared at the next start.

import Locking
import OrderedStore
import RealtimeModel

/// A generation on its way into the tree.
final class StagedGeneration: Sendable {
  let number: UInt64
  private let store: any OrderedDatabase
  private let cleaner: Cleaner
  private let priority = Guarded(false)
  private let flights = Guarded(Flights())
  /// Whether one of its rows is, or has, a priority.
  var hasPriority: Bool { priority.withLock { $0 } }
  var limits: StagingLimits { cleaner.limits }

  private init(_ number: UInt64, _ store: any OrderedDatabase, _ cleaner: Cleaner) {
    self.number = number
    self.store = store
    self.cleaner = cleaner
  }

  deinit { cleaner.end(number) }

  /// Begins a generation without rows.
  static func begin(in store: any OrderedDatabase, _ cleaner: Cleaner) async throws -> StagedGeneration {
    let number = try await store.execute(validating: nil) { writer in
      let number = GenerationState.number(writer.commitVersion)
      cleaner.begin(number)
      try writer.set(
        RowKeys.garbage(number),
        GenerationRows.encode(KeyRange(prefix: RowKeys.prefix(ofGeneration: number))))
      return number
    }.result
    return StagedGeneration(number, store, cleaner)
  }

  /// Adds rows by their paths relative to the location; of two with one path the later counts. Returns when there is room
  /// for more: they are durable once ``settle()`` has returned.
  /// - Throws: why an earlier commit failed.
  func add(_ rows: [StagedRow]) async throws {
    note(rows[...])
    try await commit { writer, prefix in
      for row in rows { try writer.set(prefix + row.path, row.value) }
    }
  }

  private func note(_ rows: some Sequence<StagedRow>) {
    if !hasPriority, rows.contains(where: { RowKeys.hasPriority($0.path, $0.value) }) {
      priority.withLock { $0 = true }
    }
  }

  /// Adds and removes rows, in order and in small commits. Returns when there is room for more, as ``add(_:)``.
  func carryOut(_ steps: [StagedStep]) async throws {
    note(
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
        // How many rows go only the commit knows, and whether that was all.
        done = try await store.execute(validating: nil) { [number, limits] writer in
          try StagedStep.carryOut(
            steps[from...], RowKeys.prefix(ofGeneration: number), limits, in: writer)
        }.result
      }
    }
  }

  // MARK: Commits under way

  private struct Flights {
    var count = 0
    var failure: (any Error)?
    /// Whoever fills the generation, and how many may be under way when it goes on.
    var waiting: (most: Int, continuation: CheckedContinuation<Void, any Error>)?
  }

  /// Begins a commit once there is room for it.
  private func commit(
    _ body: @escaping @Sendable (any SequencedTransaction, _ prefix: [UInt8]) throws -> Void
  ) async throws {
    try await wait(atMost: limits.commitsInFlight - 1)
    flights.withLock { $0.count += 1 }
    let prefix = RowKeys.prefix(ofGeneration: number)
    // It holds the generation, which nobody clears before.
    store.execute(validating: nil) { writer in
      try body(writer, prefix)
    } completion: { outcome in
      self.land(outcome.map { _ in })
    }
  }

  private func land(_ outcome: Result<Void, any Error>) {
    let (resumed, failure) = flights.withLock { flights in
      flights.count -= 1
      if case .failure(let error) = outcome, flights.failure == nil { flights.failure = error }
      guard let waiting = flights.waiting, flights.failure != nil || flights.count <= waiting.most else {
        return (CheckedContinuation<Void, any Error>?.none, flights.failure)
      }
      flights.waiting = nil
      return (waiting.continuation, flights.failure)
    }
    if let failure { resumed?.resume(throwing: failure) } else { resumed?.resume() }
  }

  /// Waits until so many commits are under way at most.
  private func wait(atMost most: Int) async throws {
    try await withCheckedThrowingContinuation { continuation in
      let outcome = flights.withLock { flights -> Result<Void, any Error>? in
        if let failure = flights.failure { return .failure(failure) }
        if flights.count <= most { return .success(()) }
        flights.waiting = (most, continuation)
        return nil
      }
      if let outcome { continuation.resume(with: outcome) }
    }
  }

  /// Waits until everything that was added is durable.
  /// - Throws: why a commit failed.
  func settle() async throws { try await wait(atMost: 0) }

  /// The rows that were added, under the keys that they will have at a location.
  func read<Result: Sendable>(
    as location: [UInt8], _ body: @escaping @Sendable (any ReadView) throws -> Result
  ) async throws -> Result {
    let generations = SubtreeGenerations(sorted: [SubtreeGeneration(prefix: location, number: number)])
    return try await store.read(at: nil) { try body(GenerationView(base: $0, generations: generations)) }
  }
}

/// A row of a generation.
struct StagedRow: Sendable {
  /// The path relative to the generation's location, as row keys hold it.
  let path: [UInt8]
  let value: [UInt8]

  var size: Int { path.count + value.count }
}

/// What is done to a generation that is being filled.
enum StagedStep: Sendable {
  /// Adds a row; it replaces one with the same path.
  case add(StagedRow)
  /// Removes what was added at and below a path.
  case remove([UInt8])
  /// Adds the priority of what stands below a path, if anything does.
  case addPriority(StagedRow, of: [UInt8])

  /// Where the additions end that one commit should bring, from the first step on.
  fileprivate static func endOfAdditions(_ steps: ArraySlice<StagedStep>, _ limits: StagingLimits) -> Int {
    var bytes = 0
    for (position, step) in zip(steps.indices, steps) {
      guard case .add(let row) = step, position - steps.startIndex < limits.stepRows, bytes < limits.stepBytes
      else { return position }
      bytes += row.size
    }
    return steps.endIndex
  }

  /// Carries out as many steps as one commit should; the position of the first that is not done.
  fileprivate static func carryOut(
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
        var stands = false
        try writer.scan(KeyRange(prefix: prefix + path), reverse: false) { _, _, _ in
          stands = true
          return false
        }
        if stands { try writer.set(prefix + row.path, row.value) }
      case .remove(let path):
        var keys: [[UInt8]] = []
        try writer.scan(KeyRange(prefix: prefix + path), reverse: false) { key, _, _ in
          keys.append(Array(key))
          return keys.count < limits.stepRows
        }
        for key in keys { try writer.clear(key) }
        rows += keys.count + 1
        // There may be more of them: it is looked for again.
        if keys.count >= limits.stepRows { return position }
      }
    }
    return steps.endIndex
  }
}
