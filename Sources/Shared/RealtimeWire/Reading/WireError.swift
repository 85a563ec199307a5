// The error of a malformed message that has no readable request number, so that no response is possible.

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
