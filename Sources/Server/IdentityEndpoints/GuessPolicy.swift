// A guess policy determines which calls of an operation are guesses: attempts to find out a password, a code, or
// whether an account exists.

import Identity
import JSON

/// The calls of an operation that count as attempts of a client address.
enum GuessPolicy: Sendable {
  /// No call.
  case none
  /// Calls whose response shows that the guess was wrong, or whether an account exists.
  case failures
  /// Every call: the operation sends messages, or its success shows whether an account exists.
  case always

  /// The codes of errors that a guess causes.
  private static let failureCodes: Set<String> = [
    "INVALID_LOGIN_CREDENTIALS", "INVALID_PASSWORD", "EMAIL_NOT_FOUND", "EMAIL_EXISTS", "USER_NOT_FOUND",
    "USER_DISABLED", "INVALID_CODE", "INVALID_OOB_CODE", "EXPIRED_OOB_CODE",
    "INVALID_SESSION_INFO", "SESSION_EXPIRED", "INVALID_TEMPORARY_PROOF", "INVALID_MFA_PENDING_CREDENTIAL",
    "MFA_ENROLLMENT_NOT_FOUND", "PHONE_NUMBER_EXISTS",
  ]

  /// Whether a call with this result counts as a guess.
  func counts(_ result: Result<JSONObject, any Error>) -> Bool {
    switch (self, result) {
    case (.none, _), (.failures, .success): return false
    case (.always, _): return true
    case (.failures, .failure(let error)):
      guard let error = error as? IdentityError else { return false }
      return Self.failureCodes.contains(String(error.message.prefix { $0 != " " }))
    }
  }
}
