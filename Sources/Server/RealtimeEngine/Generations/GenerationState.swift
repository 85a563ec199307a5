// Holds the generations as the executor sees them, durable or in flight. Also caches the generations of
// durable states for reads off the executor.

import Locking
import OrderedStore

/// The generations after the last sequenced batch.
///
/// `@unchecked Sendable`: only batches, which run one at a time, and the batch loop between them access it.
final class GenerationState: @unchecked Sendable {
  private(set) var current = SubtreeGenerations()
  let limits: StagingLimits
  /// The generations of durable states, for reads off the executor.
  let durable = DurableGenerations()
  /// The last commit that requested generation numbers, and how many it has requested.
  private var begun: (version: UInt64, count: UInt64) = (0, 0)

  init(_ limits: StagingLimits) { self.limits = limits }

  /// Loads the generations at the start.
  func load(_ view: any ReadView) throws {
    current = try GenerationRows.load(view)
    if try GenerationRows.stamp(view) != nil { durable.expect() }
  }

  /// Changes the generations and records how to undo it.
  func change(_ journal: SessionJournal, _ change: (inout SubtreeGenerations) -> Void) {
    let before = current
    durable.expect()
    change(&current)
    journal.record { self.current = before }
  }

  /// Returns an unused generation number.
  ///
  /// - Throws: ``StoreError`` if the commit has used all its numbers.
  func nextNumber(_ commit: Version) throws -> UInt64 {
    if begun.version != commit.microseconds { begun = (commit.microseconds, 0) }
    begun.count += 1
    guard begun.count <= min(limits.maximumNumbersPerCommit, GenerationState.maximumPerCommit - 1) else {
      throw StoreError.limitExceeded(
        "a commit replaces more large subtrees than its \(limits.maximumNumbersPerCommit) numbers suffice for"
      )
    }
    return GenerationState.number(commit, begun.count)
  }

  /// The number of a generation: the version of the commit that begins it, and a count within this commit.
  /// The count is 0 if a separate commit begins only this generation, to stage it.
  static func number(_ commit: Version, _ count: UInt64 = 0) -> UInt64 {
    commit.microseconds &* maximumPerCommit &+ count
  }

  private static let maximumPerCommit: UInt64 = 4096
}

/// The generations of durable states.
final class DurableGenerations: Sendable {
  private struct State {
    /// Whether the database may have generations. Most databases never have one, and their reads skip the
    /// lookup.
    var isExpected = false
    var stamp: [UInt8] = []
    var generations = SubtreeGenerations()
  }

  private let state = Guarded(State())

  /// Makes reads look for generations from now on.
  func expect() { state.withLock { $0.isExpected = true } }

  /// Returns a view of a durable state in which all rows have the keys of the tree.
  func view(_ base: any ReadView) throws -> any ReadView {
    let known = state.withLock { $0 }
    guard known.isExpected, let stamp = try GenerationRows.stamp(base) else { return base }
    if known.stamp == stamp { return GenerationView(base: base, generations: known.generations) }
    let generations = try GenerationRows.load(base)
    state.withLock { state in
      state.stamp = stamp
      state.generations = generations
    }
    return GenerationView(base: base, generations: generations)
  }
}
