// The Firebase logger: logs messages to standard error, one line each, filtered by the level of
// FirebaseConfiguration.
//
// Invariant: at the default level, every message at `.warning` or above is logged.

import Foundation

/// Logs the messages of the SDK.
package enum FirebaseLogger {
  /// Logs one line to standard error if the configured level allows it.
  package static func log(
    _ level: FirebaseLoggerLevel, service: String, _ message: @autoclosure () -> String
  ) {
    guard level.rawValue <= FirebaseConfiguration.shared.loggerLevel().rawValue else { return }
    let line = "[Firebase/\(service)] \(level): \(message())\n"
    FileHandle.standardError.write(Data(line.utf8))
  }
}
