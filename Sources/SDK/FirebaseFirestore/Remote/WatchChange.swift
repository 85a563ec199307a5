// The messages of the watch stream, in the client's terms.

import FirestoreModel

/// One message of the watch stream.
enum WatchChange: Equatable, Sendable {
  struct TargetUpdate: Equatable, Sendable {
    enum Kind: Equatable, Sendable { case noChange, add, remove, current, reset }

    var kind: Kind
    /// Empty means every target.
    var targets: [TargetID]
    var resumeToken: [UInt8] = []
    /// Why the server dropped the targets.
    var cause: FirestoreError?
    /// Set on a message that ends a consistent snapshot.
    var snapshotVersion: ModelTimestamp?
  }

  /// A changed document and the targets it entered or left; the document is nil if it only left targets.
  case document(DocumentName, CachedDocument?, updated: [TargetID], removed: [TargetID])
  case target(TargetUpdate)
  /// The number of documents that match a target, and a bloom filter of their names.
  case filter(TargetID, count: Int, names: BloomFilter?)

  var snapshotVersion: ModelTimestamp? {
    if case .target(let update) = self { return update.snapshotVersion }
    return nil
  }
}
