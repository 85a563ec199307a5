// Firestore's encoder and decoder: the structure coders, with the product's types passed through, and timestamps and
// bytes by default.

import FirebaseCore
public import FirebaseSharedSwift
import Foundation

/// Firestore's own types, which documents store as they are.
struct FirestorePassthroughTypes: StructureCodingPassthroughTypeResolver {
  static func isPassthroughType<T>(_ t: T) -> Bool {
    t is Timestamp || t is GeoPoint || t is DocumentReference || t is FieldValue || t is VectorValue
  }
}

/// An error of decoding a document, in addition to the standard `DecodingError`.
public enum FirestoreDecodingError: Error {
  /// The type can be decoded by `Firestore.Decoder` only.
  case decodingIsNotSupported(String)
  /// A document field has the name of a property that the document's ID fills.
  case fieldNameConflict(String)
}

/// An error of encoding a document, in addition to the standard `EncodingError`.
public enum FirestoreEncodingError: Error {
  /// The type can be encoded by `Firestore.Encoder` only.
  case encodingIsNotSupported(String)
}

extension CodingUserInfoKey {
  /// The `userInfo` key under which `Firestore.Decoder` stores the reference of the document being decoded.
  static let documentReference = CodingUserInfoKey(rawValue: "DocumentRefUserInfoKey")
  /// Present while `Firestore.Encoder` or `Firestore.Decoder` is at work.
  static let firestoreCoder = CodingUserInfoKey(rawValue: "FirestoreCoderUserInfoKey")
}

extension [CodingUserInfoKey: Any] {
  /// Whether Firestore's own coder is at work.
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
  /// Dates become timestamps, data becomes bytes, URLs become strings; nil properties are left
  /// out. ``Timestamp``, ``GeoPoint``, ``DocumentReference``, ``FieldValue`` and ``VectorValue``
  /// are stored as they are.
  public class Encoder {
    /// How dates are stored; `.timestamp` unless set.
    public var dateEncodingStrategy: FirebaseDataEncoder.DateEncodingStrategy = .timestamp
    /// How data is stored; `.blob`, which is bytes, unless set.
    public var dataEncodingStrategy: FirebaseDataEncoder.DataEncodingStrategy = .blob
    /// The encoding of NaN and the infinities; `.throw` by default.
    public var nonConformingFloatEncodingStrategy: FirebaseDataEncoder.NonConformingFloatEncodingStrategy =
      .throw
    /// How coding keys become field names; `.useDefaultKeys` unless set.
    public var keyEncodingStrategy: FirebaseDataEncoder.KeyEncodingStrategy = .useDefaultKeys
    /// Handed to every `encode(to:)` as `encoder.userInfo`.
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
    /// How dates are read; `.timestamp` unless set.
    public var dateDecodingStrategy: FirebaseDataDecoder.DateDecodingStrategy = .timestamp
    /// How data is read; `.blob`, which is bytes, unless set.
    public var dataDecodingStrategy: FirebaseDataDecoder.DataDecodingStrategy = .blob
    /// Whether strings represent NaN and the infinities; `.throw` by default.
    public var nonConformingFloatDecodingStrategy: FirebaseDataDecoder.NonConformingFloatDecodingStrategy =
      .throw
    /// How field names become coding keys; `.useDefaultKeys` unless set.
    public var keyDecodingStrategy: FirebaseDataDecoder.KeyDecodingStrategy = .useDefaultKeys
    /// Handed to every `init(from:)` as `decoder.userInfo`.
    public var userInfo: [CodingUserInfoKey: Any] = [:]

    /// Makes a decoder with Firestore's default strategies.
    public init() {}

    /// Decodes a value from a document's fields.
    public func decode<T: Decodable>(_ t: T.Type, from data: Any) throws -> T {
      try decode(t, from: data, in: nil)
    }

    /// Decodes a value from a document's fields, filling ``DocumentID`` from the reference.
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
  /// As a Firestore timestamp.
  public static var timestamp: Self {
    .custom { date, encoder in
      var container = encoder.singleValueContainer()
      try container.encode(Timestamp(date: date))
    }
  }
}

extension FirebaseDataDecoder.DateDecodingStrategy {
  /// From a Firestore timestamp.
  public static var timestamp: Self {
    .custom { decoder in try decoder.singleValueContainer().decode(Timestamp.self).dateValue() }
  }
}
