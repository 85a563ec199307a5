// Every limit that the data model itself sets. Requests, transactions and time have theirs in the engine.

/// The limits of names and of what an index keeps. They are part of the rows on disk, of exports and of what clients take
/// for a name, so that no server can have others.
public enum Limits {
  /// Longest collection id or document id, in bytes of UTF-8.
  public static let resourceIDBytes = 1500
  /// Longest full document name, in bytes.
  public static let documentNameBytes = 6 * 1024
  /// Most levels of collections in one path.
  public static let collectionDepth = 100
  /// Longest field name, in bytes of UTF-8.
  public static let fieldNameBytes = 1500
  /// Longest field path, in bytes: its names and the dots between them, without quotes and backslashes.
  public static let fieldPathBytes = 1500
  /// Bytes of a text or bytes value that an index keeps.
  public static let indexedValueBytes = 1500
  /// Most levels of maps and arrays that a server may allow in a document, see `FirestoreLimits`.
  public static let greatestValueDepth = 31
}

/// The limits of documents and queries, which a server may raise. The defaults are the product's own.
public struct FirestoreLimits: Sendable, Hashable {
  /// Largest document by the size formula.
  public var documentBytes = 1_048_576
  /// Longest text or bytes value.
  public var valueBytes = 1_048_487
  /// Most levels of maps and arrays in a document.
  public var valueDepth = 20
  /// Most dimensions of a vector.
  public var vectorDimensions = 2048
  /// Most field transforms for one document in one commit.
  public var transformsPerDocument = 500
  /// Most disjunctions of a query after normalisation, and most elements of `in` and `array-contains-any`.
  public var disjunctions = 30
  /// Most elements of `not-in`.
  public var notInValues = 10
  /// Most filters and orders of a query together.
  public var filtersAndOrders = 100
  /// Most fields with a range or inequality in one query.
  public var inequalityFields = 10
  /// Most aggregations of one query.
  public var aggregations = 5
  /// Most results of a nearest-neighbour query.
  public var nearestNeighbours = 1000

  /// The product's own limits.
  public init() {}

  /// The product's own limits.
  public static let standard = FirestoreLimits()
}
