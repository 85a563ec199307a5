// Every limit that the data model itself sets. Requests, transactions and time have theirs in the engine.

/// The hard limits of Cloud Firestore's data model.
public enum Limits {
  /// Longest collection id or document id, in bytes of UTF-8.
  public static let resourceIDBytes = 1500
  /// Longest full document name, in bytes.
  public static let documentNameBytes = 6 * 1024
  /// Most levels of collections in one path.
  public static let collectionDepth = 100
  /// Longest field name, in bytes of UTF-8.
  public static let fieldNameBytes = 1500
  /// Longest field path in its canonical text, in bytes.
  public static let fieldPathBytes = 1500
  /// Longest text or bytes value.
  public static let valueBytes = 1_048_487
  /// Most levels of maps and arrays in a document.
  public static let valueDepth = 20
  /// Largest document by the size formula.
  public static let documentBytes = 1_048_576
  /// Bytes of a text or bytes value that an index keeps.
  public static let indexedValueBytes = 1500
  /// Most dimensions of a vector.
  public static let vectorDimensions = 2048
  /// Most field transforms for one document in one commit.
  public static let transformsPerDocument = 500
  /// Most disjunctions of a query after normalisation, and most elements of `in` and `array-contains-any`.
  public static let disjunctions = 30
  /// Most elements of `not-in`.
  public static let notInValues = 10
  /// Most filters and orders of a query together.
  public static let filtersAndOrders = 100
  /// Most fields with a range or inequality in one query.
  public static let inequalityFields = 10
  /// Most aggregations of one query.
  public static let aggregations = 5
  /// Most results of a nearest-neighbour query.
  public static let nearestNeighbours = 1000
}
