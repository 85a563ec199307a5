// A range merge replaces the part of a value between two paths. The server sends it in response to a compound hash.

/// Replaces one interval of a value by new contents.
public struct RangeMerge: Sendable, Equatable {
  /// The path after which the interval starts; nil for the start of the value. A leaf at this path is outside of the
  /// interval. Descendants of the path are inside.
  public var start: Path?
  /// The path at which the interval ends; nil for the end of the value. A leaf at this path is inside the interval.
  /// Descendants of the path are outside.
  public var end: Path?
  /// The contents of the interval. If a leaf at ``start`` has a priority, the contents include the leaf, because its
  /// priority is inside the interval.
  public var updates: Node

  /// Makes a range merge.
  public init(start: Path?, end: Path?, updates: Node) {
    self.start = start
    self.end = end
    self.updates = updates
  }
}
