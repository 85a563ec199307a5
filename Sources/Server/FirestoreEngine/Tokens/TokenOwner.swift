// The owner of a token: the caller that received it. A page token or a transaction token is valid for its owner only.

import Access
import FirestoreModel

/// The stable part of a caller's identity. Claims are left out, since a refreshed ID token of the same user may have
/// different claims.
struct TokenOwner: Sendable, Equatable {
  /// The identity as bytes, which differ for different owners.
  let bytes: [UInt8]

  init(_ caller: Principal, in database: DatabaseName) {
    switch caller.acting(in: database.project).identity {
    case .nobody: bytes = [0]
    case .service: bytes = [1]
    case .user(let user):
      let tenant = Array((user.tenant ?? "").utf8)
      bytes = [user.tenant == nil ? 2 : 3] + TokenSigner.framed(tenant) + Array(user.id.utf8)
    }
  }
}
