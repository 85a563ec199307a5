// The pending creation of a database that is not in the catalogue yet. Its first commit adds the catalogue entry and
// the first rows, so that a database without a commit takes no space on disk.
//
// Invariant: the entry is in the batch of the first commit, and no earlier batch contains rows of the database.

import Locking

/// The creation of one database.
final class DatabaseCreation: Sendable {
  typealias FirstRows = @Sendable (any SequencedTransaction) throws -> Void

  private let firstRows = Guarded<FirstRows?>(nil)
  private let registerDatabase: @Sendable () -> Void
  private let addEntry: @Sendable (any EngineBatch) -> Void

  /// - Parameters:
  ///   - registerDatabase: registers the database as existing. Called once, before the commit is submitted.
  ///   - addEntry: adds the catalogue entry to a batch. Called under the lock of the pipeline.
  init(
    registerDatabase: @escaping @Sendable () -> Void,
    addEntry: @escaping @Sendable (any EngineBatch) -> Void
  ) {
    self.registerDatabase = registerDatabase
    self.addEntry = addEntry
  }

  /// Sets the rows that are written with the first commit.
  func setFirstRows(_ write: @escaping FirstRows) { firstRows.withLock { $0 = write } }

  /// Writes the first rows.
  func writeFirstRows(to state: SequencedState) throws { try firstRows.withLock { $0 }?(state) }

  /// Registers the database as existing.
  func register() { registerDatabase() }

  /// Adds the catalogue entry to the batch of the first commit.
  func add(to batch: any EngineBatch) { addEntry(batch) }
}
