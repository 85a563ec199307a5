// The limits of the Realtime Database's data model. Clients enforce them before sending, servers on all input.

public import JSON

/// The limits of paths, keys and values, which a server may raise. The defaults are the product's.
public struct RealtimeLimits: Sendable, Equatable {
  /// The maximum levels of a stored value below the root.
  public var depth = 32
  /// The maximum bytes of UTF-8 in one key.
  public var keyBytes = 768
  /// The maximum bytes of UTF-8 in one string value.
  public var stringBytes = 10 * 1024 * 1024
  /// The maximum estimated JSON bytes of one write over the WebSocket protocol.
  public var socketWriteBytes = 16 * 1024 * 1024
  /// The maximum estimated JSON bytes of one write over REST.
  public var restWriteBytes = 256 * 1024 * 1024
  /// The maximum estimated JSON bytes of one response to a read.
  public var responseBytes = 256 * 1024 * 1024
  /// The maximum seconds of one read over REST.
  public var readSeconds = 15 * 60
  /// The maximum listens of one connection.
  public var listensPerConnection = 10_000
  /// The maximum orderings of one location in listens with limits at a time; order by key does not count.
  public var ordersPerLocation = 1_000
  /// The maximum onDisconnect values of one connection.
  public var onDisconnectsPerConnection = 10_000
  /// The maximum bytes that writing the onDisconnect values of one connection may take: the rows of their leaves, each
  /// with its path, and the rows of the log. It is half the maximum commit of the store, so that the write always fits.
  public var onDisconnectBytes = 32 * 1024 * 1024
  /// The maximum bytes of output queued for one connection.
  public var queuedOutputBytes = 64 * 1024 * 1024

  /// Creates the product's limits.
  public init() {}

  /// The product's limits.
  public static let standard = RealtimeLimits()

  /// The maximum bytes of all keys on the path to a value, plus one for each: the room in the key of a row. The
  /// product's depth and key limits imply it.
  public static let pathBytes = 32 * (768 + 1)

  /// Whether a path of `keys` keys may be longer than ``pathBytes``, which requires raised limits.
  @inlinable
  public func mayExceedPathBytes(_ keys: Int) -> Bool { keys * (keyBytes + 1) > Self.pathBytes }

  /// The limits of the JSON reader: at least as large as the data that these limits permit.
  public var json: JSONLimits {
    let standard = JSONLimits.standard
    return JSONLimits(
      depth: standard.depth, bytes: max(standard.bytes, restWriteBytes, 2 * socketWriteBytes))
  }

  /// The length to which the successor arithmetic of range bounds pads keys. It differs from ``keyBytes``: the
  /// product's clients use this length, so that bounds are the same on the wire.
  public static let successorKeyLength = 786
}
