// The owner of a transaction: the caller that began it. A client could derive other transactions' tokens from
// its own. Therefore a token is valid only for the owner.

import FirestoreModel

/// The stable part of a caller's identity. Other claims are left out, since a refreshed ID token of the same
/// user may have different ones.
enum TransactionOwner: Sendable, Equatable {
  case administrator
  case user(id: [UInt8])
  case anonymous

  init(_ caller: Caller) {
    switch caller.identity {
    case .administrator: self = .administrator
    case .user(let id, _): self = .user(id: Array(id.utf8))
    case .anonymous: self = .anonymous
    }
  }
}
