// Names sessions with 24 random letters and digits from the system's generator: a client cannot guess, and
// end, the session of another.

import RealtimeModel

/// Generates session names.
enum SessionName {
  static func make() -> String { RandomName.make(24) }
}
