// @DocumentID: decoding sets the property to the ID or reference of the document, and encoding omits the
// property.

public import FirebaseSharedSwift
import Foundation

/// A type that can be made from a document's reference.
public protocol DocumentIDWrappable {
  /// Makes a value from the reference of the document being decoded.
  static func wrap(_ documentReference: DocumentReference) throws -> Self
}

extension String: DocumentIDWrappable {
  /// The document's ID.
  public static func wrap(_ documentReference: DocumentReference) throws -> Self {
    documentReference.documentID
  }
}

extension DocumentReference: DocumentIDWrappable {
  /// The reference itself.
  public static func wrap(_ documentReference: DocumentReference) throws -> Self {
    guard let reference = documentReference as? Self else {
      throw FirestoreDecodingError.decodingIsNotSupported("Not a document reference.")
    }
    return reference
  }
}

/// Fills a property with the ID of the document that is being decoded.
///
/// ```swift
/// struct Book: Codable {
///   @DocumentID var id: String?
///   var title: String
/// }
/// ```
/// The property is not written. A field of the same name is ignored.
@propertyWrapper
public struct DocumentID<Value: DocumentIDWrappable & Codable>: Codable, StructureCodingUncodedUnkeyed {
  private var value: Value?

  /// Makes the wrapper. A value that is set here is never written to the database.
  public init(wrappedValue value: Value?) {
    if value != nil {
      FirestoreLog.warning(
        "I-FST000002",
        "A @DocumentID property was set by hand. Its value is ignored when the document is written.")
    }
    self.value = value
  }

  /// The document's ID; nil before the value was decoded from a document.
  public var wrappedValue: Value? {
    get { value }
    set { value = newValue }
  }

  /// Decodes the ID from the reference of the document that is being decoded.
  public init(from decoder: any Swift.Decoder) throws {
    guard let key = CodingUserInfoKey.documentReference,
      let reference = decoder.userInfo[key] as? DocumentReference
    else {
      throw FirestoreDecodingError.decodingIsNotSupported(
        "Could not find a DocumentReference for the path \(decoder.codingPath.map(\.stringValue))."
          + " DocumentID values can only be decoded with Firestore.Decoder from a document.")
    }
    value = try Value.wrap(reference)
  }

  /// Always throws, because a document's ID is not a field.
  public func encode(to encoder: any Swift.Encoder) throws {
    throw FirestoreEncodingError.encodingIsNotSupported(
      "DocumentID values can only be encoded with Firestore.Encoder.")
  }
}

extension DocumentID: Equatable where Value: Equatable {}
extension DocumentID: Hashable where Value: Hashable {}
extension DocumentID: Sendable where Value: Sendable {}
