// Decodes requests for aggregations without the generated messages, which treat some different field names as equal
// (see QueryDecoding).

public import FirestoreModel

/// A `RunAggregationQueryRequest`.
public struct RunAggregationQueryRequest: Hashable, Sendable {
  /// The parent's name as it was sent.
  public var parent = ""
  /// The query and its aggregations; nil if none was sent.
  public var query: AggregationQuery?
  /// The state to read.
  public var consistency = ReadConsistency.latest
  /// The requested explanation.
  public var explain = ExplainMode.none

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
        query = try nested.aggregationQuery()
      case 4:
        consistency = .transaction(try reader.bytes(tag))
      case 5:
        var nested = try reader.message(tag)
        consistency = .newTransaction(try nested.transactionOptions(or: .readOnly()))
      case 6:
        var nested = try reader.message(tag)
        consistency = .readTime(try nested.timestamp())
      case 8:
        var nested = try reader.message(tag)
        explain = try nested.explainOptions()
      default: try reader.skip(tag)
      }
    }
  }
}

extension ProtobufReader {
  /// Reads a `StructuredAggregationQuery` message.
  fileprivate mutating func aggregationQuery() throws(FirestoreError) -> AggregationQuery {
    var base: StructuredQuery?
    var aggregations: [AggregationQuery.Aggregation] = []
    while let tag = try nextTag() {
      switch tag.field {
      case 1:
        var nested = try message(tag)
        base = try nested.structuredQuery()
      case 3:
        var nested = try message(tag)
        aggregations.append(try nested.aggregation())
      default: try skip(tag)
      }
    }
    guard let base else { throw .invalidArgument("only structured queries are supported") }
    return AggregationQuery(base, aggregations)
  }

  private mutating func aggregation() throws(FirestoreError) -> AggregationQuery.Aggregation {
    var alias = ""
    var op: AggregationQuery.Operator?
    while let tag = try nextTag() {
      switch tag.field {
      case 1:
        var nested = try message(tag)
        op = .count(upTo: try nested.countBound())
      case 2:
        var nested = try message(tag)
        op = .sum(try nested.aggregatedField())
      case 3:
        var nested = try message(tag)
        op = .average(try nested.aggregatedField())
      case 7:
        alias = try string(tag)
      default: try skip(tag)
      }
    }
    guard let op else { throw .invalidArgument("An aggregation must name its operator.") }
    return AggregationQuery.Aggregation(alias, op)
  }

  private mutating func countBound() throws(FirestoreError) -> Int64? {
    var bound: Int64?
    while let tag = try nextTag() {
      guard tag.field == 1 else {
        try skip(tag)
        continue
      }
      var nested = try message(tag)
      bound = try nested.int64Wrapper()
    }
    return bound
  }

  /// A `google.protobuf.Int64Value`.
  private mutating func int64Wrapper() throws(FirestoreError) -> Int64 {
    var value: Int64 = 0
    while let tag = try nextTag() {
      guard tag.field == 1 else {
        try skip(tag)
        continue
      }
      value = Int64(bitPattern: try varint(tag))
    }
    return value
  }

  private mutating func aggregatedField() throws(FirestoreError) -> FieldPath {
    var field = ""
    while let tag = try nextTag() {
      guard tag.field == 1 else {
        try skip(tag)
        continue
      }
      var nested = try message(tag)
      field = try nested.fieldReference()
    }
    return try FieldPath(parsing: field)
  }
}
