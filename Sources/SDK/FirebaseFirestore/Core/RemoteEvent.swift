// A remote event: one consistent snapshot of the server, accumulated from watch messages.

import FirestoreModel

/// The changes of one target in a snapshot.
struct TargetChange: Equatable, Sendable {
  var resumeToken: [UInt8] = []
  /// Whether the target has everything up to the snapshot.
  var isCurrent = false
  var added: Set<DocumentName> = []
  var modified: Set<DocumentName> = []
  var removed: Set<DocumentName> = []
}

/// A snapshot: what changed about targets and documents up to a version.
struct RemoteEvent: Equatable, Sendable {
  var version: ModelTimestamp
  var targetChanges: [TargetID: TargetChange] = [:]
  /// Targets whose contents are known to be wrong and are requested again.
  var targetMismatches: [TargetID: TargetPurpose] = [:]
  var documents: [DocumentName: CachedDocument] = [:]
  /// Documents whose state is known now though no query shows them.
  var resolvedLimbo: Set<DocumentName> = []
}
