// How much of stored documents one commit goes over in the sequencer, where every other write of the database waits.
//
// Invariant: what a commit costs beyond its own request is counted here, and before it is done where it could be more than
// one document's worth. So a small request cannot hold the sequencer for long, whatever lies in the store.

import FirestoreModel

/// What a commit may still go over.
struct CommitWork {
  private let limit: Int
  /// What it has gone over, in bytes.
  private(set) var spent = 0

  init(limit: Int) { self.limit = limit }

  /// Counts bytes of documents that are read or encoded.
  /// - Throws: INVALID_ARGUMENT beyond the limit.
  mutating func spend(bytes: Int) throws(FirestoreError) {
    spent += bytes
    guard spent > limit else { return }
    throw .invalidArgument(
      "The writes of the commit go over more than \(limit) bytes of documents, with \(CommitWork.elementBytes) for each "
        + "field or element that a write goes over again. Split it into several commits.")
  }

  /// Counts fields and elements of documents that a write copies or compares.
  /// - Throws: INVALID_ARGUMENT beyond the limit.
  mutating func spend(elements: Int) throws(FirestoreError) {
    try spend(bytes: elements * CommitWork.elementBytes)
  }

  /// What going over a field or an element counts as.
  static let elementBytes = 16
}
