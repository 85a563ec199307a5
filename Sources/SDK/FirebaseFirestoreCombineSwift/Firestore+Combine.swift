// Runs transactions and commits batches with futures.

public import FirebaseFirestore
import Foundation
import PublisherSupport

#if canImport(Combine)
  public import Combine
#else
  public import OpenCombine
#endif

extension Firestore {
  /// Runs a transaction, which starts with the call. After a conflict the block runs again, up to five times
  /// in total.
  ///
  /// - Parameter updateBlock: reads first, and then writes. If it throws an error that is not a conflict, the
  ///   transaction ends.
  /// - Returns: a future of the block's last result. It fails with the block's error or the server's.
  public func runTransaction<T>(
    _ updateBlock: @escaping (Transaction) throws -> T
  ) -> Future<T, any Error> {
    .starting { completion in
      let last = LastResult<T>()
      runTransaction(
        { transaction, error in
          let result = Result { try updateBlock(transaction) }
          last.value = result
          if case .failure(let thrown) = result { error?.pointee = thrown as NSError }
          return nil
        },
        completion: { _, error in
          switch (last.value, error) {
          case (.success(let value)?, nil): completion.succeed(value)
          // Returns the error of the block instead of its conversion to an NSError.
          case (.failure(let thrown)?, let error?) where (thrown as NSError) == (error as NSError):
            completion.fail(thrown)
          case (_, let error): completion.fail(error ?? FirestoreErrorCode(.unknown))
          }
        })
    }
  }
}

/// The result of a transaction's last attempt. Attempts and the completion run one after another, never
/// concurrently.
private final class LastResult<T> {
  var value: Result<T, any Error>?
}

extension WriteBatch {
  /// Commits the batch, which starts with the call. Stops the program if the batch was committed before.
  ///
  /// - Returns: a future that completes when the server has accepted or rejected the batch, not while offline.
  @discardableResult
  public func commit() -> Future<Void, any Error> {
    .starting { completion in commit { completion.complete($0) } }
  }
}
