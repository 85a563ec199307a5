// Every limit of the Realtime Database's data model, in one place. Both ends enforce them: the client before it sends,
// the server on everything it accepts.

public import JSON

/// The limits of paths, keys and values, which a server may raise. The defaults are the product's own.
public struct RealtimeLimits: Sendable, Equatable {
  /// The most levels a stored value may lie below the root.
  public var depth = 32
  /// The most bytes of UTF-8 in one key.
  public var keyBytes = 768
  /// The most bytes of UTF-8 in one string value.
  public var stringBytes = 10 * 1024 * 1024
  /// The most bytes one write over the WebSocket protocol may carry, as an estimate of its JSON.
  public var socketWriteBytes = 16 * 1024 * 1024
  /// The most bytes one write over REST may carry, as an estimate of its JSON.
  public var restWriteBytes = 256 * 1024 * 1024
  /// The most bytes one read may answer with, as an estimate of its JSON.
  public var responseBytes = 256 * 1024 * 1024
  /// The most seconds that one read over REST may take.
  public var readSeconds = 15 * 60
  /// The most listens one connection may hold.
  public var listensPerConnection = 10_000
  /// The most orders in which one location may be listened to with limits at a time, that by key aside.
  public var ordersPerLocation = 1_000
  /// The most values one connection may have registered for its end.
  public var onDisconnectsPerConnection = 10_000
  /// The most bytes that writing what one connection registered for its end may take: the rows of its leaves, each with
  /// its path, and their share of the log. Half of what one commit of the store holds, so that it can always be written.
  public var onDisconnectBytes = 32 * 1024 * 1024
  /// The most bytes that may wait for one connection to read them.
  public var queuedOutputBytes = 64 * 1024 * 1024

  /// The product's own limits.
  public init() {}

  /// The product's own limits.
  public static let standard = RealtimeLimits()

  /// The most bytes of all keys on the way to a value, with one for each: what the row of a value has room for. So many
  /// are there anyway with the product's depth and keys, so that they meet no bound of their own.
  public static let pathBytes = 32 * (768 + 1)

  /// Whether a path of so many keys may be longer than ``pathBytes``: only where the limits are raised.
  @inlinable
  public func mayExceedPathBytes(_ keys: Int) -> Bool { keys * (keyBytes + 1) > Self.pathBytes }

  /// What a reader of JSON looks at: never less than the data that these limits let through.
  public var json: JSONLimits {
    let standard = JSONLimits.standard
    return JSONLimits(
      depth: standard.depth, bytes: max(standard.bytes, restWriteBytes, 2 * socketWriteBytes))
  }

  /// The length that the successor arithmetic of range bounds pads keys to. Not the longest key (that is
  /// ``keyBytes``), but what the product's own clients use, so that bounds look the same on the wire.
  public static let successorKeyLength = 786
}
