// Tracks the sort orders in which the fan-out stage (the task that sends pushes to clients) keeps the children of each
// location. A new listen in one of these orders needs no sort.

import RealtimeModel

/// The orders of listened locations.
///
/// `@unchecked Sendable`: only batches, which run one at a time, and the batch loop between them access it.
final class ListenedOrders: @unchecked Sendable {
  private struct LocationOrder: Hashable {
    let path: Path
    let ordering: Ordering
  }

  private var counts: [LocationOrder: Int] = [:]
  private var paths: [Path: (listens: Int, orders: Int)] = [:]

  /// Whether a location has a filtered listen, after the operations executed so far.
  func hasListen(at path: Path) -> Bool { paths[path] != nil }

  /// Whether the children of a location are kept in an order, after the operations executed so far.
  func hasOrder(_ ordering: Ordering, at path: Path) -> Bool {
    counts[LocationOrder(path: path, ordering: ordering)] != nil
  }

  /// The number of orders, other than by key, in which a location's children are kept, after the operations
  /// executed so far.
  func count(at path: Path) -> Int { paths[path]?.orders ?? 0 }

  /// Records that a listen starts, changes or ends.
  func change(_ name: ListenName, from before: QuerySpec?, to now: QuerySpec?, _ journal: SessionJournal) {
    add(name, before, -1)
    add(name, now, 1)
    journal.record {
      self.add(name, now, -1)
      self.add(name, before, 1)
    }
  }

  private func add(_ name: ListenName, _ query: QuerySpec?, _ change: Int) {
    guard let query, name.tag != nil || !query.showsAll else { return }
    var all = paths[name.path] ?? (0, 0)
    all.listens += change
    defer { paths[name.path] = all.listens == 0 ? nil : all }
    // Only a query with a limit requires the children in order.
    guard query.limit != nil else { return }
    let key = LocationOrder(path: name.path, ordering: query.ordering)
    let before = counts[key, default: 0]
    let count = before + change
    counts[key] = count == 0 ? nil : count
    if query.ordering != .key, (before == 0) != (count == 0) { all.orders += change }
  }
}
