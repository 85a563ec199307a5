// Where the default listens of one connection lie, to know which of them lie below another: what happens there
// the connection is told already.
//
// A listen that starts or ends costs the same however many there are. That it changes what others below it are
// told is found out where a write comes by, which looks upwards from those that it visits.

/// The locations of a connection's default listens.
struct DefaultListens {
  private var locations: Set<ObjectIdentifier> = []
  /// How often one was added or removed: what was found out before need not hold any more.
  private(set) var changes = 0
  /// How many locations were looked at to find what lies below another; for tests of the cost.
  private(set) var looks = 0

  mutating func insert(_ location: ListenTrie) {
    locations.insert(ObjectIdentifier(location))
    changes += 1
  }

  /// Removes a location, which must still be there.
  mutating func remove(_ location: ListenTrie) {
    locations.remove(ObjectIdentifier(location))
    changes += 1
  }

  /// Whether one of these listens lies above another of them.
  mutating func lieAbove(_ location: ListenTrie) -> Bool {
    // The one of which is asked is among them.
    guard locations.count > 1 else { return false }
    var above = location.parent
    while let place = above {
      looks += 1
      if locations.contains(ObjectIdentifier(place)) { return true }
      above = place.parent
    }
    return false
  }
}
