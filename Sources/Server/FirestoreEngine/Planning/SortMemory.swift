// One budget of bytes for the results that all queries of an engine hold because no index orders them. What one query may
// hold is `EngineLimits.sortBytes`; slow readers of many keep theirs until they have taken the last page.
//
// Invariant: what an account holds is given back when the account goes, in whatever way its query ends. A query is told
// apart from the budget after each look at the store, so that it is exceeded by what one look reads at most.

import Locking
import OrderedStore

/// The bytes that queries may hold together.
final class SortMemory: Sendable {
  let limit: Int
  private let taken = Guarded(0)

  init(limit: Int) { self.limit = limit }

  /// The bytes that are held now.
  var used: Int { taken.withLock { $0 } }

  private func change(from old: Int, to new: Int) -> Bool {
    taken.withLock { taken in
      guard new <= old || taken + new - old <= limit else { return false }
      taken += new - old
      return true
    }
  }

  /// What one query holds of the budget.
  final class Account: Sendable {
    private let memory: SortMemory
    private let held = Guarded(0)

    init(_ memory: SortMemory) { self.memory = memory }

    deinit { _ = memory.change(from: held.withLock { $0 }, to: 0) }

    /// Holds so many bytes instead of what was held before; false, and nothing changes, if there is no room for more.
    func hold(_ bytes: Int) -> Bool {
      held.withLock { held in
        guard memory.change(from: held, to: bytes) else { return false }
        held = bytes
        return true
      }
    }
  }
}
