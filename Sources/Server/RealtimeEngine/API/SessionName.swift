// Names of sessions: 24 letters and digits drawn from the system's randomness, so that nobody can end
// another's session.

import RealtimeModel

/// Makes names of sessions.
enum SessionName {
  static func make() -> String { RandomName.make(24) }
}
