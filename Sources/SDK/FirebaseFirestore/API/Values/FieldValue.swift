// Field values: sentinels for values that the server computes.

import FirestoreModel
public import Foundation

/// A sentinel in a write. The server replaces it by a computed value.
open class FieldValue: NSObject, Encodable, @unchecked Sendable {
  // SAFETY: constants of Sendable types only.
  enum Kind: Sendable {
    case delete
    case serverTimestamp
    case number(FieldTransform.Operation)
    case arrayUnion([Value])
    case arrayRemove([Value])
  }

  let kind: Kind

  init(_ kind: Kind) { self.kind = kind }

  private static let deletion = FieldValue(.delete)
  private static let timestamp = FieldValue(.serverTimestamp)

  /// Removes the field. Allowed in `updateData` and in merges.
  open class func delete() -> FieldValue { deletion }

  /// Sets the field to the server's time of the commit.
  open class func serverTimestamp() -> FieldValue { timestamp }

  /// Appends the elements that the array does not contain; replaces a value that is not an array.
  open class func arrayUnion(_ elements: [Any]) -> FieldValue {
    FieldValue(.arrayUnion(UserDataReader.elements(elements, of: "FieldValue.arrayUnion()")))
  }

  /// Removes every occurrence of the elements; replaces a value that is not an array by an empty array.
  open class func arrayRemove(_ elements: [Any]) -> FieldValue {
    FieldValue(.arrayRemove(UserDataReader.elements(elements, of: "FieldValue.arrayRemove()")))
  }

  /// Adds a number to the field; replaces a value that is not a number.
  @_disfavoredOverload
  open class func increment(_ d: Double) -> FieldValue { FieldValue(.number(.increment(.double(d)))) }

  /// Adds an integer to the field; replaces a value that is not a number. Integer sums saturate.
  open class func increment(_ l: Int64) -> FieldValue { FieldValue(.number(.increment(.integer(l)))) }

  /// Sets the field to the lesser of its value and a number.
  @_disfavoredOverload
  open class func minimum(_ d: Double) -> FieldValue { FieldValue(.number(.minimum(.double(d)))) }

  /// Sets the field to the lesser of its value and an integer.
  open class func minimum(_ l: Int64) -> FieldValue { FieldValue(.number(.minimum(.integer(l)))) }

  /// Sets the field to the greater of its value and a number.
  @_disfavoredOverload
  open class func maximum(_ d: Double) -> FieldValue { FieldValue(.number(.maximum(.double(d)))) }

  /// Sets the field to the greater of its value and an integer.
  open class func maximum(_ l: Int64) -> FieldValue { FieldValue(.number(.maximum(.integer(l)))) }

  /// Always throws, because only Firestore's encoder can encode a field value.
  open func encode(to encoder: any Swift.Encoder) throws {
    throw FirestoreEncodingError.encodingIsNotSupported(
      "FieldValue can only be encoded with Firestore.Encoder.")
  }

  /// The name of the method that made the value, for messages.
  var methodName: String {
    switch kind {
    case .delete: "FieldValue.delete()"
    case .serverTimestamp: "FieldValue.serverTimestamp()"
    case .number(.minimum): "FieldValue.minimum()"
    case .number(.maximum): "FieldValue.maximum()"
    case .number: "FieldValue.increment()"
    case .arrayUnion: "FieldValue.arrayUnion()"
    case .arrayRemove: "FieldValue.arrayRemove()"
    }
  }
}
