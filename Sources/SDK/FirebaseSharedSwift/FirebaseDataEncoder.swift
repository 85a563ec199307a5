// Encodes any Encodable as the loosely typed structure of the products' write methods: NSNumber, String, NSNull, arrays
// and string-keyed dictionaries, plus the types that a product passes through.
//
// Invariant: the result contains no Swift numbers, so that `as? Int` and `as? Double` behave on Linux as on Apple's
// platforms.

public import Foundation

/// Names the types that an encoder or decoder passes on unchanged.
public protocol StructureCodingPassthroughTypeResolver {
  /// Whether a value of this type is stored untouched.
  static func isPassthroughType<T>(_ t: T) -> Bool
}

/// Marks a type that a keyed encoder omits, and that a keyed decoder decodes although its key is absent.
public protocol StructureCodingUncodedUnkeyed {}

/// A resolver that passes nothing through: every value is encoded by its own `encode(to:)`.
struct NoPassthroughTypes: StructureCodingPassthroughTypeResolver {
  static func isPassthroughType<T>(_ t: T) -> Bool { false }
}

/// Encodes values into dictionaries, arrays, strings, numbers and nulls.
///
/// An encoder may be reused; it is not meant to be shared between threads while its strategies
/// change.
open class FirebaseDataEncoder {
  /// How dates are stored.
  public enum DateEncodingStrategy {
    /// By the date's own `encode(to:)`.
    case deferredToDate
    /// As seconds since 1970, a double.
    case secondsSince1970
    /// As milliseconds since 1970, a double.
    case millisecondsSince1970
    /// As an ISO 8601 string with internet date and time.
    case iso8601
    /// As the string that a formatter makes.
    case formatted(DateFormatter)
    /// By a function that writes to the encoder.
    case custom((Date, any Swift.Encoder) throws -> Void)
  }

  /// How data is stored.
  public enum DataEncodingStrategy {
    /// By the data's own `encode(to:)`, an array of numbers.
    case deferredToData
    /// As a base64 string.
    case base64
    /// As it is.
    case blob
    /// By a function that writes to the encoder.
    case custom((Data, any Swift.Encoder) throws -> Void)
  }

  /// The encoding of NaN and the infinities.
  public enum NonConformingFloatEncodingStrategy {
    /// They are rejected with `EncodingError.invalidValue`.
    case `throw`
    /// They become the given strings.
    case convertToString(positiveInfinity: String, negativeInfinity: String, nan: String)
  }

  /// How coding keys become field names.
  public enum KeyEncodingStrategy {
    /// As they are.
    case useDefaultKeys
    /// `camelCase` becomes `snake_case`.
    case convertToSnakeCase
    /// By a function of the complete path of keys.
    case custom((_ codingPath: [any CodingKey]) -> any CodingKey)
  }

  /// How dates are stored; `.deferredToDate` unless set.
  open var dateEncodingStrategy: DateEncodingStrategy = .deferredToDate
  /// How data is stored; `.base64` unless set.
  open var dataEncodingStrategy: DataEncodingStrategy = .base64
  /// The encoding of NaN and the infinities; `.throw` by default.
  open var nonConformingFloatEncodingStrategy: NonConformingFloatEncodingStrategy = .throw
  /// How coding keys become field names; `.useDefaultKeys` unless set.
  open var keyEncodingStrategy: KeyEncodingStrategy = .useDefaultKeys
  /// Which types are stored untouched; none unless set.
  open var passthroughTypeResolver: any StructureCodingPassthroughTypeResolver.Type = NoPassthroughTypes.self
  /// Handed to every `encode(to:)` as `encoder.userInfo`.
  open var userInfo: [CodingUserInfoKey: Any] = [:]

  /// Makes an encoder with the default strategies.
  public init() {}

  /// Encodes a value.
  ///
  /// - Throws: `EncodingError.invalidValue` when the value encodes nothing, or contains a number that the strategy
  ///   rejects; whatever the value's own `encode(to:)` throws.
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

/// The strategies of one encoding, frozen when it starts.
struct StructureEncodingOptions {
  let date: FirebaseDataEncoder.DateEncodingStrategy
  let data: FirebaseDataEncoder.DataEncodingStrategy
  let float: FirebaseDataEncoder.NonConformingFloatEncodingStrategy
  let key: FirebaseDataEncoder.KeyEncodingStrategy
  let passthrough: any StructureCodingPassthroughTypeResolver.Type
  let userInfo: [CodingUserInfoKey: Any]
}
