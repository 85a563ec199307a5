// One listen of one connection, as the fan-out stage holds it.

import RealtimeModel

/// A listen that stands.
///
/// Touched by the fan-out stage only.
final class Listener {
  let connection: ConnectionState
  let name: ListenName
  let query: QuerySpec
  /// Whether a default listen of the same connection above this one is told already whatever this one would be.
  var isShadowed = false

  init(connection: ConnectionState, name: ListenName, query: QuerySpec) {
    self.connection = connection
    self.name = name
    self.query = query
  }
}
