// Database secrets: the credential of administrators in older versions of Firebase. An operator may configure some.
//
// A secret is a bearer credential without an expiry. So it is accepted only if it is configured, and only in one project.
// An application may also give its users tokens that it has signed with a secret (see `SecretSignedToken`).
//
// Invariant: the time of a comparison does not depend on the secrets, because digests are compared.

package import Access
import Crypto

/// Verifies configured database secrets and the tokens that they signed, and leaves other credentials to another verifier.
package struct DatabaseSecrets: CredentialVerifier {
  /// The minimum length of a secret in bytes of UTF-8. Firebase's secrets have 40 characters.
  package static let minimumBytes = 32

  private let digests: Set<[UInt8]>
  private let keys: [SymmetricKey]
  private let project: String
  private let now: @Sendable () -> Int64
  private let others: any CredentialVerifier

  /// Makes a verifier.
  ///
  /// - Parameters:
  ///   - secrets: the secrets, each of at least ``minimumBytes``.
  ///   - project: the project in which the secrets give the rights of an administrator, and to which users of signed
  ///     tokens belong.
  ///   - now: the current time in milliseconds since 1970.
  ///   - others: verifies all other credentials.
  package init(
    _ secrets: [String], project: String,
    now: @escaping @Sendable () -> Int64 = RealtimeEndpoint.systemTime, others: any CredentialVerifier
  ) {
    digests = Set(secrets.map { Self.digest($0[...]) })
    keys = secrets.map { SymmetricKey(data: Array($0.utf8)) }
    self.project = project
    self.now = now
    self.others = others
  }

  /// Returns the principal of a token.
  /// - Throws: ``InvalidCredential``.
  package func principal(of token: Substring) throws(InvalidCredential) -> Principal {
    if digests.contains(Self.digest(token)) { return Principal(.service(.administrator), project: project) }
    guard let signed = SecretSignedToken(token) else { return try others.principal(of: token) }
    return try signed.principal(signedByOneOf: keys, project: project, at: now() / 1000)
  }

  private static func digest(_ text: Substring) -> [UInt8] { Array(SHA256.hash(data: Array(text.utf8))) }
}
