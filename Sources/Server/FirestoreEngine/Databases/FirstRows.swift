// Writes the rows that every database has: the key that signs its tokens, its index state and its rules. The first commit
// contains them, so that a database exists from its first commit on and not from its first request.
//
// The store has a weak reference to this object, not to the database or the engine. Swift's reference counting is slower
// for an object that ever had a weak reference, and every request retains the database and the engine several times.
//
// Invariant: a database with documents has the token key. A database without the key keeps its index state and its rules
// in memory only.

import FirestoreModel
import Locking
import OrderedStore

/// The first rows of one database.
final class FirstRows: Sendable {
  private let name: DatabaseName
  private let signer: TokenSigner
  private let indexes: IndexMaintainer
  private let rules: Guarded<RulesDirectory>
  private let clock: any EngineClock
  private let written: Guarded<Bool>

  /// - Parameters:
  ///   - rules: the changes of rules in this process.
  ///   - areWritten: whether the database exists.
  init(
    of name: DatabaseName, _ signer: TokenSigner, _ indexes: IndexMaintainer,
    _ rules: Guarded<RulesDirectory>, _ clock: any EngineClock, areWritten: Bool
  ) {
    self.name = name
    self.signer = signer
    self.indexes = indexes
    self.rules = rules
    self.clock = clock
    written = Guarded(areWritten)
  }

  /// Whether the database exists, or a commit has tried to create it.
  var areWritten: Bool { written.withLock { $0 } }

  /// Writes the rows, unless they are stored.
  func write(to view: any SequencedTransaction) throws {
    guard try !TokenSigner.isStored(view) else { return }
    try signer.store(in: view)
    try indexes.store(in: view)
    if let change = rules.withLock({ $0.lastChange(of: name) }), change.rules != nil {
      try change.write(id: StoredRuleset.makeID(), at: clock.wallTime(), to: view)
    }
    written.withLock { $0 = true }
  }
}

extension FirestoreEngine {
  /// Creates a database, unless a commit has created it.
  func create(_ database: FirestoreDatabase) async throws {
    if database.isWritten { return }
    _ = try await database.rows.execute(validating: nil) { try database.firstRows.write(to: $0) }
  }

  /// Returns a database whose rules the caller will read. If rules were released for it in this process, creates the
  /// database, so that their ruleset is stored.
  func databaseWithRules(_ name: DatabaseName) async throws -> FirestoreDatabase {
    let database = try await database(name)
    if rules.withLock({ $0.lastChange(of: name)?.rules != nil }) { try await create(database) }
    return database
  }
}
