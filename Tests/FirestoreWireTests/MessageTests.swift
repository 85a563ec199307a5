// Tests the conversions between generated messages and the model. Both directions must be lossless.

import FirestoreModel
import FirestoreProtobuf
import FirestoreWire
import RandomModels
import SwiftProtobuf
import Testing

extension RandomValues {
  mutating func transform() -> FieldTransform {
    let operation: FieldTransform.Operation
    switch below(6) {
    case 0: operation = .serverTimestamp
    case 1: operation = .increment(number())
    case 2: operation = .maximum(number())
    case 3: operation = .minimum(number())
    case 4: operation = .appendMissing([value(depth: 2, inArray: true)])
    default: operation = .removeAll([value(depth: 2, inArray: true), 1])
    }
    return FieldTransform(fieldPath(), operation)
  }

  mutating func write() -> Write {
    let (name, fields) = document()
    let precondition: Precondition? = pick([
      nil, .exists(true), .exists(false), .updateTime(Timestamp(microseconds: 7)),
    ])
    switch below(5) {
    case 0: return Write(.delete(name), precondition: precondition)
    case 1: return Write(.verify(name), precondition: precondition)
    case 2: return Write(.transform(name, [transform()]), precondition: precondition)
    default:
      return Write(
        .update(name, fields: fields), mask: below(2) == 0 ? nil : (0..<below(3)).map { _ in fieldPath() },
        transforms: (0..<below(3)).map { _ in transform() }, precondition: precondition)
    }
  }
}

@Suite("Messages and the model", .timeLimit(.minutes(10)))
struct MessageTests {
  @Test("Writes are unchanged after conversion to bytes and back, including the presence of a mask")
  func writes() throws {
    var source = RandomValues(seed: 51)
    for _ in 0..<3000 {
      let write = source.write()
      let bytes: [UInt8] = try Google_Firestore_V1_Write(write).serializedBytes()
      #expect(try Write(Google_Firestore_V1_Write(serializedBytes: bytes)) == write)
    }
  }

  @Test("A verify operation is encoded as field 5 of a write message, a string")
  func verifyField() throws {
    let name = try DocumentName(parsing: "projects/p/databases/d/documents/c/d")
    let bytes: [UInt8] = try Google_Firestore_V1_Write(Write(.verify(name))).serializedBytes()
    #expect(bytes.first == UInt8(5 << 3 | 2))
    #expect(Array(bytes.dropFirst(2)) == Array(name.description.utf8))
  }

  @Test("Queries are unchanged after conversion to bytes or JSON and back")
  func queries() throws {
    var source = RandomValues(seed: 52)
    for round in 0..<2000 {
      let query = source.structuredQuery()
      let message = Google_Firestore_V1_StructuredQuery(query)
      let bytes: [UInt8] = try message.serializedBytes()
      #expect(try StructuredQuery(Google_Firestore_V1_StructuredQuery(serializedBytes: bytes)) == query)
      if round % 10 == 0 {
        let json = try Google_Firestore_V1_StructuredQuery(jsonString: message.jsonString())
        #expect(try StructuredQuery(json) == query)
      }
    }
  }

  @Test("Aggregations are unchanged after conversion to messages and back")
  func aggregations() throws {
    let query = AggregationQuery(
      StructuredQuery(from: [.init("books")]),
      [
        .init("n", .count(upTo: nil)), .init("m", .count(upTo: 5)), .init("", .sum(FieldPath(field: "a.b"))),
        .init("v", .average(FieldPath(field: "x"))),
      ])
    #expect(try AggregationQuery(Google_Firestore_V1_StructuredAggregationQuery(query)) == query)
    #expect(throws: FirestoreError.self) {
      try AggregationQuery(Google_Firestore_V1_StructuredAggregationQuery())
    }
  }

  @Test("Transaction options are unchanged after conversion; a missing mode means the caller's default")
  func transactions() {
    for options: TransactionOptions in [
      .readWrite(), .readWrite(retrying: [1, 2], concurrency: .optimistic),
      .readWrite(concurrency: .pessimistic), .readOnly(), .readOnly(readTime: Timestamp(microseconds: 9)),
    ] {
      let fallback = TransactionOptions.readOnly(readTime: .maximum)
      #expect(TransactionOptions(Google_Firestore_V1_TransactionOptions(options), or: fallback) == options)
    }
    #expect(TransactionOptions(Google_Firestore_V1_TransactionOptions(), or: .readWrite()) == .readWrite())
  }

  @Test("Results, statuses and existence filters are unchanged after conversion to messages and back")
  func results() throws {
    let result = WriteResult(updateTime: Timestamp(microseconds: 3), transformResults: [1, .null])
    #expect(try WriteResult(Google_Firestore_V1_WriteResult(result)) == result)
    #expect(try WriteResult(Google_Firestore_V1_WriteResult()).updateTime == nil)
    let error = FirestoreError(.aborted, "again")
    #expect(FirestoreError(Google_Rpc_Status(error)) == error && FirestoreError(Google_Rpc_Status()) == nil)
    let name = try DocumentName(parsing: "projects/p/databases/d/documents/c/d")
    let filter = BloomFilter([name])
    #expect(BloomFilter(Google_Firestore_V1_BloomFilter(filter)) == filter)
    #expect(BloomFilter(Google_Firestore_V1_BloomFilter.with { $0.bits.padding = 9 }) == nil)
  }

  @Test("Empty messages are rejected with Cloud Firestore's error message")
  func rejections() {
    func message(_ body: () throws -> Void) -> String? {
      do {
        try body()
        return nil
      } catch { return (error as? FirestoreError)?.message }
    }
    typealias Query = Google_Firestore_V1_StructuredQuery
    func filtered(_ change: (inout Query.Filter) -> Void) -> String? {
      message { _ = try StructuredQuery(Query.with { change(&$0.where) }) }
    }
    #expect(message { _ = try Write(Google_Firestore_V1_Write()) } == "empty write operation")
    #expect(filtered { $0.compositeFilter = .init() } == "Unsupported CompositeFilter operator.")
    #expect(
      filtered {
        $0.fieldFilter.field.fieldPath = "a"
        $0.fieldFilter.value.integerValue = 1
      } == "Unknown FieldFilter operator.")
    #expect(filtered { $0.unaryFilter.field.fieldPath = "a" } == "Unknown UnaryFilter operator.")
    #expect(filtered { $0 = .init() } == "A filter must name its type.")
    #expect(
      message { _ = try FieldTransform(.with { $0.fieldPath = "a" }) }
        == "A field transform must name its type.")
    #expect(
      message { _ = try StructuredQuery(Query.with { $0.orderBy = [.init()] }) }?.hasPrefix(
        "Invalid property path")
        == true)
  }
}
