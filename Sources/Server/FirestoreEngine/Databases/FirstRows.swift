// Writes the rows that every database has: the key of its tokens, its index state and its rules. The first commit
// contains them, so that a database exists from its first commit on and not from its first request.
//
// Invariant: a database with documents has the key of its tokens. A database without the key keeps its index state and
// its rules in memory only.

import FirestoreModel
import Locking
import OrderedStore

extension FirestoreEngine {
  /// Creates a database, unless a commit has created it.
  func create(_ database: FirestoreDatabase) async throws {
    if database.isWritten { return }
    _ = try await database.rows.execute(validating: nil) { view in
      try self.writeFirstRows(of: database, to: view)
    }
  }

  /// A database whose rules the caller inspects. If rules were released for it in this process, it is created, so that
  /// their ruleset is stored.
  func databaseWithRules(_ name: DatabaseName) async throws -> FirestoreDatabase {
    let database = try await database(name)
    if state.withLock({ $0.rules.rules(of: name) != nil }) { try await create(database) }
    return database
  }

  /// Writes the first rows, unless they are stored.
  func writeFirstRows(of database: FirestoreDatabase, to view: any SequencedTransaction) throws {
    guard try !TokenSigner.isStored(view) else { return }
    try database.signer.store(in: view)
    try database.indexes.store(in: view)
    try storeReleasedRules(of: database.name, id: StoredRuleset.makeID(), in: view)
    database.markWritten()
  }
}
