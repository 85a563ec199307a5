// Decodes any Decodable from the loosely typed structure of the products' snapshots.
//
// Invariant: a boolean never decodes from a number, nor a number from a boolean. A number that does not fit the
// requested type exactly is an error.

public import Foundation

/// Decodes values from dictionaries, arrays, strings, numbers and nulls.
open class FirebaseDataDecoder {
  /// How dates are read.
  public enum DateDecodingStrategy {
    /// By the date's own `init(from:)`.
    case deferredToDate
    /// From seconds since 1970.
    case secondsSince1970
    /// From milliseconds since 1970.
    case millisecondsSince1970
    /// From an ISO 8601 string with internet date and time.
    case iso8601
    /// From a string that a formatter reads.
    case formatted(DateFormatter)
    /// By a function that reads from the decoder.
    case custom((_ decoder: any Swift.Decoder) throws -> Date)
  }

  /// How data is read.
  public enum DataDecodingStrategy {
    /// By the data's own `init(from:)`.
    case deferredToData
    /// From a base64 string.
    case base64
    /// Unchanged; a base64 string is accepted too.
    case blob
    /// By a function that reads from the decoder.
    case custom((_ decoder: any Swift.Decoder) throws -> Data)
  }

  /// Whether strings represent NaN and the infinities.
  public enum NonConformingFloatDecodingStrategy {
    /// They do not.
    case `throw`
    /// The given strings do.
    case convertFromString(positiveInfinity: String, negativeInfinity: String, nan: String)
  }

  /// How field names become coding keys.
  public enum KeyDecodingStrategy {
    /// As they are.
    case useDefaultKeys
    /// `snake_case` becomes `camelCase`.
    case convertFromSnakeCase
    /// By a function of the complete path of keys.
    case custom((_ codingPath: [any CodingKey]) -> any CodingKey)
  }

  /// How dates are read; `.deferredToDate` unless set.
  open var dateDecodingStrategy: DateDecodingStrategy = .deferredToDate
  /// How data is read; `.base64` unless set.
  open var dataDecodingStrategy: DataDecodingStrategy = .base64
  /// Whether strings represent NaN and the infinities; `.throw` by default.
  open var nonConformingFloatDecodingStrategy: NonConformingFloatDecodingStrategy = .throw
  /// How field names become coding keys; `.useDefaultKeys` unless set.
  open var keyDecodingStrategy: KeyDecodingStrategy = .useDefaultKeys
  /// Which types are handed on as they are; none unless set.
  open var passthroughTypeResolver: any StructureCodingPassthroughTypeResolver.Type = NoPassthroughTypes.self
  /// Handed to every `init(from:)` as `decoder.userInfo`.
  open var userInfo: [CodingUserInfoKey: Any] = [:]

  /// Makes a decoder with the default strategies.
  public init() {}

  /// Decodes a value of the requested type.
  ///
  /// - Throws: `DecodingError` with the path of keys to the value that does not fit.
  open func decode<T: Decodable>(_ type: T.Type, from structure: Any) throws -> T {
    let options = StructureDecodingOptions(
      date: dateDecodingStrategy, data: dataDecodingStrategy,
      float: nonConformingFloatDecodingStrategy, key: keyDecodingStrategy,
      passthrough: passthroughTypeResolver, userInfo: userInfo)
    return try StructureDecoder(options: options, codingPath: [], value: structure).decode(type)
  }
}

/// The strategies of one decoding, frozen when it starts.
struct StructureDecodingOptions {
  let date: FirebaseDataDecoder.DateDecodingStrategy
  let data: FirebaseDataDecoder.DataDecodingStrategy
  let float: FirebaseDataDecoder.NonConformingFloatDecodingStrategy
  let key: FirebaseDataDecoder.KeyDecodingStrategy
  let passthrough: any StructureCodingPassthroughTypeResolver.Type
  let userInfo: [CodingUserInfoKey: Any]
}
