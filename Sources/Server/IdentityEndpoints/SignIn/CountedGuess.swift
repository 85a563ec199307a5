// Counts guesses of verification codes per account or phone number. A session allows only a few attempts, but an
// attacker can begin any number of sessions.

import Identity
import JSON

extension IdentityCall {
  /// Runs an operation that checks a code, and counts it as an attempt before its result is known.
  /// - Throws: `TOO_MANY_ATTEMPTS_TRY_LATER`, or the error of the operation. `INVALID_CODE` is a wrong guess.
  func countingGuess(
    _ key: AttemptLimiter.Key, _ operation: () async throws -> JSONObject
  ) async throws -> JSONObject {
    try services.attemptLimiter.begin(key, at: now)
    do {
      let response = try await operation()
      services.attemptLimiter.end(key, .correct, at: services.clock.milliseconds)
      return response
    } catch {
      let isWrong = (error as? IdentityError)?.message == "INVALID_CODE"
      services.attemptLimiter.end(key, isWrong ? .wrong : .undecided, at: services.clock.milliseconds)
      throw error
    }
  }
}
