// The issuers, other than this server, whose tokens identify users of the databases: Google's, or any OpenID Connect issuer
// that the operator configured.
//
// The keys are in memory. A loader fetches them in the background from configured addresses; verification never waits
// for them. A token with an unknown key is rejected, and the loader then fetches the keys again.
//
// Invariant: a token is accepted only from a configured issuer, with a key of this issuer and for a configured
// audience. It identifies a user, never a service account.

import Access
import JSON
import Locking

/// The issuers whose tokens the databases accept, with their keys.
package final class TrustedIssuers: Sendable {
  /// The configuration of an issuer.
  package struct Issuer: Sendable, Equatable {
    /// The value of the tokens' claim `iss`.
    package var issuer: String
    /// The names of this server in the tokens' claim `aud`. A token must name one of them, and may also name others.
    package var audiences: [String]
    /// The project whose users the tokens identify.
    package var project: String
    /// The URL of the issuer's keys: a JSON Web Key Set, or an object of certificates.
    package var keysURL: String

    /// Creates a configuration.
    package init(issuer: String, audiences: [String], project: String, keysURL: String) {
      self.issuer = issuer
      self.audiences = audiences
      self.project = project
      self.keysURL = keysURL
    }
  }

  private struct State {
    /// The keys of each issuer by their IDs.
    var keys: [[String: IssuerKey]]
    /// Whether a token named an unknown key since the last fetch.
    var isRequested: [Bool]
    var keyObservers: [@Sendable () -> Void] = []
    var requestObservers: [@Sendable () -> Void] = []
  }

  /// Maximum seconds for which a token of another issuer may be valid. Revocations are stored for this time.
  package static let maximumForeignSeconds: Int64 = 86_400
  /// The prefix of issuers in principals, because a configured issuer may have the same name as this server.
  private static let principalPrefix = "issuers/"
  /// Types of tokens that are credentials (RFC 7519, RFC 9068).
  private static let types: Set<String> = ["jwt", "at+jwt", "application/at+jwt"]

  /// The configured issuers.
  package let issuers: [Issuer]
  private let state: Guarded<State>

  /// Creates the list of issuers. They have no keys yet.
  package init(_ issuers: [Issuer]) {
    self.issuers = issuers
    state = Guarded(
      State(
        keys: Array(repeating: [:], count: issuers.count),
        isRequested: Array(repeating: false, count: issuers.count)))
  }

  /// The seconds for which an accepted token can be valid.
  package var maximumTokenSeconds: Int64 {
    issuers.isEmpty ? IDTokenClaims.lifetimeSeconds : Self.maximumForeignSeconds
  }

  /// Replaces the keys of an issuer.
  package func setKeys(_ keys: [String: IssuerKey], of index: Int) {
    let observers = state.withLock { state -> [@Sendable () -> Void] in
      let isRevocation = state.keys[index].contains { id, key in keys[id]?.der != key.der }
      state.keys[index] = keys
      return isRevocation ? state.keyObservers : []
    }
    for observer in observers { observer() }
  }

  /// Whether a token named an unknown key of an issuer since the last call.
  package func takeRequest(of index: Int) -> Bool {
    state.withLock { state in
      defer { state.isRequested[index] = false }
      return state.isRequested[index]
    }
  }

  /// Registers an observer that is notified when keys are removed or replaced. It must be quick and must not block.
  func observeKeys(_ observer: @escaping @Sendable () -> Void) {
    state.withLock { $0.keyObservers.append(observer) }
  }

  /// Registers an observer that is notified of tokens with unknown keys. It must be quick and must not block.
  package func observeRequests(_ observer: @escaping @Sendable () -> Void) {
    state.withLock { $0.requestObservers.append(observer) }
  }

  /// The index of a token's issuer; nil if it is not configured.
  func index(of token: JSONWebToken) -> Int? {
    guard !issuers.isEmpty, let name = token.claims["iss"]?.string else { return nil }
    return issuers.firstIndex { Self.isSame($0.issuer, name) }
  }

  /// Verifies a token of an issuer.
  /// - Parameter now: seconds since the Unix epoch.
  func verify(
    _ token: JSONWebToken, keyID: String, of index: Int, at now: Int64
  ) throws(InvalidCredential) -> VerifiedToken {
    guard let key = key(keyID, of: index) else {
      throw InvalidCredential(.untrusted, reason: "The token's key is unknown.")
    }
    guard key.verifies(token) else {
      throw InvalidCredential(.untrusted, reason: "The token's signature is invalid.")
    }
    let (issuer, claims) = (issuers[index], token.claims)
    if let type = token.header["typ"] {
      guard let name = type.string?.lowercased(), Self.types.contains(name) else {
        throw InvalidCredential(.untrusted, reason: "The token's type is not a credential.")
      }
    }
    let audiences = claims["aud"]?.array ?? [claims["aud"] ?? .null]
    let names = audiences.compactMap(\.string)
    guard names.count == audiences.count,
      names.contains(where: { name in issuer.audiences.contains { Self.isSame($0, name) } })
    else { throw InvalidCredential(.untrusted, reason: "The token's audience is invalid.") }
    let (issuedAt, expiry) = try TokenVerifier.verifiedTimes(
      claims, at: now, maximumSeconds: Self.maximumForeignSeconds)
    if let notBefore = claims["nbf"] {
      guard let time = notBefore.int, time <= now + TokenVerifier.clockSkewSeconds else {
        throw InvalidCredential(.untrusted, reason: "The token is not valid yet.")
      }
    }
    guard let subject = claims["sub"]?.string, !subject.isEmpty, subject.utf8.count <= 512 else {
      throw InvalidCredential(.untrusted, reason: "The token has no subject.")
    }
    return VerifiedToken(
      principal: Principal(
        .user(User(claims)), project: issuer.project, issuer: Self.principalPrefix + issuer.issuer,
        expiry: expiry),
      claims: claims, issuedAt: issuedAt, expiry: expiry, isForeign: true)
  }

  /// The key with an ID. For an unknown key the result is nil, and a fetch is requested.
  private func key(_ id: String, of index: Int) -> IssuerKey? {
    let (key, observers) = state.withLock { state -> (IssuerKey?, [@Sendable () -> Void]) in
      if let key = state.keys[index][id] { return (key, []) }
      let isFirst = !state.isRequested[index]
      state.isRequested[index] = true
      return (nil, isFirst ? state.requestObservers : [])
    }
    for observer in observers { observer() }
    return key
  }

  /// Compares bytes: Swift compares strings by canonical equivalence.
  private static func isSame(_ a: String, _ b: String) -> Bool { a.utf8.elementsEqual(b.utf8) }
}
