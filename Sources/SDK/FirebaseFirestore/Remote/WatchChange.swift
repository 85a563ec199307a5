// The watch changes: messages of the watch stream, converted to the client's types.

import FirestoreModel

/// One message of the watch stream.
enum WatchChange: Equatable, Sendable {
  struct TargetUpdate: Equatable, Sendable {
    enum Kind: Equatable, Sendable { case noChange, add, remove, current, reset }

    var kind: Kind
    /// The affected targets. If it is empty, the message affects every target.
    var targets: [TargetID]
    var resumeToken: [UInt8] = []
    /// The reason why the server removed the targets.
    var cause: FirestoreError?
    /// The version of a consistent snapshot, if the message ends one.
    var snapshotVersion: ModelTimestamp?
  }

  /// A changed document and the targets that it entered or left. The document is nil if it only left targets.
  case document(DocumentName, CachedDocument?, updated: [TargetID], removed: [TargetID])
  case target(TargetUpdate)
  /// The number of documents that match a target, and a bloom filter of their names.
  case filter(TargetID, count: Int, names: BloomFilter?)

  var snapshotVersion: ModelTimestamp? {
    if case .target(let update) = self { return update.snapshotVersion }
    return nil
  }
}
