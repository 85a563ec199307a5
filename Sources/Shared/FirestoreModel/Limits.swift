// The limits of the data model. Limits of requests, transactions and time are in the engine.

/// The limits of names and of indexed values. No server can change them, since rows on disk, exports and clients depend
/// on them.
public enum Limits {
  /// The maximum length of a collection id or document id, in bytes of UTF-8.
  public static let resourceIDBytes = 1500
  /// The maximum length of a full document name, in bytes of UTF-8.
  public static let documentNameBytes = 6 * 1024
  /// The maximum levels of collections in one path.
  public static let collectionDepth = 100
  /// The maximum length of a field name, in bytes of UTF-8.
  public static let fieldNameBytes = 1500
  /// The maximum length of a field path, in bytes of UTF-8: names and the dots between them, without quotes and
  /// backslashes.
  public static let fieldPathBytes = 1500
  /// The length at which an index truncates a text or bytes value, in bytes.
  public static let indexedValueBytes = 1500
  /// The maximum of `FirestoreLimits.valueDepth` that a server may configure.
  public static let maximumValueDepth = 31
}

/// The limits of documents and queries, which a server may raise. The defaults are Cloud Firestore's.
public struct FirestoreLimits: Sendable, Hashable {
  /// The maximum size of a document in bytes, by the size formula.
  public var documentBytes = 1_048_576
  /// The maximum size of a text or bytes value, in bytes.
  public var valueBytes = 1_048_487
  /// The maximum levels of maps and arrays in a document.
  public var valueDepth = 20
  /// The maximum dimensions of a vector.
  public var vectorDimensions = 2048
  /// The maximum field transforms for one document in one commit.
  public var transformsPerDocument = 500
  /// The maximum disjunctions of a normalized query, and the maximum elements of `in` and `array-contains-any`.
  public var disjunctions = 30
  /// The maximum elements of `not-in`.
  public var notInValues = 10
  /// The maximum number of filters and orders of a query together.
  public var filtersAndOrders = 100
  /// The maximum fields with a range or inequality in one query.
  public var inequalityFields = 10
  /// The maximum aggregations of one query.
  public var aggregations = 5
  /// The maximum results of a nearest-neighbour query.
  public var nearestNeighbours = 1000

  /// Creates Cloud Firestore's limits.
  public init() {}

  /// Cloud Firestore's limits.
  public static let standard = FirestoreLimits()
}
