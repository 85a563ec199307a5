// The two modes of the Identity endpoints. An emulator trusts its callers; a production server verifies everything.

/// The mode of the Identity endpoints, which determines whom they trust.
package enum IdentityMode: Sendable {
  /// Tokens are unsigned, `Bearer owner` identifies an administrator, any API key is accepted, and projects and tenants are
  /// created on first use.
  case emulator
  /// Tokens are signed and verified, and administrators need credentials of a service account.
  case production
}
