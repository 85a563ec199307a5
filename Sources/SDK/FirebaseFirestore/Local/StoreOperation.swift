// The store operations of the local store, and their failures.
//
// A cache in memory never fails. A disk may be full, unreadable or damaged. The operation then changes
// nothing, and the sync engine retries it or reports the error.

import FirestoreModel

/// One group of changes or reads of the local store. Errors and the public test cases contain the raw value.
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

/// The reason why an operation of the local store failed. It changed nothing.
struct PersistenceFailure: Error, Equatable {
  enum Kind: Sendable {
    /// The disk is full or unreadable, or the file is closed. The operation may succeed later.
    case unavailable
    /// The cache was damaged and has been replaced by an empty one.
    case damage
    /// The write cannot be stored, because it refers to a name that no document can have.
    case invalidWrite
  }

  let operation: StoreOperation
  let reason: String
  var kind = Kind.unavailable

  var isDamage: Bool { kind == .damage }

  /// The error that the app receives.
  var error: FirestoreError {
    let text = "The cache failed (\(operation.rawValue)): \(reason)"
    switch kind {
    case .unavailable: return .unavailable(text)
    case .damage: return FirestoreError(.dataLoss, text)
    case .invalidWrite: return .invalidArgument(reason)
    }
  }
}
