// Represents one listen of one connection in the fan-out stage, the task that sends pushes to clients.

import RealtimeModel

/// An active listen.
///
/// Used by the fan-out stage only.
final class Listener {
  let connection: ConnectionState
  let name: ListenName
  let query: QuerySpec
  /// The listened location; nil when the listen is not active. `unowned` is safe because a location exists as
  /// long as it has listeners.
  unowned var location: ListenTrie?
  /// The index in the list of listeners with the same query.
  fileprivate var position = 0
  private var hasListeningAncestor = false
  /// The change count of the connection's default listens when `hasListeningAncestor` was computed.
  private var checkedChangeCount = 0

  init(connection: ConnectionState, name: ListenName, query: QuerySpec) {
    self.connection = connection
    self.name = name
    self.query = query
  }

  /// Whether this is an untagged listen to the complete location.
  var isDefault: Bool { name.tag == nil && query.showsAll }

  /// Whether the connection has a default listen above this one. That listen already receives the same
  /// changes.
  var isShadowed: Bool {
    if checkedChangeCount != connection.output.defaults.changeCount { updateShadowing() }
    return hasListeningAncestor
  }

  /// Computes again whether a default listen is above this one.
  private func updateShadowing() {
    guard let location else { return }
    hasListeningAncestor = connection.output.defaults.containsAncestor(of: location)
    checkedChangeCount = connection.output.defaults.changeCount
  }
}

extension [Listener] {
  /// Adds a listener, which must not be in another list.
  mutating func add(_ listener: Listener) {
    listener.position = count
    append(listener)
  }

  /// Removes a listener in constant time by moving the last listener to its index.
  mutating func remove(_ listener: Listener) {
    let position = listener.position
    precondition(
      position < count && self[position] === listener, "invariant: a listener is at its index in its list")
    swapAt(position, count - 1)
    self[position].position = position
    removeLast()
  }
}
