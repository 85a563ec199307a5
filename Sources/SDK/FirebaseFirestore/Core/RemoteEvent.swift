// A remote event: one consistent snapshot of the server, accumulated from watch messages.

import FirestoreModel

/// The changes of one target in a snapshot.
struct TargetChange: Equatable, Sendable {
  var resumeToken: [UInt8] = []
  /// Whether the server has sent everything of the target up to the snapshot.
  var isCurrent = false
  var added: Set<DocumentName> = []
  var modified: Set<DocumentName> = []
  var removed: Set<DocumentName> = []
}

/// A snapshot of the server: the changes of targets and documents up to a version.
struct RemoteEvent: Equatable, Sendable {
  var version: ModelTimestamp
  var targetChanges: [TargetID: TargetChange] = [:]
  /// The targets whose contents are known to be wrong. They are requested again.
  var targetMismatches: [TargetID: TargetPurpose] = [:]
  var documents: [DocumentName: CachedDocument] = [:]
  /// The documents whose state a limbo resolution found. No query contains them.
  var resolvedLimbo: Set<DocumentName> = []
}
