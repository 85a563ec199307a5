// Tracks the default listens of one connection, to find those below another one: the connection receives
// their changes through that one.
//
// Starting or ending a listen takes constant time. Whether a listen is below another is determined lazily, by
// a write that visits it, from its ancestors.

/// The locations of a connection's default listens.
struct DefaultListens {
  private var locations: Set<ObjectIdentifier> = []
  /// The number of additions and removals, by which cached results are invalidated.
  private(set) var changeCount = 0
  /// The number of ancestors checked; for tests of the cost.
  private(set) var lookupCount = 0

  mutating func insert(_ location: ListenTrie) {
    locations.insert(ObjectIdentifier(location))
    changeCount += 1
  }

  /// Removes a location, which must be present.
  mutating func remove(_ location: ListenTrie) {
    let removed = locations.remove(ObjectIdentifier(location))
    precondition(removed != nil, "invariant: a removed default listen is among the connection's listens")
    changeCount += 1
  }

  /// Whether one of these listens is at an ancestor of another one.
  mutating func containsAncestor(of location: ListenTrie) -> Bool {
    // The location itself is one of them.
    guard locations.count > 1 else { return false }
    var above = location.parent
    while let ancestor = above {
      lookupCount += 1
      if locations.contains(ObjectIdentifier(ancestor)) { return true }
      above = ancestor.parent
    }
    return false
  }
}
