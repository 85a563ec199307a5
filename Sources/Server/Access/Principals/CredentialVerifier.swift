// A credential verifier turns the token of a request into a principal. `EmulatorTokens` implements it for the emulator.
// Another implementation verifies the tokens of users and service accounts.

/// Verifies the tokens of requests.
package protocol CredentialVerifier: Sendable {
  /// Returns the principal of a token. Called for every request: it must be quick and must not block.
  /// - Parameter token: the token, without the scheme `Bearer`.
  /// - Throws: ``InvalidCredential``.
  func principal(of token: Substring) throws(InvalidCredential) -> Principal
}

/// Why a token is not accepted.
package struct InvalidCredential: Error, Equatable {
  /// The kind of the failure.
  package enum Kind: Sendable, Equatable {
    /// The token cannot be read.
    case malformed
    /// The token has expired.
    case expired
    /// The token was revoked, or its user or service account was disabled or deleted.
    case revoked
    /// The token has another issuer, audience or key, or an invalid signature.
    case untrusted
  }

  /// The kind of the failure.
  package var kind: Kind
  /// The reason for the operator's log.
  package var reason: String

  /// Makes a failure.
  package init(_ kind: Kind, reason: String) {
    self.kind = kind
    self.reason = reason
  }

  /// Returns the token of a request; nil if it contains none. A request may contain the same token at several places.
  /// - Throws: ``InvalidCredential`` if the tokens differ. If the server chose one of them, a proxy could choose
  ///   another one and see a different caller.
  package static func singleToken<Token: StringProtocol>(
    _ tokens: [Token]
  ) throws(InvalidCredential) -> Token? {
    guard let first = tokens.first else { return nil }
    // Bytes are compared, because strings that are canonically equivalent are different tokens.
    for token in tokens where !token.utf8.elementsEqual(first.utf8) {
      throw InvalidCredential(.malformed, reason: "The request contains different credentials.")
    }
    return first
  }
}
