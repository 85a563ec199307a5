// A stored document. It holds the encoded message, which is decoded only on demand.
//
// Invariant: `encoded` is a complete `google.firestore.v1.Document`. An endpoint copies it into a response
// unchanged. After a commit, all listeners share the document that the commit encoded once.

public import FirestoreModel
import FirestoreWire

/// One document at one version, immutable and shared.
public final class StoredDocument: Sendable {
  /// The complete name.
  public let name: DocumentName
  /// The time of the commit that created it, in microseconds.
  public let createTime: Timestamp
  /// The time of the last commit that changed it, in microseconds.
  public let updateTime: Timestamp
  /// The `google.firestore.v1.Document` message: name, fields and both times.
  public let encoded: [UInt8]

  /// The contents, if they were decoded when this object was made.
  private let decoded: MapValue?

  init(
    name: DocumentName, createTime: Timestamp, updateTime: Timestamp, encoded: [UInt8], decoded: MapValue?
  ) {
    self.name = name
    self.createTime = createTime
    self.updateTime = updateTime
    self.encoded = encoded
    self.decoded = decoded
  }

  /// Encodes a document.
  convenience init(name: DocumentName, createTime: Timestamp, updateTime: Timestamp, fields: MapValue) {
    let document = Document(name: name, fields: fields, createTime: createTime, updateTime: updateTime)
    self.init(
      name: name, createTime: createTime, updateTime: updateTime, encoded: DocumentCodec.encode(document),
      decoded: fields)
  }

  /// The contents. Decoded on every call unless they are cached.
  /// - Throws: DATA_LOSS if the stored bytes are not a document.
  public func fields() throws(FirestoreError) -> MapValue {
    if let decoded { return decoded }
    let result = encoded.withUnsafeBytes { bytes -> Result<MapValue, FirestoreError> in
      var reader = ProtobufReader(bytes)
      do throws(FirestoreError) {
        return .success(try reader.fields(at: 2))
      } catch {
        return .failure(FirestoreError(.dataLoss, "The stored document \(name) cannot be read."))
      }
    }
    return try result.get()
  }

  /// The document reduced to the fields of `mask`; the document itself if `mask` is nil.
  /// - Throws: DATA_LOSS if the stored bytes are not a document.
  func masked(_ mask: FieldMask?) throws(FirestoreError) -> StoredDocument {
    guard let mask else { return self }
    return StoredDocument(
      name: name, createTime: createTime, updateTime: updateTime, fields: try fields().projected(to: mask))
  }

  /// The same document with cached contents.
  /// - Throws: DATA_LOSS if the stored bytes are not a document.
  func withCachedFields() throws(FirestoreError) -> StoredDocument {
    if decoded != nil { return self }
    return StoredDocument(
      name: name, createTime: createTime, updateTime: updateTime, encoded: encoded, decoded: try fields())
  }
}
