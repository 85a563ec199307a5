// The limits of the JSON reader.

/// The limits of a JSON text that a ``JSONReader`` accepts.
public struct JSONLimits: Sendable, Equatable {
  /// The maximum nesting depth of arrays and objects.
  public var depth: Int
  /// The maximum bytes of the text.
  public var bytes: Int

  /// Creates limits.
  ///
  /// - Parameters:
  ///   - depth: the maximum nesting depth, at most 512, since the reader recurses.
  ///   - bytes: the maximum bytes of the text.
  public init(depth: Int = 128, bytes: Int = 256 * 1024 * 1024) {
    self.depth = min(max(depth, 0), 512)
    self.bytes = max(bytes, 0)
  }

  /// 128 levels and 256 MiB: above the limits of the databases, which report better messages.
  public static let standard = JSONLimits()
}
