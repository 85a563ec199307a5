// Names sessions with 24 random letters and digits from the system's generator. So a client cannot guess
// another client's session name and end that session.

import RealtimeModel

/// Generates session names.
enum SessionName {
  static func make() -> String { RandomName.make(24) }
}
