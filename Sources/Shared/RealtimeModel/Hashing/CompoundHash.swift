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
      throw RealtimeError(
        .failure, "Invalid compound hash: \(paths.count) paths need \(paths.count + 1) hashes")
    }
    self.paths = paths
    self.hashes = hashes
  }

  /// The compound hash of a value, cut into ranges by the rule of the product's clients: a range ends with the first
  /// leaf after which its text is longer than 512 bytes and than ten times the square root of the value's size.
  public init(of node: Node) {
    let threshold = max(512, Int((100 * Double(node.estimatedSize)).squareRoot()))
    self.init(of: node) { bytes, path in bytes > threshold && !path.isPriority }
  }

  /// The compound hash of a value, cut where `endsRange` says so, given the length of the range's text so far and the
  /// path of the leaf just added.
  init(of node: Node, endsRange: (Int, Path) -> Bool) {
    var walk = RangeText()
    var paths: [Path] = []
    var hashes: [String] = []
    node.walkRanges(&walk) { walk in
      guard endsRange(walk.count, walk.lastLeaf) else { return true }
      paths.append(walk.lastLeaf)
      hashes.append(walk.endRange())
      return true
    }
    if walk.isOpen {
      paths.append(walk.lastLeaf)
      hashes.append(walk.endRange())
    }
    self.paths = paths
    self.hashes = hashes + [""]
  }
}
