// Tokens that expire, as test credentials, and a test policy of the Realtime Database that decides by a closure.

import Access
import Locking
import RealtimeModel

/// Verifies tokens of the form `UID` or `UID.EXPIRY`, with the expiry in seconds since 1970. The token `owner` means an
/// administrator.
struct ExpiringTokens: CredentialVerifier {
  /// The clock in milliseconds since 1970.
  let now: @Sendable () -> Int64

  func principal(of token: Substring) throws(InvalidCredential) -> Principal {
    if token == "owner" { return .administrator }
    let parts = token.split(separator: ".")
    guard let id = parts.first, parts.count <= 2 else { throw InvalidCredential(.malformed, reason: "test") }
    let expiry = parts.count == 2 ? Int64(parts[1]) : nil
    let principal = Principal(.user(User(id: String(id), claims: .none)), expiry: expiry)
    if principal.hasExpired(at: now() * 1_000) { throw InvalidCredential(.expired, reason: "test") }
    return principal
  }
}

/// A policy for the Realtime Database that decides by a closure.
struct TestTreePolicy: AccessPolicy {
  typealias Product = RealtimeAccess

  let isAllowed: @Sendable (Principal, RealtimeAccess.Operation, any TreeView) throws -> Bool

  init(_ isAllowed: @escaping @Sendable (Principal, RealtimeAccess.Operation, any TreeView) throws -> Bool) {
    self.isAllowed = isAllowed
  }

  func decide(
    _ principal: Principal, _ operation: RealtimeAccess.Operation, view: any TreeView
  ) throws -> RealtimeDecision {
    try isAllowed(principal, operation, view) ? .allowed : .deny(reason: "test")
  }
}
