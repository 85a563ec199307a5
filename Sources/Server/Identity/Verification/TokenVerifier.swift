// Verifies the tokens of requests in production: ID tokens of users, access tokens, tokens that service accounts sign
// themselves, and tokens of other issuers that the operator configured.
//
// The verifier finds the key by the `kid` of the token's header: among the server's keys, the keys of service accounts,
// and the keys of the configured issuer that the token names. The accepted algorithm is RS256; keys of other issuers
// may also use ES256. Headers that link or contain a key are rejected, and verification fetches nothing.
//
// Invariant: a result of the cache is checked again for expiry and revocation at every use.

package import Access
import JSON

/// Verifies the tokens of requests.
package final class TokenVerifier: CredentialVerifier {
  /// Seconds by which the clock of the issuer of a token may be ahead.
  static let clockSkewSeconds: Int64 = 60
  /// Maximum seconds of validity of a token that a service account signs, as in the hosted product.
  static let maximumSelfSignedSeconds: Int64 = 3600
  /// The type of access tokens (RFC 9068), which distinguishes them from ID tokens.
  package static let accessTokenType = "at+jwt"
  /// The issuer of access tokens.
  package static let accessTokenIssuer = "hearth"

  /// The audiences that Google's libraries give to tokens that they sign for an API. The audience of custom tokens is
  /// not among them: a custom token is meant for a user.
  private static let audiences: Set<String> = [
    "https://firestore.googleapis.com/", "https://firestore.googleapis.com/google.firestore.v1.Firestore",
    "https://identitytoolkit.googleapis.com/", "https://firebasedatabase.googleapis.com/",
    "https://firebaserules.googleapis.com/",
  ]

  private let keys: SigningKeys
  private let accounts: ServiceAccounts
  private let revocations: RevocationList
  private let issuers: TrustedIssuers
  private let clock: IdentityClock
  private let cache = VerifiedTokenCache()

  /// Creates a verifier.
  package init(
    keys: SigningKeys, accounts: ServiceAccounts, revocations: RevocationList,
    issuers: TrustedIssuers = TrustedIssuers([]), clock: IdentityClock = IdentityClock()
  ) {
    self.keys = keys
    self.accounts = accounts
    self.revocations = revocations
    self.issuers = issuers
    self.clock = clock
    accounts.observe { [cache] in cache.removeAll() }
    issuers.observeKeys { [cache] in cache.removeAll() }
  }

  package func principal(of token: Substring) throws(InvalidCredential) -> Principal {
    try verifyAny(String(token)).principal
  }

  /// Whether the credentials of a principal were revoked after they were verified.
  package func isRevoked(_ principal: Principal) -> Bool {
    switch principal.identity {
    case .user(let user) where !user.isOverride:
      return revocations.isRevoked(
        project: principal.project ?? "", tenant: user.tenant ?? "", localID: user.id,
        issuedAt: user.claims.json["iat"]?.int ?? 0)
    // A service account may act as a user or as nobody.
    case .service, .user, .nobody: return accounts.isRevoked(email: principal.issuer, keyID: principal.keyID)
    }
  }

  /// Verifies a token of this server or of its service accounts. Tokens of other issuers are not credentials for accounts.
  package func verify(_ text: String) throws(InvalidCredential) -> VerifiedToken {
    let token = try verifyAny(text)
    guard !token.isForeign else {
      throw InvalidCredential(.untrusted, reason: "The token is of another issuer.")
    }
    return token
  }

  private func verifyAny(_ text: String) throws(InvalidCredential) -> VerifiedToken {
    let now = clock.milliseconds / 1000
    // Swift compares strings by canonical equivalence. So a token in which a K is replaced by U+212A (Kelvin sign)
    // would match the cached token.
    guard Self.isASCII(text) else {
      throw InvalidCredential(.malformed, reason: "The token is not a JSON Web Token.")
    }
    if let token = cache[text] {
      try check(token, at: now)
      return token
    }
    let clearCount = cache.clearCount
    let token = try verifyUncached(text, at: now)
    try check(token, at: now)
    cache.insert(token, for: text, clearCount)
    return token
  }

  /// Whether all bytes are ASCII. The bytes are combined without a branch, which takes a tenth of the time of a search.
  private static func isASCII(_ text: String) -> Bool {
    let combined = text.utf8.withContiguousStorageIfAvailable { $0.reduce(0, |) }
    return (combined ?? text.utf8.reduce(0, |)) < 0x80
  }

  /// Checks a verified token for expiry and revocation.
  private func check(_ token: VerifiedToken, at now: Int64) throws(InvalidCredential) {
    guard now < token.expiry else { throw InvalidCredential(.expired, reason: "The token has expired.") }
    guard case .user(let user) = token.principal.identity else { return }
    let isRevoked = revocations.isRevoked(
      project: token.principal.project ?? "", tenant: user.tenant ?? "", localID: user.id,
      issuedAt: token.issuedAt)
    if isRevoked { throw InvalidCredential(.revoked, reason: "The token was revoked.") }
  }

  private func verifyUncached(_ text: String, at now: Int64) throws(InvalidCredential) -> VerifiedToken {
    guard let token = JSONWebToken(text) else {
      throw InvalidCredential(.malformed, reason: "The token is not a JSON Web Token.")
    }
    let issuer = issuers.index(of: token)
    let keyID = try Self.verifiedKeyID(token.header, isForeign: issuer != nil)
    if let key = keys.publicKey(keyID) {
      guard IssuerKey.rsa(key).verifies(token) else { throw Self.invalidSignature }
      if token.header["typ"]?.string == Self.accessTokenType { return try accessToken(token, at: now) }
      return try idToken(token, at: now)
    }
    guard let signer = accounts.signer(keyID) else {
      if let issuer { return try issuers.verify(token, keyID: keyID, of: issuer, at: now) }
      throw InvalidCredential(.untrusted, reason: "The token's key is unknown.")
    }
    guard IssuerKey.rsa(signer.key.publicKey).verifies(token) else {
      throw Self.invalidSignature
    }
    return try selfSignedToken(token, signer, at: now)
  }

  private static let invalidSignature = InvalidCredential(
    .untrusted, reason: "The token's signature is invalid.")

  /// The key ID in a header. The header must name an accepted algorithm and must not contain or link another
  /// key.
  /// - Parameter isForeign: whether the token names another issuer. Its header may have a thumbprint of a certificate, which
  ///   is ignored, because some issuers always add one.
  static func verifiedKeyID(_ header: JSONObject, isForeign: Bool = false) throws(InvalidCredential) -> String
  {
    let algorithms = isForeign ? IssuerKey.algorithms : ["RS256"]
    guard let algorithm = header["alg"]?.string, algorithms.contains(algorithm) else {
      throw InvalidCredential(
        .untrusted, reason: "The token's algorithm is not \(algorithms.joined(separator: " or ")).")
    }
    let thumbprints = isForeign ? [] : ["x5t", "x5t#S256"]
    for name in ["jku", "jwk", "x5u", "x5c", "crit", "b64", "zip", "enc"] + thumbprints
    where header[name] != nil {
      throw InvalidCredential(.untrusted, reason: "The token's header contains \(name).")
    }
    guard let keyID = header["kid"]?.string, !keyID.isEmpty else {
      throw InvalidCredential(.untrusted, reason: "The token names no key.")
    }
    return keyID
  }

  /// Verifies the times of a token, and returns its time of issue and its expiry.
  static func verifiedTimes(
    _ claims: JSONObject, at now: Int64, maximumSeconds: Int64? = nil
  ) throws(InvalidCredential) -> (issuedAt: Int64, expiry: Int64) {
    guard let issuedAt = claims["iat"]?.int, let expiry = claims["exp"]?.int, issuedAt > 0, expiry > issuedAt,
      issuedAt <= now + clockSkewSeconds
    else { throw InvalidCredential(.untrusted, reason: "The token's times are invalid.") }
    if let maximumSeconds, expiry - issuedAt > maximumSeconds {
      throw InvalidCredential(.untrusted, reason: "The token is valid for too long.")
    }
    guard now < expiry else { throw InvalidCredential(.expired, reason: "The token has expired.") }
    return (issuedAt, expiry)
  }

  private func idToken(_ token: JSONWebToken, at now: Int64) throws(InvalidCredential) -> VerifiedToken {
    let claims = token.claims
    guard let project = claims["aud"]?.string, !project.isEmpty,
      claims["iss"]?.string == IDTokenClaims.issuer(of: project)
    else { throw InvalidCredential(.untrusted, reason: "The token's issuer or audience is invalid.") }
    let (issuedAt, expiry) = try Self.verifiedTimes(claims, at: now)
    guard let subject = claims["sub"]?.string, !subject.isEmpty, subject.utf8.count <= 512,
      claims["firebase"]?.object != nil, let signedInAt = claims["auth_time"]?.int,
      signedInAt <= now + Self.clockSkewSeconds
    else { throw InvalidCredential(.untrusted, reason: "The token is not an ID token.") }
    return VerifiedToken(
      principal: Principal(
        .user(User(claims)), project: project, issuer: claims["iss"]?.string, expiry: expiry),
      claims: claims, issuedAt: issuedAt, expiry: expiry)
  }

  private func accessToken(_ token: JSONWebToken, at now: Int64) throws(InvalidCredential) -> VerifiedToken {
    let claims = token.claims
    let (issuedAt, expiry) = try Self.verifiedTimes(claims, at: now)
    guard claims["iss"]?.string == Self.accessTokenIssuer, let keyID = claims["key"]?.string,
      let email = claims["sub"]?.string
    else { throw InvalidCredential(.untrusted, reason: "The token is not an access token.") }
    guard let signer = accounts.signer(keyID), signer.account.email == email else {
      throw InvalidCredential(.revoked, reason: "The service account's key was revoked.")
    }
    return verified(signer, claims, issuedAt, expiry)
  }

  private func selfSignedToken(
    _ token: JSONWebToken, _ signer: ServiceAccounts.Signer, at now: Int64
  ) throws(InvalidCredential) -> VerifiedToken {
    let claims = token.claims
    guard claims["iss"]?.string == signer.account.email, claims["sub"]?.string == signer.account.email else {
      throw InvalidCredential(.untrusted, reason: "The token's issuer is not the key's service account.")
    }
    let (issuedAt, expiry) = try Self.verifiedTimes(
      claims, at: now, maximumSeconds: Self.maximumSelfSignedSeconds)
    // A token has the API as its audience, or it has scopes. Custom tokens and assertions have another audience.
    if let audience = claims["aud"] {
      guard let text = audience.string, Self.audiences.contains(text), claims["uid"] == nil else {
        throw InvalidCredential(.untrusted, reason: "The token's audience is invalid.")
      }
    } else {
      guard let scope = claims["scope"]?.string, Self.hasScope(scope) else {
        throw InvalidCredential(.untrusted, reason: "The token has neither an audience nor a known scope.")
      }
    }
    return verified(signer, claims, issuedAt, expiry)
  }

  /// Whether a list of OAuth scopes contains one that grants access to this server.
  static func hasScope(_ scopes: String) -> Bool {
    let accepted = ["cloud-platform", "datastore", "firebase", "firebase.database", "identitytoolkit"]
    return scopes.split(separator: " ").contains { scope in
      accepted.contains { scope == "https://www.googleapis.com/auth/" + $0 }
    }
  }

  private func verified(
    _ signer: ServiceAccounts.Signer, _ claims: JSONObject, _ issuedAt: Int64, _ expiry: Int64
  ) -> VerifiedToken {
    let account = signer.account
    return VerifiedToken(
      principal: Principal(
        .service(account.role), project: account.project, issuer: account.email, keyID: signer.key.id,
        expiry: expiry),
      claims: claims, issuedAt: issuedAt, expiry: expiry)
  }
}
