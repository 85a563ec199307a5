// The request for points that split a query, from wire bytes, as every request that carries a query.

public import FirestoreModel

/// A `PartitionQueryRequest`.
public struct PartitionRequest: Hashable, Sendable {
  /// The parent's name as it was sent.
  public var parent = ""
  /// The query; nil if none was sent.
  public var query: StructuredQuery?
  /// How many points are wanted at most, as it was sent.
  public var count: Int64 = 0
  /// Where the page before ended; empty for the first.
  public var pageToken = ""
  /// How many points a page should have at most, as it was sent.
  public var pageSize: Int32 = 0
  /// The time to read at; nil for now.
  public var readTime: Timestamp?

  /// Reads a request; INVALID_ARGUMENT if it is malformed. The bytes are not kept.
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
