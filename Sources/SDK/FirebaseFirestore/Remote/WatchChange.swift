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

  /// A document changed; nil for a document that only left targets.
  case document(DocumentName, CachedDocument?, updated: [TargetID], removed: [TargetID])
  case target(TargetUpdate)
  /// How many documents match a target, and a filter that knows their names.
  case filter(TargetID, count: Int, names: BloomFilter?)

  var snapshotVersion: ModelTimestamp? {
    if case .target(let update) = self { return update.snapshotVersion }
    return nil
  }
}
