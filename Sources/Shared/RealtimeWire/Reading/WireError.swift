// The error of a message that cannot be answered, since it has no request number.

public import JSON
import RealtimeModel

/// A message that is not one of the protocol's.
public enum WireError: Error, Sendable, Equatable {
  /// The text is not JSON.
  case notJSON(JSONError)
  /// The text is JSON, but neither a control message nor a request with a number.
  case notAMessage(String)

  /// Converts a reader's error.
  init(_ error: JSONError) {
    switch error.code {
    case .unexpectedType: self = .notAMessage("field of a wrong type at byte \(error.offset)")
    default: self = .notJSON(error)
    }
  }
}
