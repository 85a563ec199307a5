// A geo point: a location on Earth, stored in a field.

import FirestoreModel
public import Foundation

/// A latitude and a longitude.
open class GeoPoint: NSObject, NSCopying, @unchecked Sendable, Codable {
  // SAFETY: constants only.
  /// Degrees north of the equator, -90 to 90.
  public let latitude: Double
  /// Degrees east of Greenwich, -180 to 180.
  public let longitude: Double

  /// Makes a point. Stops the program if a coordinate is out of range.
  public init(latitude: Double, longitude: Double) {
    if !(latitude >= -90 && latitude <= 90) {
      failInvalidArgument("GeoPoint requires a latitude value in the range of [-90, 90], but was \(latitude)")
    }
    if !(longitude >= -180 && longitude <= 180) {
      failInvalidArgument(
        "GeoPoint requires a longitude value in the range of [-180, 180], but was \(longitude)")
    }
    self.latitude = latitude
    self.longitude = longitude
  }

  init(unchecked point: ModelGeoPoint) {
    latitude = point.latitude
    longitude = point.longitude
  }

  private enum CodingKeys: String, CodingKey { case latitude, longitude }

  /// Decodes the keys `latitude` and `longitude`, for decoders other than Firestore's.
  public required init(from decoder: any Swift.Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    let point = ModelGeoPoint(
      latitude: try container.decode(Double.self, forKey: .latitude),
      longitude: try container.decode(Double.self, forKey: .longitude))
    guard point.isInRange else {
      throw DecodingError.dataCorrupted(
        DecodingError.Context(
          codingPath: decoder.codingPath, debugDescription: "The coordinates are out of range."))
    }
    latitude = point.latitude
    longitude = point.longitude
  }

  /// Encodes the keys `latitude` and `longitude`, for encoders other than Firestore's.
  public func encode(to encoder: any Swift.Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(latitude, forKey: .latitude)
    try container.encode(longitude, forKey: .longitude)
  }

  /// Returns the point itself, because it never changes.
  open func copy(with zone: NSZone? = nil) -> Any { self }

  /// Whether both coordinates are equal.
  open override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? GeoPoint else { return false }
    return latitude == other.latitude && longitude == other.longitude
  }

  /// Hashes both coordinates.
  open override var hash: Int {
    var hasher = Hasher()
    hasher.combine(latitude)
    hasher.combine(longitude)
    return hasher.finalize()
  }

  /// Both coordinates.
  open override var description: String {
    String(format: "<FIRGeoPoint: (%f, %f)>", latitude, longitude)
  }
}
