// Tests the direct decoding of requests with documents and queries. It must give the same results as the code that
// protoc generates.

import FirestoreModel
import FirestoreProtobuf
import FirestoreWire
import Foundation
import SwiftProtobuf
import RandomModels
import Testing

@Suite("Requests with documents and queries", .timeLimit(.minutes(10)))
struct DirectRequestTests {
  private func read<Request>(
    _ message: some Message, _ body: (UnsafeRawBufferPointer) throws -> Request
  ) throws -> Request {
    let bytes: [UInt8] = try message.serializedBytes()
    return try bytes.withUnsafeBytes(body)
  }

  @Test("Random queries decode as with the generated code")
  func queries() throws {
    var source = RandomValues(seed: 71)
    for _ in 0..<3000 {
      let query = source.structuredQuery()
      let retried = source.bytes()
      let consistency: ReadConsistency = source.pick([
        .latest, .transaction([1, 2]), .newTransaction(.readOnly()),
        .newTransaction(.readOnly(readTime: Timestamp(microseconds: 5))),
        .newTransaction(.readWrite(retrying: retried.isEmpty ? nil : retried, concurrency: .optimistic)),
        .newTransaction(.readWrite(concurrency: .pessimistic)), .readTime(Timestamp(microseconds: 7)),
      ])
      let message = Google_Firestore_V1_RunQueryRequest.with {
        $0.parent = "projects/p/databases/d/documents"
        $0.structuredQuery = Google_Firestore_V1_StructuredQuery(query)
        switch consistency {
        case .latest: break
        case .transaction(let token): $0.transaction = Data(token)
        case .newTransaction(let options): $0.newTransaction = Google_Firestore_V1_TransactionOptions(options)
        case .readTime(let time): $0.readTime = Google_Protobuf_Timestamp(time)
        }
        $0.requestOptions.requestTags = ["ignored"]
      }
      let request = try read(message) { try RunQueryRequest(decoding: $0) }
      #expect(request.parent == message.parent)
      #expect(request.query == query, "\(query)")
      #expect(request.consistency == consistency)
      #expect(request.explain == .none)
    }
    let explained = Google_Firestore_V1_RunQueryRequest.with { $0.explainOptions.analyze = true }
    #expect(try read(explained) { try RunQueryRequest(decoding: $0) }.explain == .analyze)
    let planned = Google_Firestore_V1_RunQueryRequest.with { $0.explainOptions = .init() }
    #expect(try read(planned) { try RunQueryRequest(decoding: $0) }.explain == .plan)
  }

  @Test("Aggregations of random queries decode as with the generated code")
  func aggregations() throws {
    var source = RandomValues(seed: 72)
    for _ in 0..<1000 {
      var query = AggregationQuery(source.structuredQuery(), [])
      for _ in 0..<source.below(7) {
        let op: AggregationQuery.Operator = source.pick([
          .count(upTo: nil), .count(upTo: 7), .count(upTo: 1 << 40), .count(upTo: -1),
          .sum(source.fieldPath()),
          .average(source.fieldPath()),
        ])
        query.aggregations.append(.init(source.pick(["", "a", "ä"]), op))
      }
      let message = Google_Firestore_V1_RunAggregationQueryRequest.with {
        $0.parent = "projects/p/databases/d/documents"
        $0.structuredAggregationQuery = Google_Firestore_V1_StructuredAggregationQuery(query)
        $0.readTime = Google_Protobuf_Timestamp(Timestamp(microseconds: 7))
      }
      let request = try read(message) { try RunAggregationQueryRequest(decoding: $0) }
      #expect(request.parent == message.parent)
      #expect(request.query == query, "\(query)")
      #expect(request.consistency == .readTime(Timestamp(microseconds: 7)))
      #expect(request.explain == .none)
    }
    let explained = Google_Firestore_V1_RunAggregationQueryRequest.with { $0.explainOptions.analyze = true }
    #expect(try read(explained) { try RunAggregationQueryRequest(decoding: $0) }.explain == .analyze)
    let planned = Google_Firestore_V1_RunAggregationQueryRequest.with { $0.explainOptions = .init() }
    #expect(try read(planned) { try RunAggregationQueryRequest(decoding: $0) }.explain == .plan)
  }

