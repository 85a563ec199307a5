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

  /// Ends a transaction whose commit has failed before the engine could be asked, such as one that cannot be read, and
  /// gives back its locks; what the engine refuses itself has ended already. Tokens of others, of transactions that have
  /// ended, and of no transaction are passed over.
  public func failTransaction(_ token: [UInt8], in name: DatabaseName, as caller: Caller) {
    // A database that is not open has no transactions.
    openDatabase(name)?.transactions.fail(token, as: caller)
  }
}
