// The compound hash: hashes of consecutive ranges of a value's leaves, so that only ranges that differ are sent again.

/// A peer's compound hash: where its ranges end and what they hash to.
public struct CompoundHash: Sendable, Equatable {
  /// The path of the last leaf of each range, in ascending order.
  public var paths: [Path]
  /// The hash of each range, and of the open one behind the last path.
  public var hashes: [String]

  /// Makes a compound hash.
  ///
  /// - Throws: ``RealtimeError`` with status `failure` unless there is one more hash than paths.
  public init(paths: [Path], hashes: [String]) throws(RealtimeError) {
    guard hashes.count == paths.count + 1 else {
      throw RealtimeError(.failure, "Invalid compound hash: \(paths.count) paths need \(paths.count + 1) hashes")
    }
    self.paths = paths
    self.hashes = hashes
  }
}

extension Node {
  /// What differs between this value and a peer's, by its compound hash; nil if sending the whole value is cheaper.
  public func rangeMerges(against hash: CompoundHash) -> [RangeMerge]? { nil }
}
