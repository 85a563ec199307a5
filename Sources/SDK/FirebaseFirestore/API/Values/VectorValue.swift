// A vector value: an array of doubles, stored in a field.

public import Foundation

/// A vector of at most 2,048 doubles.
open class VectorValue: NSObject, @unchecked Sendable, Codable {
  // SAFETY: constants only.
  /// The numbers.
  public let array: [Double]

  /// Makes a vector.
  public init(_ array: [Double]) { self.array = array }

  private enum CodingKeys: String, CodingKey { case array }

  /// Decodes the key `array`, for decoders other than Firestore's.
  public required init(from decoder: any Swift.Decoder) throws {
    array = try decoder.container(keyedBy: CodingKeys.self).decode([Double].self, forKey: .array)
  }

  /// Encodes the key `array`, for encoders other than Firestore's.
  public func encode(to encoder: any Swift.Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(array, forKey: .array)
  }

  /// Whether all numbers are equal.
  open override func isEqual(_ object: Any?) -> Bool { (object as? VectorValue)?.array == array }

  /// Hashes the numbers.
  open override var hash: Int { array.hashValue }
}

extension FieldValue {
  /// A vector of doubles.
  public static func vector(_ array: [Double]) -> VectorValue { VectorValue(array) }

  /// A vector of floats, stored as doubles.
  public static func vector(_ array: [Float]) -> VectorValue { VectorValue(array.map(Double.init)) }
}
