// The limits of the Realtime Database's data model. Clients enforce them before sending, servers on all input.

public import JSON

/// The limits of paths, keys and values, which a server may raise. The defaults are Firebase's.
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
  /// The maximum number of different orderings that active listens with a limit use at one location. Order by key does
  /// not count.
  public var ordersPerLocation = 1_000
  /// The maximum onDisconnect values of one connection.
  public var onDisconnectsPerConnection = 10_000
  /// The maximum bytes of the commit that writes the onDisconnect values of one connection: the rows of their leaves,
  /// each with its path, and the log record. It is half the store's limit of a commit, so that the write always fits.
  public var onDisconnectBytes = 32 * 1024 * 1024
  /// The maximum bytes of output queued for one connection.
  public var queuedOutputBytes = 64 * 1024 * 1024

  /// Creates Firebase's limits.
  public init() {}

  /// Firebase's limits.
  public static let standard = RealtimeLimits()

  /// The maximum bytes of all keys on the path to a value, plus one for each key. The key of a row in the store has room
  /// for this path. With Firebase's limits of depth and key length, no path is longer.
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

  /// The key length from which Firebase's clients compute the next and the previous key for the bounds of a range. It
  /// differs from ``keyBytes``, but bounds on the wire must equal those of Firebase's clients.
  public static let successorKeyLength = 786
}
