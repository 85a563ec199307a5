// The operations of the local store, and the failure of one.
//
// Memory never fails. A disk may be full, unreadable or damaged: the operation then changes nothing, and the sync
// engine retries it or passes the error on.

import FirestoreModel

/// One group of changes or reads of the local store. The raw value names it in errors and in the public test cases.
enum StoreOperation: String, Sendable {
  case allocateTarget = "Allocate target"
  case releaseTarget = "Release target"
  case executeQuery = "Execute query"
  case readDocument = "Read document"
  case writeLocally = "Locally write mutations"
  case nextBatch = "Get next mutation batch"
  case acknowledge = "Acknowledge batch"
  case reject = "Reject batch"
  case changeUser = "Handle user change"
  case applyRemoteEvent = "Apply remote event"
  case readRemoteVersion = "Get last remote snapshot version"
  case noteViews = "notifyLocalViewChanges"
  case useBundle = "Use bundle"
  case configureIndexes = "Configure indexes"
  case collectGarbage = "Collect garbage"
  case repair = "Move the cache to a new file"
}

/// Why an operation of the local store changed nothing.
struct PersistenceFailure: Error, Equatable {
  enum Kind: Sendable {
    /// The disk is full, unreadable or closed; the operation may succeed later.
    case unavailable
    /// The cache was damaged and has been replaced by an empty one.
    case damage
    /// A write cannot be stored: it holds a reference to a name that no document can have.
    case invalidWrite
  }

  let operation: StoreOperation
  let reason: String
  var kind = Kind.unavailable

  var isDamage: Bool { kind == .damage }

  /// The failure as an app receives it.
  var error: FirestoreError {
    let text = "The cache failed (\(operation.rawValue)): \(reason)"
    switch kind {
    case .unavailable: return .unavailable(text)
    case .damage: return FirestoreError(.dataLoss, text)
    case .invalidWrite: return .invalidArgument(reason)
    }
  }
}
