// The Firebase data decoder: decodes any Decodable type from the untyped values of snapshots.
//
// Invariant: a boolean is never decoded from a number, or a number from a boolean. A number that the
// requested type cannot represent exactly is an error.

public import Foundation

/// Decodes values from dictionaries, arrays, strings, numbers and nulls.
open class FirebaseDataDecoder {
  /// How dates are decoded.
  public enum DateDecodingStrategy {
    /// With the date's `init(from:)`.
    case deferredToDate
    /// From seconds since 1970.
    case secondsSince1970
    /// From milliseconds since 1970.
    case millisecondsSince1970
    /// From an ISO 8601 string in the internet date and time format.
    case iso8601
    /// From a string that a formatter parses.
    case formatted(DateFormatter)
    /// With a function that reads from the decoder.
    case custom((_ decoder: any Swift.Decoder) throws -> Date)
  }

  /// How data is decoded.
  public enum DataDecodingStrategy {
    /// With the data's `init(from:)`.
    case deferredToData
    /// From a base64 string.
    case base64
    /// From data. A base64 string is accepted too.
    case blob
    /// With a function that reads from the decoder.
    case custom((_ decoder: any Swift.Decoder) throws -> Data)
  }

  /// Whether strings represent NaN and the infinities.
  public enum NonConformingFloatDecodingStrategy {
    /// Strings do not represent them.
    case `throw`
    /// These strings represent them.
    case convertFromString(positiveInfinity: String, negativeInfinity: String, nan: String)
  }

  /// How field names are converted to coding keys.
  public enum KeyDecodingStrategy {
    /// Field names are used unchanged.
    case useDefaultKeys
    /// `snake_case` is converted to `camelCase`.
    case convertFromSnakeCase
    /// With a function of the complete path of keys.
    case custom((_ codingPath: [any CodingKey]) -> any CodingKey)
  }

  /// How dates are decoded; `.deferredToDate` by default.
  open var dateDecodingStrategy: DateDecodingStrategy = .deferredToDate
  /// How data is decoded; `.base64` by default.
  open var dataDecodingStrategy: DataDecodingStrategy = .base64
  /// Whether strings represent NaN and the infinities; `.throw` by default.
  open var nonConformingFloatDecodingStrategy: NonConformingFloatDecodingStrategy = .throw
  /// How field names are converted to coding keys; `.useDefaultKeys` by default.
  open var keyDecodingStrategy: KeyDecodingStrategy = .useDefaultKeys
  /// Selects types whose values are passed through unchanged; no types by default.
  open var passthroughTypeResolver: any StructureCodingPassthroughTypeResolver.Type = NoPassthroughTypes.self
  /// Passed to every `init(from:)` as `decoder.userInfo`.
  open var userInfo: [CodingUserInfoKey: Any] = [:]

  /// Makes a decoder with the default strategies.
  public init() {}

  /// Decodes a value of the requested type.
  ///
  /// - Throws: `DecodingError` with the path of keys to the value that does not match.
  open func decode<T: Decodable>(_ type: T.Type, from structure: Any) throws -> T {
    let options = StructureDecodingOptions(
      date: dateDecodingStrategy, data: dataDecodingStrategy,
      float: nonConformingFloatDecodingStrategy, key: keyDecodingStrategy,
      passthrough: passthroughTypeResolver, userInfo: userInfo)
    return try StructureDecoder(options: options, codingPath: [], value: structure).decode(type)
  }
}

/// The strategies of one call, copied when decoding starts.
struct StructureDecodingOptions {
  let date: FirebaseDataDecoder.DateDecodingStrategy
  let data: FirebaseDataDecoder.DataDecodingStrategy
  let float: FirebaseDataDecoder.NonConformingFloatDecodingStrategy
  let key: FirebaseDataDecoder.KeyDecodingStrategy
  let passthrough: any StructureCodingPassthroughTypeResolver.Type
  let userInfo: [CodingUserInfoKey: Any]
}
