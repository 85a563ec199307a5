// Verifies ID tokens of OpenID Connect providers that the operator configured.
//
// The keys of a provider are fetched from its configured URL, never from a URL that a token names. A fetch has a time
// and a size limit. A token with an unknown key causes at most one fetch a minute.
//
// Invariant: a token is accepted only from a configured issuer, for a configured audience, and within its period of
// validity.

import Crypto
import Identity
package import JSON
import Locking

/// The OpenID Connect providers of a production server.
package final class OpenIDProviders: ProviderVerifier {
  /// The configuration of a provider.
  package struct Provider: Sendable, Equatable {
    /// The value of the tokens' claim `iss`.
    package var issuer: String
    /// The allowed values of the tokens' claim `aud`: the client IDs of the apps.
    package var audiences: [String]
    /// The URL of the provider's keys: a JSON Web Key Set, or an object of certificates.
    package var keysURL: String

    /// Creates a configuration.
    package init(issuer: String, audiences: [String], keysURL: String) {
      self.issuer = issuer
      self.audiences = audiences
      self.keysURL = keysURL
    }
  }

  private struct Keys {
    var byID: [String: IssuerKey] = [:]
    /// Seconds since the Unix epoch.
    var fetchedAt: Int64 = 0
    /// Seconds since the Unix epoch of the last attempt.
    var attemptedAt: Int64 = 0
  }

  /// Seconds after which keys are fetched again.
  private static let refreshSeconds: Int64 = 6 * 3600
  private static let retrySeconds: Int64 = 60
  private static let timeoutSeconds: Int64 = 10
  private static let clockSkewSeconds: Int64 = 60

  private let providers: [String: Provider]
  private let outbound: OutboundHTTP
  private let keys = Guarded<[String: Keys]>([:])

  /// Creates the providers by their IDs, such as `google.com` or `oidc.example`.
  package init(_ providers: [String: Provider], outbound: OutboundHTTP) {
    self.providers = providers
    self.outbound = outbound
  }

  package func claims(
    provider id: String, idToken: String?, accessToken: String?, nonce: String?, project: String, now: Int64
  ) async throws -> JSONObject {
    guard let provider = providers[id] else {
      throw IdentityError.rejected(
        "OPERATION_NOT_ALLOWED", "The identity provider configuration is not found.")
    }
    guard let idToken else {
      throw IdentityError.notImplemented(
        "Sign-in with an access token only is not implemented. Send an id_token.")
    }
    func invalid(_ detail: String) -> IdentityError { .rejected("INVALID_IDP_RESPONSE", detail) }
    guard let token = JSONWebToken(idToken) else { throw invalid("The id_token is not a JSON Web Token.") }
    guard let algorithm = token.header["alg"]?.string, IssuerKey.algorithms.contains(algorithm),
      token.header["crit"] == nil, let keyID = token.header["kid"]?.string
    else { throw invalid("The id_token must be signed with RS256 or ES256 and name its key.") }
    let seconds = now / 1000
    guard let key = await key(keyID, provider, at: seconds) else {
      throw invalid("The key of the id_token is unknown.")
    }
    guard key.verifies(token) else {
      throw invalid("The signature of the id_token is invalid.")
    }
    let claims = token.claims
    guard claims["iss"]?.string == provider.issuer else { throw invalid("The issuer is not the provider's.") }
    let audiences = claims["aud"]?.array?.compactMap(\.string) ?? [claims["aud"]?.string].compactMap(\.self)
    // OpenID Connect Core 1.0, section 3.1.3.7: a token for several audiences names the client that requested it.
    let client = audiences.count == 1 ? audiences[0] : claims["azp"]?.string
    guard let client, audiences.contains(client), provider.audiences.contains(client) else {
      throw invalid("The audience is not a client ID of this project.")
    }
    guard let issuedAt = claims["iat"]?.int, let expiry = claims["exp"]?.int, seconds < expiry,
      issuedAt <= seconds + Self.clockSkewSeconds
    else { throw invalid("The id_token has expired.") }
    if let expected = claims["nonce"]?.string {
      // The client sends the raw nonce; the provider received its hash.
      guard let nonce, expected == Self.hash(nonce) || expected == nonce else {
        throw IdentityError.rejected("MISSING_OR_INVALID_NONCE", "The nonce does not match.")
      }
    }
    return claims
  }

  private static func hash(_ nonce: String) -> String {
    SHA256.hash(data: Array(nonce.utf8)).map { byte in
      let digits = String(byte, radix: 16)
      return digits.count == 1 ? "0" + digits : digits
    }.joined()
  }

  private func key(_ id: String, _ provider: Provider, at now: Int64) async -> IssuerKey? {
    let (cachedKey, mustFetch) = keys.withLock { keys -> (IssuerKey?, Bool) in
      var entry = keys[provider.keysURL] ?? Keys()
      let cachedKey = entry.byID[id]
      let isStale = now - entry.fetchedAt > Self.refreshSeconds
      let mustFetch = (cachedKey == nil || isStale) && now - entry.attemptedAt >= Self.retrySeconds
      if mustFetch { entry.attemptedAt = now }
      keys[provider.keysURL] = entry
      return (cachedKey, mustFetch)
    }
    guard mustFetch else { return cachedKey }
    guard let response = try? await outbound.get(provider.keysURL, seconds: Self.timeoutSeconds),
      response.status == 200, let fetched = PublishedKeys.parse(response.body)
    else { return cachedKey }
    return keys.withLock { keys in
      keys[provider.keysURL] = Keys(byID: fetched, fetchedAt: now, attemptedAt: now)
      return fetched[id]
    }
  }
}
