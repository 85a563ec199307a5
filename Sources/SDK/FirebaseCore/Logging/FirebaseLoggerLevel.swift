// The log level of the SDK. The raw values are those of Google's SDK.

/// The importance of a message. A message is logged if its importance is at least the configured level.
public enum FirebaseLoggerLevel: Int, Sendable {
  /// A failure that the app must handle.
  case error = 3
  /// The SDK behaves differently from what the app may expect.
  case warning = 4
  /// Noteworthy but normal; the default level.
  case notice = 5
  /// Details of normal operation.
  case info = 6
  /// Everything, for debugging.
  case debug = 7

  /// The level with the fewest messages.
  public static var min: FirebaseLoggerLevel { .error }

  /// The level with the most messages.
  public static var max: FirebaseLoggerLevel { .debug }
}
