// How much of stored documents one commit goes over in the sequencer, where every other write of the database waits,
// and how much it is to write.
//
// Invariant: what a commit costs beyond its own request is counted here, and before it is done where it could be more
// than one document's worth. So a small request cannot hold the sequencer for long, nor much memory, whatever lies in
// the store and however many index entries its documents have.

import FirestoreModel
import OrderedStore

/// What a commit may still go over and write.
struct CommitWork {
  private let limit: Int
  private let writtenLimit: Int
  /// What it has gone over, in bytes.
  private(set) var spent = 0
  /// Bytes of the rows that it is to write and clear.
  private(set) var written = 0

  /// - Parameter written: what the rows of a commit may have in all.
  init(limit: Int, written: Int = StoreLimits.maximumCommitBytes) {
    self.limit = limit
    writtenLimit = written
  }

  /// Counts bytes of documents that are read or encoded, and of index entries that are kept in memory.
  /// - Throws: INVALID_ARGUMENT beyond the limit.
  mutating func spend(bytes: Int) throws(FirestoreError) {
    try check(spending: bytes)
    spent += bytes
  }

  private func check(spending bytes: Int) throws(FirestoreError) {
    guard spent + bytes > limit else { return }
    throw .invalidArgument(
      "The writes of the commit go over more than \(limit) bytes of documents and their index entries, with "
        + "\(CommitWork.elementBytes) for each field or element that a write goes over again. Split it into several "
        + "commits.")
  }

  /// Counts bytes of keys and values that the commit is to write or clear. The store counts them again when it gets
  /// them, which is when all of them are in memory.
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

  /// How many bytes of index entries may be built of one document.
  struct EntryRoom {
    fileprivate let work: CommitWork
    fileprivate let replaced: Int?

    /// - Throws: INVALID_ARGUMENT if so many are more than the commit may go over or write.
    func check(_ bytes: Int) throws(FirestoreError) {
      try work.check(spending: bytes)
      // What was not there before has to be written.
      if let replaced { try work.check(writing: bytes - replaced) }
    }
  }

  /// The room for a document's index entries.
  /// - Parameter replaced: bytes of the entries that it had before the commit; nil if it is those that are built.
  func room(replacing replaced: Int?) -> EntryRoom { EntryRoom(work: self, replaced: replaced) }

  /// Counts fields and elements of documents that a write copies or compares.
  /// - Throws: INVALID_ARGUMENT beyond the limit.
  mutating func spend(elements: Int) throws(FirestoreError) {
    try spend(bytes: elements * CommitWork.elementBytes)
  }

  /// What going over a field or an element counts as.
  static let elementBytes = 16
}
