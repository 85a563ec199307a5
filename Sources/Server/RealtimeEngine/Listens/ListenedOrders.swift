// Where the fan-out stage has the children of a location in an order, because somebody listens to them in it: another listen
// there needs nothing to be put into that order once more.

import RealtimeModel

/// The orders in which locations are listened to.
///
/// `@unchecked Sendable`: touched in sequenced bodies, which run one at a time, and by the pump while none runs.
final class ListenedOrders: @unchecked Sendable {
  private struct Place: Hashable {
    let path: Path
    let ordering: Ordering
  }

  private var counts: [Place: Int] = [:]
  private var paths: [Path: (listens: Int, orders: Int)] = [:]

  /// Whether somebody listens to a location by a query, as of the operation that is carried out.
  func has(_ path: Path) -> Bool { paths[path] != nil }

  /// Whether the children of a location are kept in an order, as of the operation that is carried out.
  func has(_ ordering: Ordering, at path: Path) -> Bool {
    counts[Place(path: path, ordering: ordering)] != nil
  }

  /// In how many orders the children of a location are kept, that by key aside, as of the operation that is carried out.
  func count(at path: Path) -> Int { paths[path]?.orders ?? 0 }

  /// Follows a listen that begins, changes or ends.
  func change(_ name: ListenName, from before: QuerySpec?, to now: QuerySpec?, _ journal: SessionJournal) {
    add(name, before, -1)
    add(name, now, 1)
    journal.note {
      self.add(name, now, -1)
      self.add(name, before, 1)
    }
  }

  private func add(_ name: ListenName, _ query: QuerySpec?, _ change: Int) {
    guard let query, name.tag != nil || !query.showsAll else { return }
    var all = paths[name.path] ?? (0, 0)
    all.listens += change
    defer { paths[name.path] = all.listens == 0 ? nil : all }
    // Without a limit nothing is kept in order.
    guard query.limit != nil else { return }
    let place = Place(path: name.path, ordering: query.ordering)
    let before = counts[place, default: 0]
    let count = before + change
    counts[place] = count == 0 ? nil : count
    if query.ordering != .key, (before == 0) != (count == 0) { all.orders += change }
  }
}
