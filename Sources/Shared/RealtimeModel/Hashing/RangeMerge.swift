// Replacing a part of a value: the interval between two paths, as the answer to a compound hash.

/// One interval of a value and what it holds now.
public struct RangeMerge: Sendable, Equatable {
  /// The path after which the interval starts; nil for the value's start. The path's own leaf is outside, its
  /// descendants are inside.
  public var start: Path?
  /// The path at which the interval ends; nil for the value's end. The path's own leaf is inside, its descendants are
  /// outside.
  public var end: Path?
  /// Everything the value holds inside the interval, and nothing else; but for the leaf at the start, if it has a
  /// priority, which lies inside.
  public var updates: Node

  /// Makes a range merge.
  public init(start: Path?, end: Path?, updates: Node) {
    self.start = start
    self.end = end
    self.updates = updates
  }
}
