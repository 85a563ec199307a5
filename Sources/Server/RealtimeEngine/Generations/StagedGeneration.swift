// A generation that is filled in small commits beside the sequencer, before one small commit puts it into its place.
//
// Invariants: nobody sees its rows before; if it never finds its place, whoever held it last has it cleared, and what a
// killed server left is cleared at the next start.

import OrderedStore
import RealtimeModel

/// A generation on its way into the tree.
final class StagedGeneration: Sendable {
  let number: UInt64
  private let store: any OrderedDatabase
  private let cleaner: Cleaner
  private let priority = Guarded(false)
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

  /// Adds rows by their paths relative to the location; of two with one path the later counts. Returns when they are
  /// durable.
  func add(_ rows: [StagedRow]) async throws {
    let prefix = RowKeys.prefix(ofGeneration: number)
    note(rows[...])
    _ = try await store.execute(validating: nil) { writer in
      for row in rows { try writer.set(prefix + row.path, row.value) }
    }
  }

  private func note(_ rows: some Sequence<StagedRow>) {
    if !hasPriority, rows.contains(where: { RowKeys.hasPriority($0.path, $0.value) }) {
      priority.withLock { $0 = true }
    }
  }

  /// Adds and removes rows, in order and in small commits. Returns when everything is durable.
  func carryOut(_ steps: [StagedStep]) async throws {
    note(
      steps.lazy.compactMap { step -> StagedRow? in
        if case .add(let row) = step { row } else { nil }
      })
    var done = 0
    while done < steps.count {
      let from = done
      done = try await store.execute(validating: nil) { [number, limits] writer in
        try StagedStep.carryOut(
          steps[from...], RowKeys.prefix(ofGeneration: number), limits, in: writer)
      }.result
    }
  }

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

  /// Carries out as many steps as one commit should; the position of the first that is not done.
  fileprivate static func carryOut(
    _ steps: ArraySlice<StagedStep>, _ prefix: [UInt8], _ limits: StagingLimits, in writer: any Sequenced
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
