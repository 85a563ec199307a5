// Holds the generations (subtrees whose rows have a separate key prefix) as of the last sequenced batch, whether or not
// that batch is durable. Also caches the generations of durable states for reads off the executor.

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
  /// The last commit that got generation numbers, and how many it has got.
  private var assigned: (version: UInt64, count: UInt64) = (0, 0)

  init(_ limits: StagingLimits) { self.limits = limits }

  /// Loads the generations at the start.
  func load(_ view: any ReadView) throws {
    current = try GenerationRows.load(view)
    if try GenerationRows.stamp(view) != nil { durable.enableLookup() }
  }

  /// Changes the generations and records how to undo it.
  func change(_ journal: SessionJournal, _ change: (inout SubtreeGenerations) -> Void) {
    let before = current
    durable.enableLookup()
    change(&current)
    journal.record { self.current = before }
  }

  /// Returns an unused generation number.
  ///
  /// - Throws: ``StoreError`` if the commit has used all its numbers.
  func nextNumber(_ commit: Version) throws -> UInt64 {
    if assigned.version != commit.microseconds { assigned = (commit.microseconds, 0) }
    assigned.count += 1
    guard assigned.count <= min(limits.maximumNumbersPerCommit, GenerationState.maximumPerCommit - 1) else {
      throw StoreError.limitExceeded(
        "a commit replaces more large subtrees than its \(limits.maximumNumbersPerCommit) numbers suffice for"
      )
    }
    return GenerationState.number(commit, assigned.count)
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
    var mayHaveGenerations = false
    var stamp: [UInt8] = []
    var generations = SubtreeGenerations()
  }

  private let state = Guarded(State())

  /// Makes all later reads look up the generations.
  func enableLookup() { state.withLock { $0.mayHaveGenerations = true } }

  /// Returns a view of a durable state in which all rows have the keys of the tree.
  func view(_ base: any ReadView) throws -> any ReadView {
    let cached = state.withLock { $0 }
    guard cached.mayHaveGenerations, let stamp = try GenerationRows.stamp(base) else { return base }
    if cached.stamp == stamp { return GenerationView(base: base, generations: cached.generations) }
    let generations = try GenerationRows.load(base)
    state.withLock { state in
      state.stamp = stamp
      state.generations = generations
    }
    return GenerationView(base: base, generations: generations)
  }
}
