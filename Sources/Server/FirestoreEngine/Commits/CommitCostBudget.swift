// Bounds the cost of one commit: the bytes that it reads, encodes and writes in the sequencer, where all
// other writes of the database wait.
//
// Invariant: all work that can exceed the request's size is charged here. Work that can exceed one document's
// size is charged before it is done. Therefore a small request cannot block the sequencer for long or use
// much memory, for any stored data.

import FirestoreModel
import OrderedStore

/// The remaining cost budget of one commit.
struct CommitCostBudget {
  private let limit: Int
  private let writtenLimit: Int
  /// The cost so far, in bytes.
  private(set) var cost = 0
  /// Bytes of the rows that the commit writes and clears so far.
  private(set) var written = 0

  /// - Parameter written: maximum bytes of all rows of the commit.
  init(limit: Int, written: Int = StoreLimits.maximumCommitBytes) {
    self.limit = limit
    writtenLimit = written
  }

  /// Charges bytes of documents that are read or encoded, and of index entries held in memory.
  /// - Throws: INVALID_ARGUMENT beyond the limit.
  mutating func charge(bytes: Int) throws(FirestoreError) {
    try check(spending: bytes)
    cost += bytes
  }

  private func check(spending bytes: Int) throws(FirestoreError) {
    guard cost + bytes > limit else { return }
    throw .invalidArgument(
      "The commit processes more than \(limit) bytes of documents and their index entries, with "
        + "\(CommitCostBudget.elementBytes) for each field or element that a write copies or compares. Split it into "
        + "several commits.")
  }

  /// Charges bytes of keys and values that the commit writes or clears. The store has the same limit, but
  /// checks it only when all rows are in memory.
  /// - Throws: INVALID_ARGUMENT beyond the limit.
  mutating func write(bytes: Int) throws(FirestoreError) {
    try check(writing: bytes)
    written += bytes
  }

  private func check(writing bytes: Int) throws(FirestoreError) {
    guard written + bytes > writtenLimit else { return }
    throw .invalidArgument(
      "The commit writes and removes more than \(writtenLimit) bytes of documents and index entries. Split it into "
        + "several commits.")
  }

  /// The budget for building one document's index entries.
  struct EntryBudget {
    fileprivate let budget: CommitCostBudget
    fileprivate let replaced: Int?

    /// - Throws: INVALID_ARGUMENT if the commit may not build or write so many bytes.
    func check(_ bytes: Int) throws(FirestoreError) {
      try budget.check(spending: bytes)
      // If the new entries are larger than the replaced ones, at least the difference has to be written.
      if let replaced { try budget.check(writing: bytes - replaced) }
    }
  }

  /// The budget for a document's index entries.
  /// - Parameter replaced: bytes of the document's entries before the commit; nil if the entries to be built are
  ///   those from before the commit.
  func entryBudget(replacing replaced: Int?) -> EntryBudget { EntryBudget(budget: self, replaced: replaced) }

  /// Charges fields and elements that a write copies or compares.
  /// - Throws: INVALID_ARGUMENT beyond the limit.
  mutating func charge(elements: Int) throws(FirestoreError) {
    try charge(bytes: elements * CommitCostBudget.elementBytes)
  }

  /// The cost of one field or element, in bytes.
  static let elementBytes = 16
}
