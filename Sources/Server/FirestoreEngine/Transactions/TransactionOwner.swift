// Who holds a transaction. A token can be guessed from another, so it is good only for whoever began the transaction.

import FirestoreModel

/// The caller that began a transaction, as far as it stays the same from call to call: a refreshed token brings other
/// claims for the same user.
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
