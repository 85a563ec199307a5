// Encodes and decodes timestamps with coders other than Firestore's. Firestore's coders store timestamps
// unchanged.

public import FirebaseCore
import FirestoreModel

extension Timestamp: Codable {
  private enum CodingKeys: String, CodingKey { case seconds, nanoseconds }

  /// Decodes the keys `seconds` and `nanoseconds`.
  ///
  /// - Throws: `DecodingError.dataCorrupted` for a time outside the range of timestamps.
  public convenience init(from decoder: any Swift.Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    let time = ModelTimestamp(
      seconds: try container.decode(Int64.self, forKey: .seconds),
      nanoseconds: try container.decode(Int32.self, forKey: .nanoseconds))
    guard time.isInRange else {
      throw DecodingError.dataCorrupted(
        DecodingError.Context(codingPath: decoder.codingPath, debugDescription: "Timestamp out of range."))
    }
    self.init(seconds: time.seconds, nanoseconds: time.nanoseconds)
  }

  /// Encodes the keys `seconds` and `nanoseconds`.
  public func encode(to encoder: any Swift.Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(seconds, forKey: .seconds)
    try container.encode(nanoseconds, forKey: .nanoseconds)
  }
}
