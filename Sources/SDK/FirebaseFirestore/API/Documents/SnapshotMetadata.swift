// The metadata of a snapshot: whether it has pending writes, and whether it comes from the cache.

public import Foundation

/// Whether a snapshot contains unacknowledged writes, and whether the server has confirmed it.
open class SnapshotMetadata: NSObject, @unchecked Sendable {
  // SAFETY: constants of Sendable types only.
  /// Whether the snapshot contains local writes that the server has not acknowledged.
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
