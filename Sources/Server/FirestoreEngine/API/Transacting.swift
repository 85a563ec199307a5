// BeginTransaction and Rollback.

public import FirestoreModel
import OrderedStore

extension FirestoreEngine {
  /// Begins a transaction and returns its token.
  ///
  /// It ends by commit or rollback, and by itself after the times that ``EngineLimits`` gives it.
  /// - Throws: INVALID_ARGUMENT for a bad read time or token to retry, RESOURCE_EXHAUSTED if too many are open.
  public func beginTransaction(
    in name: DatabaseName, _ options: TransactionOptions, as caller: Caller
  ) async throws(FirestoreError) -> [UInt8] {
    try await reporting {
      let database = try await self.database(name)
      return try await database.begin(options, as: caller)
    }
  }

  /// Ends a transaction without writing; also one that was rolled back, or whose commit failed.
  /// - Throws: ABORTED for one that has committed or expired, INVALID_ARGUMENT for one that was never issued to
  ///   the caller, PERMISSION_DENIED if the policy says so.
  public func rollback(
    in name: DatabaseName, transaction: [UInt8], as caller: Caller
  ) async throws(FirestoreError) {
    try await reporting {
      let database = try await self.database(name)
      try await database.authoriseTransaction(as: caller)
      try database.transactions.rollBack(transaction, as: caller)
    }
  }
}
