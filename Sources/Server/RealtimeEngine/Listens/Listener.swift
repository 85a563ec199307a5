// One listen of one connection, as the fan-out stage holds it.

import RealtimeModel

/// A listen that stands.
///
/// Touched by the fan-out stage only.
final class Listener {
  let connection: ConnectionState
  let name: ListenName
  let query: QuerySpec
  /// Where it listens, while it does: a location stays as long as a listener is there.
  unowned var location: ListenTrie?
  /// Its place among those that listen to the same there.
  fileprivate var position = 0
  private var isBelowAnother = false
  /// When `isBelowAnother` was found out, in changes of the connection's default listens.
  private var knownSince = 0

  init(connection: ConnectionState, name: ListenName, query: QuerySpec) {
    self.connection = connection
    self.name = name
    self.query = query
  }

  /// Whether the whole location is shown, untagged.
  var isDefault: Bool { name.tag == nil && query.showsAll }

  /// Whether a default listen of the same connection above this one is told already whatever this one would be.
  var isShadowed: Bool {
    if knownSince != connection.output.defaults.changes { lookUp() }
    return isBelowAnother
  }

  /// Finds out again whether another default listen lies above this one.
  private func lookUp() {
    guard let location else { return }
    isBelowAnother = connection.output.defaults.lieAbove(location)
    knownSince = connection.output.defaults.changes
  }
}

extension [Listener] {
  /// Adds a listener that is in no other list.
  mutating func add(_ listener: Listener) {
    listener.position = count
    append(listener)
  }

  /// Removes a listener; the last one takes its place, so that it costs the same however many there are.
  mutating func remove(_ listener: Listener) {
    let position = listener.position
    guard position < count, self[position] === listener else { return }
    swapAt(position, count - 1)
    self[position].position = position
    removeLast()
  }
}
