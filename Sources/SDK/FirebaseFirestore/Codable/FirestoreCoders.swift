// Firestore's encoder and decoder. They use the structure coders, keep Firestore's value types unchanged, and
// by default store dates as timestamps and data as bytes.

import FirebaseCore
public import FirebaseSharedSwift
import Foundation

/// Firestore's value types, which documents store unchanged.
struct FirestorePassthroughTypes: StructureCodingPassthroughTypeResolver {
  static func isPassthroughType<T>(_ t: T) -> Bool {
    t is Timestamp || t is GeoPoint || t is DocumentReference || t is FieldValue || t is VectorValue
  }
}

/// An error of decoding a document, in addition to the standard `DecodingError`.
public enum FirestoreDecodingError: Error {
  /// Only `Firestore.Decoder` can decode the type.
  case decodingIsNotSupported(String)
  /// A document contains a field with the name of a property that is set to the document's ID.
  case fieldNameConflict(String)
}

/// An error of encoding a document, in addition to the standard `EncodingError`.
public enum FirestoreEncodingError: Error {
  /// Only `Firestore.Encoder` can encode the type.
  case encodingIsNotSupported(String)
}

extension CodingUserInfoKey {
  /// The `userInfo` key under which `Firestore.Decoder` stores the reference of the document being decoded.
  static let documentReference = CodingUserInfoKey(rawValue: "DocumentRefUserInfoKey")
  /// The `userInfo` key that is present during encoding with `Firestore.Encoder` or decoding with
  /// `Firestore.Decoder`.
  static let firestoreCoder = CodingUserInfoKey(rawValue: "FirestoreCoderUserInfoKey")
}

extension [CodingUserInfoKey: Any] {
  /// Whether Firestore's encoder or decoder is in use.
  var isFirestoreCoder: Bool { CodingUserInfoKey.firestoreCoder.map { self[$0] != nil } ?? false }

  func withFirestoreCoder(_ reference: DocumentReference? = nil) -> Self {
    var info = self
    if let key = CodingUserInfoKey.firestoreCoder { info[key] = true }
    if let reference, let key = CodingUserInfoKey.documentReference { info[key] = reference }
    return info
  }
}

extension Firestore {
  /// Encodes values as the fields of a document.
  ///
  /// Dates become timestamps, data becomes bytes, and URLs become strings. Nil properties are omitted. Values
  /// of type ``Timestamp``, ``GeoPoint``, ``DocumentReference``, ``FieldValue`` and ``VectorValue`` are
  /// stored unchanged.
  public class Encoder {
    /// How dates are stored; `.timestamp` by default.
    public var dateEncodingStrategy: FirebaseDataEncoder.DateEncodingStrategy = .timestamp
    /// How data is stored; by default `.blob`, which means bytes.
    public var dataEncodingStrategy: FirebaseDataEncoder.DataEncodingStrategy = .blob
    /// The encoding of NaN and the infinities; `.throw` by default.
    public var nonConformingFloatEncodingStrategy: FirebaseDataEncoder.NonConformingFloatEncodingStrategy =
      .throw
    /// How coding keys are converted to field names; `.useDefaultKeys` by default.
    public var keyEncodingStrategy: FirebaseDataEncoder.KeyEncodingStrategy = .useDefaultKeys
    /// Passed to every `encode(to:)` as `encoder.userInfo`.
    public var userInfo: [CodingUserInfoKey: Any] = [:]

    /// Makes an encoder with Firestore's default strategies.
    public init() {}

    /// Encodes a value as the fields of a document.
    ///
    /// - Throws: `EncodingError.invalidValue` if the top level of the value is not a map.
    public func encode<T: Encodable>(_ value: T) throws -> [String: Any] {
      let encoder = FirebaseDataEncoder()
      encoder.dateEncodingStrategy = dateEncodingStrategy
      encoder.dataEncodingStrategy = dataEncodingStrategy
      encoder.nonConformingFloatEncodingStrategy = nonConformingFloatEncodingStrategy
      encoder.keyEncodingStrategy = keyEncodingStrategy
      encoder.passthroughTypeResolver = FirestorePassthroughTypes.self
      encoder.userInfo = userInfo.withFirestoreCoder()
      guard let fields = try encoder.encode(value) as? [String: Any] else {
        throw EncodingError.invalidValue(
          value,
          EncodingError.Context(codingPath: [], debugDescription: "Top-level \(T.self) is not allowed."))
      }
      return fields
    }
  }

  /// Decodes values from the fields of a document.
  public class Decoder {
    /// How dates are decoded; `.timestamp` by default.
    public var dateDecodingStrategy: FirebaseDataDecoder.DateDecodingStrategy = .timestamp
    /// How data is decoded; by default `.blob`, which means bytes.
    public var dataDecodingStrategy: FirebaseDataDecoder.DataDecodingStrategy = .blob
    /// Whether strings represent NaN and the infinities; `.throw` by default.
    public var nonConformingFloatDecodingStrategy: FirebaseDataDecoder.NonConformingFloatDecodingStrategy =
      .throw
    /// How field names are converted to coding keys; `.useDefaultKeys` by default.
    public var keyDecodingStrategy: FirebaseDataDecoder.KeyDecodingStrategy = .useDefaultKeys
    /// Passed to every `init(from:)` as `decoder.userInfo`.
    public var userInfo: [CodingUserInfoKey: Any] = [:]

    /// Makes a decoder with Firestore's default strategies.
    public init() {}

    /// Decodes a value from a document's fields.
    public func decode<T: Decodable>(_ t: T.Type, from data: Any) throws -> T {
      try decode(t, from: data, in: nil)
    }

    /// Decodes a value from a document's fields, and sets ``DocumentID`` properties from the reference.
    ///
    /// - Throws: `DecodingError`; ``FirestoreDecodingError`` when the value has a ``DocumentID``
    ///   and no reference is given.
    public func decode<T: Decodable>(
      _ t: T.Type, from data: Any, in reference: DocumentReference?
    ) throws -> T {
      let decoder = FirebaseDataDecoder()
      decoder.dateDecodingStrategy = dateDecodingStrategy
      decoder.dataDecodingStrategy = dataDecodingStrategy
      decoder.nonConformingFloatDecodingStrategy = nonConformingFloatDecodingStrategy
      decoder.keyDecodingStrategy = keyDecodingStrategy
      decoder.passthroughTypeResolver = FirestorePassthroughTypes.self
      decoder.userInfo = userInfo.withFirestoreCoder(reference)
      return try decoder.decode(t, from: data)
    }
  }
}

extension FirebaseDataEncoder.DateEncodingStrategy {
  /// Encodes dates as Firestore timestamps.
  public static var timestamp: Self {
    .custom { date, encoder in
      var container = encoder.singleValueContainer()
      try container.encode(Timestamp(date: date))
    }
  }
}

extension FirebaseDataDecoder.DateDecodingStrategy {
  /// Decodes dates from Firestore timestamps.
  public static var timestamp: Self {
    .custom { decoder in try decoder.singleValueContainer().decode(Timestamp.self).dateValue() }
  }
}
