// Tracks the default listens of one connection: untagged listens to complete locations. A default listen
// below another one needs no pushes, because the connection receives its changes through the upper listen.
//
// Starting or ending a listen takes constant time. A write that visits a listen checks lazily whether one of
// its ancestors has a default listen.

/// The locations of a connection's default listens.
struct DefaultListens {
  private var locations: Set<ObjectIdentifier> = []
  /// The number of additions and removals. When it has changed, listeners look for default listens above them again.
  private(set) var changeCount = 0
  /// The number of ancestors checked so far. Only tests of the cost read it.
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

  /// Whether an ancestor of this location has one of these listens.
  mutating func containsAncestor(of location: ListenTrie) -> Bool {
    // If the set has one location, that is this location itself, so no ancestor is in the set.
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
