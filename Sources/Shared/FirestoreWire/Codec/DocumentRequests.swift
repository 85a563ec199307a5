// Decodes requests that write one document and return it, without the generated messages, which treat some different
// field names as equal (see WriteDecoding).

public import FirestoreModel

/// A `CreateDocumentRequest`.
public struct CreateDocumentRequest: Hashable, Sendable {
  /// The parent's name as it was sent.
  public var parent = ""
  /// The collection's id as it was sent.
  public var collectionID = ""
  /// The document's id as it was sent; empty if the server is to choose it.
  public var documentID = ""
  /// The name inside the document, which should be empty.
  public var documentName = ""
  /// The document's contents.
  public var fields = MapValue()
  /// The fields to return; nil for all.
  public var mask: FieldMask?

  /// Decodes a request, without keeping a reference to its bytes.
  ///
  /// - Throws: INVALID_ARGUMENT if the request is malformed.
  public init(decoding bytes: UnsafeRawBufferPointer) throws(FirestoreError) {
    var reader = ProtobufReader(bytes)
    var mask: MaskPaths?
    while let tag = try reader.nextTag() {
      switch tag.field {
      case 1:
        parent = try reader.string(tag)
      case 2:
        collectionID = try reader.string(tag)
      case 3:
        documentID = try reader.string(tag)
      case 4:
        var nested = try reader.message(tag)
        (documentName, fields) = try nested.namedFields()
      case 5:
        var nested = try reader.message(tag)
        try nested.mask(into: &mask, for: .read)
      default: try reader.skip(tag)
      }
    }
    self.mask = mask.map { FieldMask($0.paths) }
  }
}

/// An `UpdateDocumentRequest`.
public struct UpdateDocumentRequest: Hashable, Sendable {
  /// The document's name as it was sent.
  public var documentName = ""
  /// The document's new contents.
  public var fields = MapValue()
  /// The fields to set or remove; nil for the complete document.
  public var updateMask: [FieldPath]?
  /// The fields to return; nil for all.
  public var mask: FieldMask?
  /// The condition on the existing document.
  public var precondition: Precondition?

  /// Decodes a request, without keeping a reference to its bytes.
  ///
  /// - Throws: INVALID_ARGUMENT if the request is malformed.
  public init(decoding bytes: UnsafeRawBufferPointer) throws(FirestoreError) {
    var reader = ProtobufReader(bytes)
    var updateMask: MaskPaths?
    var mask: MaskPaths?
    while let tag = try reader.nextTag() {
      switch tag.field {
      case 1:
        var nested = try reader.message(tag)
        (documentName, fields) = try nested.namedFields()
      case 2:
        var nested = try reader.message(tag)
        try nested.mask(into: &updateMask, for: .write)
      case 3:
        var nested = try reader.message(tag)
        try nested.mask(into: &mask, for: .read)
      case 4:
        var nested = try reader.message(tag)
        precondition = try nested.precondition() ?? precondition
      default: try reader.skip(tag)
      }
    }
    self.updateMask = updateMask?.paths
    self.mask = mask.map { FieldMask($0.paths) }
  }
}

extension ProtobufReader {
  /// Reads a `Document` message. Returns its name as it was sent, and its fields.
  fileprivate mutating func namedFields() throws(FirestoreError) -> (String, MapValue) {
    var name = ""
    var entries: [MapValue.Entry] = []
    while let tag = try nextTag() {
      switch tag.field {
      case 1:
        name = try string(tag)
      case 2:
        var nested = try message(tag)
        entries.append(try nested.entry(depth: 0))
      default: try skip(tag)
      }
    }
    return (name, MapValue(unsorted: entries))
  }
}
