// A nearest-neighbour search as the last stage of a query.

/// A search for the vectors nearest to a given one.
public struct FindNearest: Hashable, Sendable {
  /// How distance is measured.
  public enum Measure: Hashable, Sendable {
    /// Straight-line distance, least first.
    case euclidean
    /// One minus the cosine of the angle, least first.
    case cosine
    /// Dot product, greatest first.
    case dotProduct
  }

  /// The field with the vectors.
  public var field: FieldPath
  /// The vector to be near to.
  public var vector: [Double]
  /// How distance is measured.
  public var measure: Measure
  /// Results at most, 1 to 1,000.
  public var limit: Int
  /// The field in results that gets the distance.
  public var distanceResultField: FieldPath?
  /// The farthest distance (for the dot product: the least product) that counts.
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
