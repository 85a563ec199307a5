// The compound hash of a value: the hashes of consecutive ranges of its leaves. A client sends it with a listen, so
// that the server sends only the ranges that differ.

/// The compound hash of a peer's value: the ends of its ranges and their hashes.
public struct CompoundHash: Sendable, Equatable {
  /// The path of the last leaf of each range, in ascending order.
  public var paths: [Path]
  /// The hash of each range that ends at one of `paths`, then the hash of the leaves after the last path (empty if
  /// there are none).
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

  /// Computes the compound hash of a value with the ranges of Firebase's clients. The hashed text of a range grows with
  /// each leaf. The range ends once the text is longer than 512 bytes and longer than ten times the square root of the
  /// value's size.
  public init(of node: Node) {
    let threshold = max(512, Int((100 * Double(node.estimatedSize)).squareRoot()))
    self.init(of: node) { bytes, path in bytes > threshold && !path.isPriority }
  }

  /// Computes the compound hash of a value.
  ///
  /// - Parameter endsRange: whether a range ends, given the length of its text so far and the path of the last leaf
  ///   added.
  init(of node: Node, endsRange: (Int, Path) -> Bool) {
    var rangeText = RangeText()
    var paths: [Path] = []
    var hashes: [String] = []
    node.walkRanges(&rangeText) { rangeText in
      guard endsRange(rangeText.count, rangeText.lastLeaf) else { return true }
      paths.append(rangeText.lastLeaf)
      hashes.append(rangeText.endRange())
      return true
    }
    if rangeText.isOpen {
      paths.append(rangeText.lastLeaf)
      hashes.append(rangeText.endRange())
    }
    self.paths = paths
    self.hashes = hashes + [""]
  }
}
