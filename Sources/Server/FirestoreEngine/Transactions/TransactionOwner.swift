// The owner of a transaction. A token can be guessed from another one, so it is valid only for the caller
// that began the transaction.

import FirestoreModel

/// The stable part of a caller's identity. A refreshed ID token has other claims for the same user.
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
