// The metadata of a snapshot: its source.

public import Foundation

/// Whether a snapshot holds unconfirmed writes, and whether it is confirmed by the server.
open class SnapshotMetadata: NSObject, @unchecked Sendable {
  // SAFETY: constants of Sendable types only.
  /// Whether there are local writes that the server has not confirmed.
  public let hasPendingWrites: Bool
  /// Whether the data may be older than the server's.
  public let isFromCache: Bool

  init(hasPendingWrites: Bool, isFromCache: Bool) {
    self.hasPendingWrites = hasPendingWrites
    self.isFromCache = isFromCache
  }

  /// Whether both flags are equal.
  open override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? SnapshotMetadata else { return false }
    return hasPendingWrites == other.hasPendingWrites && isFromCache == other.isFromCache
  }

  /// Hashes both flags.
  open override var hash: Int { (hasPendingWrites ? 2 : 0) + (isFromCache ? 1 : 0) }
}
