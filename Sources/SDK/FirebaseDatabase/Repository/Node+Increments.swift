// Detects increments in a value of the app.

import RealtimeModel

extension Node {
  /// Whether the value contains an increment, whose result depends on the server's value.
  var containsIncrement: Bool {
    guard containsDeferred else { return false }
    if case .deferred(.increment)? = priority { return true }
    if case .deferred(.increment)? = leafValue { return true }
    return !forEachChild { _, child in !child.containsIncrement }
  }
}
