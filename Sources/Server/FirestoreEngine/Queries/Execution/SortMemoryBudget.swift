// Bounds the total bytes of results that all queries of an engine hold in memory for sorting.
//
// One query is bounded by `EngineLimits.maximumSortBytes`. Many queries of clients that read slowly can hold
// their results for a long time, so their total is bounded too.
//
// Invariant: a reservation releases its bytes when it is deallocated, however its query ends. A query updates its
// reservation after each read from the store, so the budget is exceeded by at most one read.

import Locking
import OrderedStore

/// The bytes that queries may hold for sorting, shared by all databases of an engine.
final class SortMemoryBudget: Sendable {
  let limit: Int
  private let reserved = Guarded(0)

  init(limit: Int) { self.limit = limit }

  /// The bytes that are reserved now.
  var reservedBytes: Int { reserved.withLock { $0 } }

  private func resize(from old: Int, to new: Int) -> Bool {
    reserved.withLock { reserved in
      precondition(reserved >= old, "invariant: reservations add up to the reserved bytes")
      guard new <= old || reserved + new - old <= limit else { return false }
      reserved += new - old
      return true
    }
  }

  /// The bytes that one query has reserved.
  final class Reservation: Sendable {
    private let budget: SortMemoryBudget
    private let bytes = Guarded(0)

    init(_ budget: SortMemoryBudget) { self.budget = budget }

    deinit { _ = budget.resize(from: bytes.withLock { $0 }, to: 0) }

    /// Changes the reservation to a number of bytes. Returns false, and changes nothing, if the budget is exhausted.
    func resize(to count: Int) -> Bool {
      bytes.withLock { bytes in
        guard budget.resize(from: bytes, to: count) else { return false }
        bytes = count
        return true
      }
    }
  }
}
