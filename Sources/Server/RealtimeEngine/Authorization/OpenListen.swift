// Represents one open listen in the sequencer: its query, and what the last decision about it depends on.

import RealtimeModel

/// A listen that a client has started and not ended.
///
/// Used in batches only, which execute one at a time.
final class OpenListen {
  /// The connection, which retains the listen.
  unowned let connection: ConnectionState
  let name: ListenName
  let query: QuerySpec
  /// The state of the decision, which only ``OpenListens`` changes.
  var decision = Decision()
  /// The location in the index; nil while the listen is not in the index.
  var location: ListenIndexLocation?
  /// The indexes of this listen in the list of all listens, and in the list of its location.
  var position = 0
  var positionAtLocation = 0

  /// The last decision about the listen, which allowed it.
  struct Decision {
    /// The round (see ``OpenListens``) in which the decision was made; nil if it has to be made again.
    var round: Int?
    /// Whether the decision read the time. If so, it is made again before each push.
    var dependsOnTime = false
    /// The facts that the decision read.
    var facts: [TrackedFact] = []
  }

  init(_ connection: ConnectionState, _ name: ListenName, _ query: QuerySpec) {
    self.connection = connection
    self.name = name
    self.query = query
  }
}

/// The facts and the time that the permission of a listen depends on.
struct ListenPermission {
  var observations: [TreeObservation] = []
  var dependsOnTime = false
}

/// A fact about the tree, shared by all listens whose decisions have read it.
final class TrackedFact {
  let fact: TreeFact
  unowned let location: ListenIndexLocation
  var answer: TreeFact.Answer
  var listens: [ObjectIdentifier: OpenListen] = [:]

  init(_ fact: TreeFact, at location: ListenIndexLocation, _ answer: TreeFact.Answer) {
    self.fact = fact
    self.location = location
    self.answer = answer
  }
}

/// A location of the index: the listens on it, and the facts about it.
final class ListenIndexLocation {
  let key: ChildKey?
  /// The parent, which retains this location; nil for the root.
  unowned let parent: ListenIndexLocation?
  var children: [ChildKey: ListenIndexLocation] = [:]
  var listens: [OpenListen] = []
  var facts: [TreeFact: TrackedFact] = [:]

  init(_ key: ChildKey? = nil, in parent: ListenIndexLocation? = nil) {
    self.key = key
    self.parent = parent
  }

  private var isEmpty: Bool { children.isEmpty && listens.isEmpty && facts.isEmpty }

  /// The location of a path below this one; created if necessary.
  func location(at path: Path) -> ListenIndexLocation {
    var location = self
    for key in path.keys {
      if let next = location.children[key] {
        location = next
      } else {
        let next = ListenIndexLocation(key, in: location)
        location.children[key] = next
        location = next
      }
    }
    return location
  }

  /// Removes this location, and then its ancestors, from the index while they are empty.
  func removeIfEmpty() {
    var location = self
    while location.isEmpty, let parent = location.parent, let key = location.key {
      parent.children[key] = nil
      location = parent
    }
  }
}