  @Test("Requests that create and update one document decode as with the generated code")
  func documents() throws {
    var source = RandomValues(seed: 72)
    for _ in 0..<1500 {
      let (name, fields) = source.document()
      let mask: [FieldPath]? =
        source.below(2) == 0 ? nil : (0..<source.below(3)).map { _ in source.fieldPath() }
      let created = try read(
        Google_Firestore_V1_CreateDocumentRequest.with {
          $0.parent = "parent"
          $0.collectionID = "c"
          $0.documentID = "d"
          $0.document = Google_Firestore_V1_Document(name: name, fields: fields)
          if let mask { $0.mask = Google_Firestore_V1_DocumentMask(mask) }
        }
      ) { try CreateDocumentRequest(decoding: $0) }
      #expect(created.parent == "parent" && created.collectionID == "c" && created.documentID == "d")
      #expect(created.documentName == name.description && created.fields == fields)
      #expect(created.mask == mask.map { FieldMask($0) })
      let precondition: Precondition? = source.pick([
        nil, .exists(true), .updateTime(Timestamp(microseconds: 7)),
      ])
      let updated = try read(
        Google_Firestore_V1_UpdateDocumentRequest.with {
          $0.document = Google_Firestore_V1_Document(name: name, fields: fields)
          if let mask { $0.updateMask = Google_Firestore_V1_DocumentMask(mask) }
          if let precondition { $0.currentDocument = Google_Firestore_V1_Precondition(precondition) }
        }
      ) { try UpdateDocumentRequest(decoding: $0) }
      #expect(updated.documentName == name.description && updated.fields == fields)
      #expect(updated.updateMask == mask && updated.mask == nil && updated.precondition == precondition)
    }
  }

  @Test(
    "Masks and projections with many repeated paths decode in one pass, even if they occur in many fields"
  )
  func repeatedPaths() throws {
    func field(_ number: UInt8, _ content: [UInt8]) -> [UInt8] {
      var bytes = [number << 3 | 2]
      var length = content.count
      while length > 0x7F {
        bytes.append(UInt8(length & 0x7F) | 0x80)
        length >>= 7
      }
      return bytes + [UInt8(length)] + content
    }
    func times(_ count: Int, _ bytes: [UInt8]) -> [UInt8] { (0..<count).flatMap { _ in bytes } }
    let (a, inner) = (FieldPath(field: "a"), try FieldPath(parsing: "a.b"))
    let paths = field(1, Array("a".utf8)) + field(1, Array("a.b".utf8)) + field(1, Array("__name__".utf8))
    let pieces = times(100_000, field(3, paths))
    let clock = ContinuousClock()
    let time = try clock.measure {
      for bytes in [field(3, times(30_000, paths)), pieces] {
        let request = try bytes.withUnsafeBytes { try UpdateDocumentRequest(decoding: $0) }
        #expect(request.mask == [a])
        let document = field(1, Array("projects/p/databases/d/documents/c/d".utf8))
        let commit = try field(2, field(1, document) + bytes).withUnsafeBytes {
          try CommitRequest(decoding: $0)
        }
        #expect(commit.writes.first?.mask == [.documentID, a, inner])
      }
      let references = ["a", "a.b", "__name__"].flatMap { field(2, field(2, Array($0.utf8))) }
      for bytes in [field(1, times(30_000, references)), times(100_000, field(1, references))] {
        let request = try field(2, bytes).withUnsafeBytes { try RunQueryRequest(decoding: $0) }
        #expect(request.query?.select == [a])
      }
    }
    // Copying all earlier paths for each occurrence would take many minutes.
    #expect(time < .seconds(120))
  }

  @Test("A read's mask ignores paths that no document can have; a write's mask keeps them")
  func deepMaskPaths() throws {
    // The maps around a field count as levels; the field itself does not.
    let deepest = FieldPath(segments: Array(repeating: "a", count: Limits.maximumValueDepth + 1))
    let kept = try #require(deepest)
    let dropped = kept.appending("a")
    for (paths, mask) in [([dropped], []), ([dropped, kept], [kept])] as [([FieldPath], FieldMask)] {
      let message = Google_Firestore_V1_DocumentMask(paths)
      let request = try read(
        Google_Firestore_V1_UpdateDocumentRequest.with {
          $0.updateMask = message
          $0.mask = message
        }
      ) { try UpdateDocumentRequest(decoding: $0) }
      #expect(request.mask == mask && request.updateMask == paths)
      let created = try read(Google_Firestore_V1_CreateDocumentRequest.with { $0.mask = message }) {
        try CreateDocumentRequest(decoding: $0)
      }
      #expect(created.mask == mask)
      #expect(try FieldMask(message) == mask && [FieldPath](message) == paths)
      let query = Google_Firestore_V1_StructuredQuery.with {
        $0.select.fields = paths.map { path in .with { $0.fieldPath = path.description } }
      }
      let run = try read(Google_Firestore_V1_RunQueryRequest.with { $0.structuredQuery = query }) {
        try RunQueryRequest(decoding: $0)
      }
      #expect(run.query?.select == mask)
      #expect(try StructuredQuery(query).select == mask)
    }
  }

