// Converts the store's errors and versions to those of the API.

import FirestoreModel
import OrderedStore

extension FirestoreError {
  /// Converts any error of an operation to the API's error.
  init(_ error: any Error) {
    switch error {
    case let error as FirestoreError: self = error
    case let error as StoreError: self.init(store: error)
    case let error as ResultMemoryExhausted: self = error.error
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
    case .unavailable, .locked, .clockAhead: self = .unavailable(error.message)
    case .corrupted: self = FirestoreError(.dataLoss, error.message)
    }
  }
}

/// Runs an operation and converts its error to an API error.
func convertingErrors<Result>(
  _ body: () async throws -> Result
) async throws(FirestoreError) -> Result {
  do { return try await body() } catch { throw FirestoreError(error) }
}

extension Version {
  /// The version as the API's time.
  var timestamp: Timestamp { Timestamp(microseconds: Int64(clamping: microseconds)) }

  /// The version at an API time, truncated to microseconds; version zero for times before 1970.
  init(_ time: Timestamp) { self.init(microseconds: UInt64(clamping: time.microseconds)) }
}
