// Decodes requests to partition a query without the generated messages, which treat some different field names as equal
// (see QueryDecoding).

public import FirestoreModel

/// A `PartitionQueryRequest`.
public struct PartitionRequest: Hashable, Sendable {
  /// The parent's name as it was sent.
  public var parent = ""
  /// The query; nil if none was sent.
  public var query: StructuredQuery?
  /// The maximum number of partition points as it was sent.
  public var count: Int64 = 0
  /// The token of the previous page; empty for the first page.
  public var pageToken = ""
  /// The maximum number of partition points in a page as it was sent.
  public var pageSize: Int32 = 0
  /// The time of the state to read; nil for the current state.
  public var readTime: Timestamp?

  /// Decodes a request, without keeping a reference to its bytes.
  ///
  /// - Throws: INVALID_ARGUMENT if the request is malformed.
  public init(decoding bytes: UnsafeRawBufferPointer) throws(FirestoreError) {
    var reader = ProtobufReader(bytes)
    while let tag = try reader.nextTag() {
      switch tag.field {
      case 1:
        parent = try reader.string(tag)
      case 2:
        var nested = try reader.message(tag)
        query = try nested.structuredQuery()
      case 3:
        count = Int64(bitPattern: try reader.varint(tag))
      case 4:
        pageToken = try reader.string(tag)
      case 5:
        pageSize = try reader.int32(tag)
      case 6:
        var nested = try reader.message(tag)
        readTime = try nested.timestamp()
      default: try reader.skip(tag)
      }
    }
  }
}
