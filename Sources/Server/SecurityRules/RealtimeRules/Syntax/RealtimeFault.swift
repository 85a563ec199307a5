/// A mistake in a rule expression of the Realtime Database, found before the rules take effect.
struct RealtimeFault: Error, Hashable, Sendable {
  /// The position in the expression, in bytes of UTF-8.
  let offset: Int
  /// The description, a sentence.
  let message: String
}
