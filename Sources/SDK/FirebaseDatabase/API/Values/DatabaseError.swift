// Converts errors of the core to NSError objects, because on Linux `as? NSError` fails for other Swift
// errors.

import Foundation
import RealtimeModel

/// The domain of the errors of the Realtime Database.
let databaseErrorDomain = "com.firebase"

extension RealtimeError {
  /// The error that an async method throws if its completion is never called.
  static let unknownOutcome = RealtimeError(
    .init(rawValue: "disconnect"),
    "The app was deleted before the server responded, so whether the write took effect is not known")

  /// The error that a callback receives.
  func asNSError(at path: Path? = nil) -> NSError {
    let (code, text): (Int, String) =
      switch status {
      case .permissionDenied: (1, "Permission Denied")
      case .unavailable: (2, "Service is unavailable")
      case .writeCanceled: (3, "Write cancelled by user")
      default: (9_999, message.isEmpty ? status.rawValue : message)
      }
    return NSError(domain: databaseErrorDomain, code: code, userInfo: [NSLocalizedDescriptionKey: text])
  }

  /// The error of a read without a response.
  var asGetError: NSError {
    if status.rawValue != "offline" { return asNSError() }
    return NSError(
      domain: "com.firebase.core", code: 1,
      userInfo: [
        NSLocalizedDescriptionKey:
          "Unable to get latest value: client offline with no active listeners and no matching disk cache entries",
        NSLocalizedFailureReasonErrorKey: message,
      ])
  }
}
