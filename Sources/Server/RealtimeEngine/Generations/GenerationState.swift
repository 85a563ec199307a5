// The generations as the sequencer knows them: those of the sequenced state, durable or in flight; and those of durable
// states, for reads beside the sequencer.

import Locking
import OrderedStore

/// Where the subtrees of the sequenced state lie.
///
/// `@unchecked Sendable`: touched in sequenced bodies, which run one at a time, and by the pump while none runs, as all of
/// the sequencer's state.
final class GenerationState: @unchecked Sendable {
  private(set) var current = SubtreeGenerations()
  let limits: StagingLimits
  /// What reads beside the sequencer go by.
  let durable = DurableGenerations()
  /// The commit that last asked for numbers, and for how many.
  private var begun: (version: UInt64, count: UInt64) = (0, 0)

  init(_ limits: StagingLimits) { self.limits = limits }

  /// Takes over what rows say, at the start.
  func load(_ view: any ReadView) throws {
    current = try GenerationRows.load(view)
    if try GenerationRows.stamp(view) != nil { durable.expect() }
  }

  /// Changes the generations, with the way back.
  func change(_ journal: SessionJournal, _ change: (inout SubtreeGenerations) -> Void) {
    let before = current
    durable.expect()
    change(&current)
    journal.note { self.current = before }
  }

  /// A number that no other generation has.
  /// - Throws: ``StoreError`` for more than one commit gives out.
  func nextNumber(_ commit: Version) throws -> UInt64 {
    if begun.version != commit.microseconds { begun = (commit.microseconds, 0) }
    begun.count += 1
    guard begun.count <= min(limits.commitNumbers, GenerationState.mostInACommit - 1) else {
      throw StoreError.limitExceeded(
        "a commit replaces more large subtrees than its \(limits.commitNumbers) numbers suffice for")
    }
    return GenerationState.number(commit, begun.count)
  }

  /// The number of the generation that a commit of its own begins.
  static func number(_ commit: Version, _ count: UInt64 = 0) -> UInt64 {
    commit.microseconds &* mostInACommit &+ count
  }

  private static let mostInACommit: UInt64 = 4096
}

/// The generations of durable states.
final class DurableGenerations: Sendable {
  private struct State {
    /// Whether there may be any: most databases never have one, and their reads need not look.
    var isExpected = false
    var stamp: [UInt8] = []
    var generations = SubtreeGenerations()
  }

  private let state = Guarded(State())

  /// Has reads look for generations from now on.
  func expect() { state.withLock { $0.isExpected = true } }

  /// A durable state with the rows of the tree under their own keys.
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
