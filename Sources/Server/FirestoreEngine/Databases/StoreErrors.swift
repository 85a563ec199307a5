// What the store and the runtime throw, in the API's words.

import FirestoreModel
import OrderedStore

extension FirestoreError {
  /// The API's error for any error that an operation may end with.
  init(_ error: any Error) {
    switch error {
    case let error as FirestoreError: self = error
    case let error as StoreError: self.init(store: error)
    case is CancellationError: self.init(.cancelled, "The request was cancelled.")
    default: self.init(.internalError, "\(error)")
    }
  }

  private init(store error: StoreError) {
    switch error.code {
    case .conflict: self = LockTable.contention
    case .versionTooOld: self = .failedPrecondition("The requested snapshot version is too old.")
    case .versionInFuture: self = .invalidArgument("The requested 'read_time' cannot be in the future.")
    case .limitExceeded: self = .invalidArgument(error.message)
    case .unavailable, .locked: self = .unavailable(error.message)
    case .corrupted: self = FirestoreError(.dataLoss, error.message)
    }
  }
}

/// Runs an operation and gives its error in the API's words.
func reporting<Result>(
  _ body: () async throws -> Result
) async throws(FirestoreError) -> Result {
  do { return try await body() } catch { throw FirestoreError(error) }
}
