// Why a message could not be understood at all, so that not even an answer to it can be numbered.

public import JSON
import RealtimeModel

/// A message that is not one of the protocol's.
public enum WireError: Error, Sendable, Equatable {
  /// The text is not JSON.
  case notJSON(JSONError)
  /// The text is JSON, and neither a control message nor a data message with a number.
  case notAMessage(String)

  /// What a reader's error says about a message.
  init(_ error: JSONError) {
    switch error.code {
    case .unexpectedType: self = .notAMessage("field of a wrong type at byte \(error.offset)")
    default: self = .notJSON(error)
    }
  }
}
