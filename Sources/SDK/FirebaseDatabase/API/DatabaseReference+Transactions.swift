// Runs transactions: a block runs on the current value, and again on a newer value until its result is stored.

import FirebaseCore
import Foundation
import RealtimeModel

extension DatabaseReference {
  /// Changes the value by a function of the current one, without losing anybody's change.
  ///
  /// - Parameter block: gets the value known so far, often nil at first, and may run several times; on
  ///   the SDK's own queue, never inside this call.
  public func runTransactionBlock(_ block: @escaping (MutableData) -> TransactionResult) {
    run(block, withLocalEvents: true) { _, _, _ in }
  }

  /// Changes the value by a function of the current one, without losing anybody's change.
  ///
  /// - Parameters:
  ///   - block: gets the value known so far, and may run several times.
  ///   - completionBlock: called on the callback queue with an error, whether the result was stored,
  ///     and the value. An aborted transaction has no error and was not stored.
  @preconcurrency
  public func runTransactionBlock(
    _ block: @escaping (MutableData) -> TransactionResult,
    andCompletionBlock completionBlock: @escaping @Sendable ((any Error)?, Bool, DataSnapshot?) -> Void
  ) {
    run(block, withLocalEvents: true, completionBlock)
  }

  /// Changes the value by a function of the current one, and waits until the transaction has ended.
  ///
  /// - Returns: whether the result was stored, and the value.
  /// - Throws: the server's rejection, or an error after 25 attempts.
  @discardableResult
  public func runTransactionBlock(
    _ block: @escaping (MutableData) -> TransactionResult
  ) async throws -> (Bool, DataSnapshot) {
    let outcome: (isCommitted: Bool, snapshot: DataSnapshot) = try await withCheckedThrowingContinuation {
      continuation in
      run(block, withLocalEvents: true) { error, isCommitted, snapshot in
        if let snapshot, error == nil {
          continuation.resume(returning: (isCommitted, snapshot))
        } else {
          continuation.resume(throwing: error ?? RealtimeError(.failure, "no data").asNSError())
        }
      }
    }
    return (outcome.isCommitted, outcome.snapshot)
  }

  /// Changes the value by a function of the current one.
  ///
  /// - Parameters:
  ///   - localEvents: whether observers see results that are not stored yet.
  public func runTransactionBlock(
    _ block: @escaping (MutableData) -> TransactionResult,
    andCompletionBlock completionBlock: (((any Error)?, Bool, DataSnapshot?) -> Void)?,
    withLocalEvents localEvents: Bool
  ) {
    // Called on the callback queue alone, which the app has chosen.
    nonisolated(unsafe) let completionBlock = completionBlock
    run(block, withLocalEvents: localEvents) { completionBlock?($0, $1, $2) }
  }

  private func run(
    _ block: @escaping (MutableData) -> TransactionResult, withLocalEvents isVisible: Bool,
    _ completion: @escaping @Sendable ((any Error)?, Bool, DataSnapshot?) -> Void
  ) {
    PathRules.checkWritable(path, method: "runTransactionBlock:")
    // Called on the core's serial queue alone.
    nonisolated(unsafe) let block = block
    let (path, key, id) = (path, key, DatabaseQuery.makeHandle())
    repository.enqueue { repository in
      repository.runTransaction(
        at: path, isVisible: isVisible, watcher: id,
        update: { node in
          block(MutableData(node: node, key: key)).node.map { .commit($0) } ?? .abort
        },
        completion: { outcome in
          let error = outcome.error?.asNSError()
          let snapshot = outcome.node.map {
            DataSnapshot(node: $0, path: path, ordering: .priority, repository: repository)
          }
          repository.deliver { completion(error, outcome.isCommitted, snapshot) }
        })
    }
  }
}
