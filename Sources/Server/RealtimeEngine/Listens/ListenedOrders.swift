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

  /// Whether somebody listens to a location in an order, as of the operation that is carried out.
  func has(_ ordering: Ordering, at path: Path) -> Bool {
    counts[Place(path: path, ordering: ordering)] != nil
  }

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
    let place = Place(path: name.path, ordering: query.ordering)
    let count = counts[place, default: 0] + change
    counts[place] = count == 0 ? nil : count
  }
}
