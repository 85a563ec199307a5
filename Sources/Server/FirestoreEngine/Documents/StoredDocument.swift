// A document as it lies in the store: its wire bytes, decoded only by those who look inside.
//
// Invariant: `encoded` is a complete `google.firestore.v1.Document`, so that an endpoint copies it into its
// answer as it is, and one commit's document is encoded once however many listeners get it.

public import FirestoreModel
import FirestoreWire

/// One document at one version, immutable and shared.
public final class StoredDocument: Sendable {
  /// The full name.
  public let name: DocumentName
  /// The commit that created it, in microseconds.
  public let createTime: Timestamp
  /// The last commit that changed its contents, in microseconds.
  public let updateTime: Timestamp
  /// The `google.firestore.v1.Document` message: name, fields and both times.
  public let encoded: [UInt8]

  /// The contents, where whoever made this had them decoded anyway.
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

  /// The contents; decoded on every call where they were not at hand.
  /// - Throws: DATA_LOSS if the stored bytes are no document.
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

  /// The document with only some fields; the same one for nil.
  /// - Throws: DATA_LOSS if the stored bytes are no document.
  func masked(_ mask: FieldMask?) throws(FirestoreError) -> StoredDocument {
    guard let mask else { return self }
    return StoredDocument(
      name: name, createTime: createTime, updateTime: updateTime, fields: try fields().projected(to: mask))
  }

  /// The same document and contents, with the contents decoded once for whoever looks again.
  func decodedOnce() throws(FirestoreError) -> StoredDocument {
    if decoded != nil { return self }
    return StoredDocument(
      name: name, createTime: createTime, updateTime: updateTime, encoded: encoded, decoded: try fields())
  }
}
