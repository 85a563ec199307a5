// Checks the stored account to decide whether the credentials of a user were revoked. `RevocationList` keeps recent
// revocations only. This check also covers credentials that expired long ago.

package import Access
import JSON

extension IdentityStore {
  /// Whether the account of a user is deleted or disabled, or its tokens were revoked after the caller's token was
  /// issued.
  /// - Parameter principal: the caller; the result is false for callers who are not users of this server.
  package func isRevoked(_ principal: Principal) async throws -> Bool {
    guard let user = principal.user, !user.isOverride, let project = principal.project,
      principal.issuer == IDTokenClaims.issuer(of: project)
    else { return false }
    guard try await projectExists(project) else { return true }
    let issuedAt = user.claims.json["iat"]?.int ?? 0
    return try await self.project(project).read { reader in
      guard let account = try reader.account(user.id, in: user.tenant), !account.isDisabled else {
        return true
      }
      return issuedAt < account.validSince ?? 0
    }
  }
}
