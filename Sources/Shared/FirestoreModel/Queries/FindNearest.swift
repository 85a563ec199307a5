// A nearest-neighbour search as the last stage of a query.

/// A search for the vectors nearest to a given one.
public struct FindNearest: Hashable, Sendable {
  /// A distance measure.
  public enum Measure: Hashable, Sendable {
    /// Euclidean distance, ascending.
    case euclidean
    /// One minus the cosine of the angle, ascending.
    case cosine
    /// Dot product, descending.
    case dotProduct
  }

  /// The field with the vectors.
  public var field: FieldPath
  /// The query vector.
  public var vector: [Double]
  /// The distance measure.
  public var measure: Measure
  /// The maximum number of results, 1 to 1,000.
  public var limit: Int
  /// The field of the results that receives the distance.
  public var distanceResultField: FieldPath?
  /// The maximum distance, or for the dot product the minimum product.
  public var distanceThreshold: Double?

  /// Makes a search.
  public init(
    field: FieldPath, vector: [Double], measure: Measure, limit: Int, distanceResultField: FieldPath? = nil,
    distanceThreshold: Double? = nil
  ) {
    self.field = field
    self.vector = vector
    self.measure = measure
    self.limit = limit
    self.distanceResultField = distanceResultField
    self.distanceThreshold = distanceThreshold
  }
}
