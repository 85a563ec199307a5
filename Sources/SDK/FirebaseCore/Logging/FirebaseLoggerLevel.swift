// The log level of the SDK. The raw values are those of Apple's SDK.

/// How important a message of the SDK must be to be printed.
public enum FirebaseLoggerLevel: Int, Sendable {
  /// A failure that the app must handle.
  case error = 3
  /// The SDK behaves differently from what the app may expect.
  case warning = 4
  /// Noteworthy but normal; the default level.
  case notice = 5
  /// Details of normal operation.
  case info = 6
  /// Everything, for finding faults.
  case debug = 7

  /// The least talkative level.
  public static var min: FirebaseLoggerLevel { .error }

  /// The most talkative level.
  public static var max: FirebaseLoggerLevel { .debug }
}
