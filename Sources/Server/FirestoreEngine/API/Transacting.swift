// Serves BeginTransaction and Rollback.

package import Access
package import FirestoreModel
import OrderedStore

extension FirestoreEngine {
  /// Begins a transaction and returns its token.
  ///
  /// The transaction ends by commit, rollback, or the timeouts of ``EngineLimits``.
  /// - Throws: INVALID_ARGUMENT for an invalid read time or retry token, RESOURCE_EXHAUSTED if too many are
  ///   open.
  package func beginTransaction(
    in name: DatabaseName, _ options: TransactionOptions, as caller: Principal
  ) async throws(FirestoreError) -> [UInt8] {
    try await convertingErrors {
      let database = try await self.database(name)
      return try await database.begin(options, as: caller)
    }
  }

  /// Ends a transaction without writing. Succeeds also if the transaction was rolled back already or its
  /// commit failed.
  /// - Throws: ABORTED if it has expired, INVALID_ARGUMENT if it has committed or was never issued to the caller,
  ///   PERMISSION_DENIED if the policy rejects it.
  package func rollback(
    in name: DatabaseName, transaction: [UInt8], as caller: Principal
  ) async throws(FirestoreError) {
    try await convertingErrors {
      let database = try await self.database(name)
      try await database.authoriseWithoutData(caller, .transaction)
      try database.transactions.rollBack(transaction, as: caller)
    }
  }

  /// Ends a transaction whose commit failed before it reached the engine, for example because the request was malformed.
  /// Releases the transaction's locks. Ignores tokens of other callers, ended transactions and invalid tokens.
  package func failTransaction(_ token: [UInt8], in name: DatabaseName, as caller: Principal) {
    // A database that is not open has no transactions.
    openDatabase(name)?.transactions.fail(token, as: caller)
  }
}
