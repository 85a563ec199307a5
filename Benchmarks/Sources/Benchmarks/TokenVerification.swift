// Verification of users' tokens, in this process on one thread: tokens that the server has verified before, and the
// signature alone, which every verification would need without a cache.

import Access
import Foundation
import Identity
import JSON
import OrderedStore

/// The number of different tokens, each of another user.
private let tokenCount = 1000

/// Nanoseconds of processor time for the verification of a token that was verified before.
func warmVerification(_ setting: Setting) async throws -> Double {
  let identity = try await SignedTokens.make()
  for token in identity.tokens { _ = try identity.verifier.principal(of: token[...]) }
  var next = 0
  let rate = try perSecond(setting) {
    next = next + 1 == tokenCount ? 0 : next + 1
    return try identity.verifier.principal(of: identity.tokens[next][...]).user == nil ? 0 : 1
  }
  return 1e9 / rate
}

/// Nanoseconds of processor time for the check of a token's RSA signature.
func signatureVerification(_ setting: Setting) async throws -> Double {
  let identity = try await SignedTokens.make()
  let parsed = identity.tokens.compactMap { JSONWebToken($0) }
  let key = identity.key
  var next = 0
  let rate = try perSecond(setting) {
    next = next + 1 == parsed.count ? 0 : next + 1
    return key.verifies(parsed[next].signature, of: parsed[next].signedBytes) ? 1 : 0
  }
  return 1e9 / rate
}

/// Tokens of users, and the verifier of the server that signed them.
private struct SignedTokens {
  var tokens: [String]
  var verifier: TokenVerifier
  var key: RSAKey

  static func make() async throws -> SignedTokens {
    let store = IdentityStore(try MemoryStore(StoreOptions()))
    let keys = try await SigningKeys.open(store)
    let verifier = TokenVerifier(
      keys: keys, accounts: try await ServiceAccounts.open(store),
      revocations: try await RevocationList.open(store))
    let now = Int64(Date().timeIntervalSince1970)
    let tokens = try (0..<tokenCount).map { number in
      var account = Account(localID: RandomText.identifier(28), tenantID: nil, createdAt: now * 1000)
      account.email = "user-\(number)@example.com"
      account.displayName = "User \(number)"
      let session = RefreshToken(
        localID: account.localID, tenantID: nil, provider: "password", signedInAt: now, issuedAt: now)
      return try keys.current.encode(
        IDTokenClaims.make(for: account, session, project: "bench", now: now))
    }
    return SignedTokens(tokens: tokens, verifier: verifier, key: keys.current.publicKey)
  }
}