  @Test("Targets decode as with the generated code; an invalid target does not affect the request")
  func targets() throws {
    var source = RandomValues(seed: 73)
    for _ in 0..<500 {
      let query = source.structuredQuery()
      let request = try read(
        Google_Firestore_V1_ListenRequest.with {
          $0.database = "projects/p/databases/d"
          $0.addTarget.targetID = 7
          $0.addTarget.query.parent = "projects/p/databases/d/documents"
          $0.addTarget.query.structuredQuery = Google_Firestore_V1_StructuredQuery(query)
          $0.addTarget.resumeToken = Data([9])
          $0.addTarget.expectedCount = Google_Protobuf_Int32Value(3)
          $0.addTarget.once = true
        }
      ) { try ListenStreamRequest(decoding: $0) }
      guard case .add(let target)? = request.change, case .success(.query(let read)) = target.selection else {
        Issue.record("not read: \(query)")
        continue
      }
      #expect(read.structured == query && target.id == 7 && target.resumeToken == [9])
      #expect(target.expectedCount == 3 && target.once && target.readTime == nil)
    }
    let wrong = try read(
      Google_Firestore_V1_ListenRequest.with {
        $0.addTarget.query.structuredQuery.where.fieldFilter.op = .unspecified
        $0.addTarget.targetID = 8
      }
    ) { try ListenStreamRequest(decoding: $0) }
    guard case .add(let target)? = wrong.change, case .failure(let error) = target.selection else {
      Issue.record("an operator of zero was accepted")
      return
    }
    #expect(target.id == 8 && error.code == .invalidArgument)
    let removal = try read(Google_Firestore_V1_ListenRequest.with { $0.removeTarget = -4 }) {
      try ListenStreamRequest(decoding: $0)
    }
    guard case .remove(-4)? = removal.change else {
      Issue.record("not read: a removal")
      return
    }
  }

  @Test("Random bytes are rejected or decoded, and never crash; filters have a maximum depth")
  func malformedBytes() throws {
    var source = RandomValues(seed: 74)
    for _ in 0..<2000 {
      let message = Google_Firestore_V1_RunQueryRequest.with {
        $0.structuredQuery = Google_Firestore_V1_StructuredQuery(source.structuredQuery())
      }
      var bytes: [UInt8] = try message.serializedBytes()
      for _ in 0...source.below(3) {
        if source.below(2) == 0 { bytes.removeLast(source.below(bytes.count)) }
        if !bytes.isEmpty { bytes[source.below(bytes.count)] = UInt8(source.below(256)) }
      }
      do {
        _ = try bytes.withUnsafeBytes { try RunQueryRequest(decoding: $0) }
      } catch { #expect((error as? FirestoreError)?.code == .invalidArgument) }
      _ = try? bytes.withUnsafeBytes { try ListenStreamRequest(decoding: $0) }
      _ = try? bytes.withUnsafeBytes { try CreateDocumentRequest(decoding: $0) }
      _ = try? bytes.withUnsafeBytes { try UpdateDocumentRequest(decoding: $0) }
    }
    var filter = Google_Firestore_V1_StructuredQuery.Filter.with { $0.unaryFilter.op = .isNull }
    filter.unaryFilter.field.fieldPath = "a"
    for _ in 0..<150 {
      let inner = filter
      filter = .with {
        $0.compositeFilter.op = .and
        $0.compositeFilter.filters = [inner]
      }
    }
    let deep = filter
    #expect(throws: FirestoreError.self) {
      try read(Google_Firestore_V1_RunQueryRequest.with { $0.structuredQuery.where = deep }) {
        try RunQueryRequest(decoding: $0)
      }
    }
  }
}
