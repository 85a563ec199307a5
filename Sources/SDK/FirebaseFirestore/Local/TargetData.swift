// Target data: the stored state of a target, with its number and its resume token.

import FirestoreModel

/// The purpose of a target.
enum TargetPurpose: Hashable, Sendable {
  /// A listener requested the target.
  case listen
  /// The target is requested again, because an existence filter did not match and contained no bloom filter.
  case existenceFilterMismatch
  /// The target is requested again, because an existence filter did not match and its bloom filter had false
  /// positives.
  case existenceFilterMismatchBloom
  /// The target resolves the state of one document in limbo.
  case limboResolution

  /// The label that the client sends to the server.
  var label: String? {
    switch self {
    case .listen: nil
    case .existenceFilterMismatch: "existence-filter-mismatch"
    case .existenceFilterMismatchBloom: "existence-filter-mismatch-bloom"
    case .limboResolution: "limbo-document"
    }
  }
}

/// One target and its progress.
struct TargetData: Hashable, Sendable {
  let target: Target
  let id: TargetID
  var purpose: TargetPurpose = .listen
  /// The sequence number of the last use. The least recently used targets are removed first.
  var sequence: Int = 0
  /// The version of `resumeToken`.
  var snapshotVersion: ModelTimestamp = .epoch
  /// The newest version at which the server knew every matching document of the view.
  var lastLimboFreeVersion: ModelTimestamp = .epoch
  var resumeToken: [UInt8] = []
  /// The number of cached documents of the target when it was last sent, for the server's existence filter.
  var expectedCount: Int?

  func resuming(with token: [UInt8], at version: ModelTimestamp) -> TargetData {
    var copy = self
    copy.resumeToken = token
    copy.snapshotVersion = version
    copy.expectedCount = nil
    return copy
  }
}
