// Values that the server computes.

import FirestoreModel
public import Foundation

/// A value that stands for what the server is to do with a field.
public final class FieldValue: NSObject, Encodable, Sendable {
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

  /// Removes the field; for `updateData` and merges.
  public class func delete() -> FieldValue { deletion }

  /// The server's time when it commits the write.
  public class func serverTimestamp() -> FieldValue { timestamp }

  /// Appends those elements that the array does not hold; replaces what is no array.
  public class func arrayUnion(_ elements: [Any]) -> FieldValue {
    FieldValue(.arrayUnion(UserDataReader.elements(elements, of: "FieldValue.arrayUnion()")))
  }

  /// Removes every occurrence of the elements; replaces what is no array by an empty one.
  public class func arrayRemove(_ elements: [Any]) -> FieldValue {
    FieldValue(.arrayRemove(UserDataReader.elements(elements, of: "FieldValue.arrayRemove()")))
  }

  /// Adds a number to the field; replaces what is no number.
  @_disfavoredOverload
  public class func increment(_ d: Double) -> FieldValue { FieldValue(.number(.increment(.double(d)))) }

  /// Adds an integer to the field; replaces what is no number. Sums stay at the ends of the range.
  public class func increment(_ l: Int64) -> FieldValue { FieldValue(.number(.increment(.integer(l)))) }

  /// Keeps the lesser of the field and a number.
  @_disfavoredOverload
  public class func minimum(_ d: Double) -> FieldValue { FieldValue(.number(.minimum(.double(d)))) }

  /// Keeps the lesser of the field and an integer.
  public class func minimum(_ l: Int64) -> FieldValue { FieldValue(.number(.minimum(.integer(l)))) }

  /// Keeps the greater of the field and a number.
  @_disfavoredOverload
  public class func maximum(_ d: Double) -> FieldValue { FieldValue(.number(.maximum(.double(d)))) }

  /// Keeps the greater of the field and an integer.
  public class func maximum(_ l: Int64) -> FieldValue { FieldValue(.number(.maximum(.integer(l)))) }

  /// Always fails: only Firestore's own encoder can store a field value.
  public func encode(to encoder: any Swift.Encoder) throws {
    throw FirestoreEncodingError.encodingIsNotSupported(
      "FieldValue can only be encoded with Firestore.Encoder.")
  }

  /// The method by which the value was made, for messages.
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
