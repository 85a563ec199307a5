// Authenticates the callers of the Firestore port by the `authorization` header of their requests.
//
// A `CredentialVerifier` turns the token into a principal. With `--emulator` it accepts the claims of every token
// without verification.
//
// Invariant: no claim is trusted unless the verifier accepted its token.

package import Access
package import FirestoreModel

/// Authenticates the callers of the Firestore port.
package struct FirestoreAuthentication: Sendable {
  /// Verifies tokens; nil to reject every caller.
  private let verifier: (any CredentialVerifier)?
  /// Whether a malformed token is an invalid argument, as in Google's emulator.
  private let isEmulator: Bool

  private init(_ verifier: (any CredentialVerifier)?, isEmulator: Bool) {
    self.verifier = verifier
    self.isEmulator = isEmulator
  }

  /// Trusts every request: see `EmulatorTokens`. A request without a token has the caller `Principal.nobody`.
  package static let emulator = FirestoreAuthentication(EmulatorTokens(), isEmulator: true)

  /// Accepts the tokens that a verifier accepts. A request without a token has the caller `Principal.nobody`.
  package static func verifying(_ verifier: any CredentialVerifier) -> FirestoreAuthentication {
    FirestoreAuthentication(verifier, isEmulator: false)
  }

  /// Rejects a request whose credentials are not accepted, before the request's body is stored.
  /// - Throws: UNAUTHENTICATED.
  func admit(authorization: @autoclosure () -> [String]) throws(FirestoreError) {
    if !isEmulator { _ = try caller(authorization: authorization()) }
  }

  /// Returns the caller of a request.
  /// - Parameter authorization: the header's values.
  /// - Throws: UNAUTHENTICATED, or in the emulator INVALID_ARGUMENT for a malformed token.
  package func caller(authorization: [String]) throws(FirestoreError) -> Principal {
    guard let verifier else {
      throw .unauthenticated(
        "Request is missing required authentication credential. This port has no verifier of credentials and rejects "
          + "every caller.")
    }
    if authorization.isEmpty { return .nobody }
    var tokens: [Substring] = []
    for value in authorization {
      let parts = value.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: true)
      guard parts.count == 2, parts[0].lowercased() == "bearer" else {
        throw .unauthenticated("The authorization header must be of the form 'Bearer TOKEN'.")
      }
      tokens.append(parts[1])
    }
    do {
      guard let token = try InvalidCredential.singleToken(tokens) else { return .nobody }
      return try verifier.principal(of: token)
    } catch {
      if isEmulator { throw .invalidArgument("invalid jwt") }
      throw .unauthenticated(
        "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid "
          + "authentication credential.")
    }
  }
}
