// The errors for the app: NSError objects, since on Linux a Swift error does not cast to NSError by `as?`.

import Foundation
import RealtimeModel

/// The domain of the errors of the Realtime Database.
let databaseErrorDomain = "com.firebase"

extension RealtimeError {
  /// The error for a task whose completion is never called.
  static let unknownOutcome = RealtimeError(
    .init(rawValue: "disconnect"),
    "The app was deleted before the server answered, so whether the write took effect is not known")

  /// The error of a callback.
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

  /// The error of a read that got no answer.
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
