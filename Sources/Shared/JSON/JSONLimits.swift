// How much of somebody else's JSON the reader is willing to look at.

/// Bounds that a ``JSONReader`` holds a text to.
public struct JSONLimits: Sendable, Equatable {
  /// The most levels of arrays and objects inside each other.
  public var depth: Int
  /// The most bytes of the whole text.
  public var bytes: Int

  /// Creates limits: `depth` levels (at most 512, since the reader recurses), `bytes` in all.
  public init(depth: Int = 128, bytes: Int = 256 * 1024 * 1024) {
    self.depth = min(max(depth, 0), 512)
    self.bytes = max(bytes, 0)
  }

  /// 128 levels, 256 MiB: above every limit of the databases, whose own limits give better messages.
  public static let standard = JSONLimits()
}
