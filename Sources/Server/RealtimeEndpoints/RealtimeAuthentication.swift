// Authenticates callers of the Realtime Database by their credential.
//
// A `CredentialVerifier` turns the credential into a principal. With `--emulator` it accepts the claims of every
// credential without verification.
//
// Invariant: a claim is trusted only if the verifier has accepted its credential.

package import Access
import JSON
import RealtimeModel

/// How a port of the Realtime Database authenticates callers.
package struct RealtimeAuthentication: Sendable {
  /// Verifies credentials; nil to reject every caller.
  private let verifier: (any CredentialVerifier)?
  /// Whether an invalid credential is reported before other errors of the request, and before its body is read. The
  /// emulator reports other errors first.
  private let rejectsEarly: Bool

  private init(_ verifier: (any CredentialVerifier)?, rejectsEarly: Bool = false) {
    self.verifier = verifier
    self.rejectsEarly = rejectsEarly
  }

  /// Trusts every credential: see `EmulatorTokens`. A caller without one is nobody.
  package static let emulator = RealtimeAuthentication(EmulatorTokens())

  /// Rejects every caller.
  package static let rejectAll = RealtimeAuthentication(nil)

  /// Accepts the credentials that a verifier accepts. A caller without one is nobody.
  package static func verifying(_ verifier: any CredentialVerifier) -> RealtimeAuthentication {
    RealtimeAuthentication(verifier, rejectsEarly: true)
  }

  /// Whether `rejection(of:)` may return an error.
  var mayReject: Bool { verifier == nil || rejectsEarly }

  /// Returns the error for a request with a given credential if this port rejects such requests independent
  /// of their contents; nil otherwise.
  func rejection(of credential: String?) -> RealtimeError? {
    guard verifier != nil else { return credential == nil ? .permissionDenied : Self.invalidToken }
    guard rejectsEarly, credential != nil else { return nil }
    do throws(RealtimeError) { _ = try caller(credential: credential) } catch { return error }
    return nil
  }

  static let invalidToken = RealtimeError(.invalidToken, "Could not parse auth token.")

  /// Returns the caller that a credential identifies. With `override`, an administrator acts as another user.
  ///
  /// - Throws: ``RealtimeError`` with the status `invalid_token` or `expired_token`.
  func caller(credential: String?, override: Override? = nil) throws(RealtimeError) -> Principal {
    guard let credential else { return .nobody }
    guard let verifier else { throw Self.invalidToken }
    let caller: Principal
    do { caller = try verifier.principal(of: credential[...]) } catch {
      switch error.kind {
      case .malformed, .untrusted: throw Self.invalidToken
      // The client gets a new credential after this error.
      case .expired, .revoked: throw .expiredToken
      }
    }
    if caller.hasExpiredClaims(at: RealtimeEndpoint.systemTime() / 1000) { throw .expiredToken }
    guard caller.role != nil, let override else { return caller }
    // A service account that may only read would get further rights by acting as a user. So only administrators may do
    // that.
    guard caller.isAdministrator else { throw .permissionDenied }
    switch override {
    case .nobody:
      return Principal(
        .nobody, project: caller.project, issuer: caller.issuer, keyID: caller.keyID, expiry: caller.expiry)
    case .user(let claims):
      let user = User(id: claims["uid"]?.string ?? "", claims: Claims(claims), isOverride: true)
      return Principal(
        .user(user), project: caller.project, issuer: caller.issuer, keyID: caller.keyID,
        expiry: caller.expiry)
    }
  }

  /// The user that an administrator acts as.
  enum Override: Sendable {
    case nobody
    /// The value of `auth` in rules.
    case user(JSONObject)

    /// Returns nil unless the value is null or an object.
    init?(_ variable: JSONValue) {
      switch variable {
      case .null: self = .nobody
      case .object(let claims): self = .user(claims)
      default: return nil
      }
    }
  }
}

extension Principal {
  /// Whether the claims of an unverified token have expired. False for tokens whose time of issue is 0 or absent,
  /// such as those of test libraries.
  ///
  /// - Parameter time: the current time in seconds since 1970.
  fileprivate func hasExpiredClaims(at time: Int64) -> Bool {
    guard expiry == nil, let claims = user?.claims.json, let expiry = claims["exp"]?.int,
      let issued = claims["iat"]?.int, issued > 0
    else { return false }
    return expiry <= time
  }

  /// The expiry in the claims of the token, in seconds since 1970; 0 for none. The emulator reports it to clients without
  /// enforcing it.
  var claimedExpiry: Int64 {
    if let expiry { return expiry }
    if case .int(let time)? = user?.claims.json["exp"] { return time }
    return 0
  }
}
