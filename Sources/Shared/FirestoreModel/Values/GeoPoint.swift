// A geo point: a position on Earth as a value of a field.

/// A latitude and a longitude in degrees.
public struct GeoPoint: Sendable {
  /// Degrees north of the equator, −90 to 90.
  public var latitude: Double
  /// Degrees east of Greenwich, −180 to 180.
  public var longitude: Double

  /// Makes a point. The database accepts it if it `isInRange`.
  public init(latitude: Double, longitude: Double) {
    self.latitude = latitude
    self.longitude = longitude
  }

  /// Whether both coordinates are numbers in their ranges.
  public var isInRange: Bool {
    latitude >= -90 && latitude <= 90 && longitude >= -180 && longitude <= 180
  }

  /// Orders by latitude, then longitude.
  public static func compare(_ a: GeoPoint, _ b: GeoPoint) -> ComparisonOrder {
    let latitude = Numbers.compare(a.latitude, b.latitude)
    return latitude != .same ? latitude : Numbers.compare(a.longitude, b.longitude)
  }
}

extension GeoPoint: Hashable {
  /// Strict equality: 0.0 and −0.0 differ, NaN equals itself.
  public static func == (a: GeoPoint, b: GeoPoint) -> Bool {
    Numbers.identical(a.latitude, b.latitude) && Numbers.identical(a.longitude, b.longitude)
  }

  /// Hashes what `==` compares.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(Numbers.bits(latitude))
    hasher.combine(Numbers.bits(longitude))
  }
}
