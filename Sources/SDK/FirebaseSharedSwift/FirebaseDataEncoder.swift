// The Firebase data encoder: encodes any Encodable type as untyped values for write methods. These values are
// NSNumber, String, NSNull, arrays, dictionaries with string keys, and the types that a product passes
// through.
//
// Invariant: the result contains no Swift numbers, so that `as? Int` and `as? Double` behave on Linux as they
// do on Apple's platforms.

public import Foundation

/// Selects the types that an encoder or decoder passes through unchanged.
public protocol StructureCodingPassthroughTypeResolver {
  /// Whether values of this type are passed through unchanged.
  static func isPassthroughType<T>(_ t: T) -> Bool
}

/// Marks a type that a keyed encoder omits. A keyed decoder decodes it even if its key is missing.
public protocol StructureCodingUncodedUnkeyed {}

/// A resolver that passes no types through: every value is encoded with its `encode(to:)`.
struct NoPassthroughTypes: StructureCodingPassthroughTypeResolver {
  static func isPassthroughType<T>(_ t: T) -> Bool { false }
}

/// Encodes values into dictionaries, arrays, strings, numbers and nulls.
///
/// An encoder can be reused. Its strategies must not change while another thread uses it.
open class FirebaseDataEncoder {
  /// How dates are stored.
  public enum DateEncodingStrategy {
    /// With the date's `encode(to:)`.
    case deferredToDate
    /// As seconds since 1970, a double.
    case secondsSince1970
    /// As milliseconds since 1970, a double.
    case millisecondsSince1970
    /// As an ISO 8601 string in the internet date and time format.
    case iso8601
    /// As the string that a formatter makes.
    case formatted(DateFormatter)
    /// With a function that writes to the encoder.
    case custom((Date, any Swift.Encoder) throws -> Void)
  }

  /// How data is stored.
  public enum DataEncodingStrategy {
    /// With the data's `encode(to:)`, as an array of numbers.
    case deferredToData
    /// As a base64 string.
    case base64
    /// As data, unchanged.
    case blob
    /// With a function that writes to the encoder.
    case custom((Data, any Swift.Encoder) throws -> Void)
  }

  /// The encoding of NaN and the infinities.
  public enum NonConformingFloatEncodingStrategy {
    /// They are rejected with `EncodingError.invalidValue`.
    case `throw`
    /// They are converted to these strings.
    case convertToString(positiveInfinity: String, negativeInfinity: String, nan: String)
  }

  /// How coding keys are converted to field names.
  public enum KeyEncodingStrategy {
    /// Coding keys are used unchanged.
    case useDefaultKeys
    /// `camelCase` is converted to `snake_case`.
    case convertToSnakeCase
    /// With a function of the complete path of keys.
    case custom((_ codingPath: [any CodingKey]) -> any CodingKey)
  }

  /// How dates are stored; `.deferredToDate` by default.
  open var dateEncodingStrategy: DateEncodingStrategy = .deferredToDate
  /// How data is stored; `.base64` by default.
  open var dataEncodingStrategy: DataEncodingStrategy = .base64
  /// The encoding of NaN and the infinities; `.throw` by default.
  open var nonConformingFloatEncodingStrategy: NonConformingFloatEncodingStrategy = .throw
  /// How coding keys are converted to field names; `.useDefaultKeys` by default.
  open var keyEncodingStrategy: KeyEncodingStrategy = .useDefaultKeys
  /// Selects types whose values are passed through unchanged; no types by default.
  open var passthroughTypeResolver: any StructureCodingPassthroughTypeResolver.Type = NoPassthroughTypes.self
  /// Passed to every `encode(to:)` as `encoder.userInfo`.
  open var userInfo: [CodingUserInfoKey: Any] = [:]

  /// Makes an encoder with the default strategies.
  public init() {}

  /// Encodes a value.
  ///
  /// - Throws: `EncodingError.invalidValue` if the value encodes nothing, or if it contains a number that the
  ///   strategy rejects. Also the errors of the value's `encode(to:)`.
  open func encode<T: Encodable>(_ value: T) throws -> Any {
    let node = StructureNode()
    try StructureEncoder(options: options, codingPath: [], node: node).encode(value)
    guard let structure = node.structure else {
      throw EncodingError.invalidValue(
        value,
        EncodingError.Context(
          codingPath: [], debugDescription: "Top-level \(T.self) did not encode any values."))
    }
    return structure
  }

  var options: StructureEncodingOptions {
    StructureEncodingOptions(
      date: dateEncodingStrategy, data: dataEncodingStrategy,
      float: nonConformingFloatEncodingStrategy, key: keyEncodingStrategy,
      passthrough: passthroughTypeResolver, userInfo: userInfo)
  }
}

/// The strategies of one call, copied when encoding starts.
struct StructureEncodingOptions {
  let date: FirebaseDataEncoder.DateEncodingStrategy
  let data: FirebaseDataEncoder.DataEncodingStrategy
  let float: FirebaseDataEncoder.NonConformingFloatEncodingStrategy
  let key: FirebaseDataEncoder.KeyEncodingStrategy
  let passthrough: any StructureCodingPassthroughTypeResolver.Type
  let userInfo: [CodingUserInfoKey: Any]
}
