// Tests the limits at their highest values, over a socket and with a store on disk. A value at the limit is
// stored, read, queried, listened to, exported and imported. A larger one is rejected with the usual text
// and the new number.

import FirestoreEngine
import FirestoreModel
import FirestoreProtobuf
import FirestoreWire
import Foundation
import GRPCFraming
import HearthServer
import JSON
import RealtimeModel
import SwiftProtobuf
import Testing

@testable import EndpointFixture

@Suite("Raised limits over gRPC", .timeLimit(.minutes(20)))
struct RaisedLimitTests {
  /// Raises every limit of Cloud Firestore to its maximum. `LimitsJSONTests/bounds` tests that these are
  /// the maximums.
  static func raise(_ configuration: inout HearthConfiguration) {
    configuration.limits.firestore.data.documentBytes = 10 << 20
    configuration.limits.firestore.data.valueBytes = (10 << 20) - 89
    configuration.limits.firestore.data.valueDepth = 31
    configuration.limits.firestore.data.vectorDimensions = 65_536
    configuration.limits.firestore.data.transformsPerDocument = 5_000
    configuration.limits.firestore.data.disjunctions = 500
    configuration.limits.firestore.data.notInValues = 500
    configuration.limits.firestore.data.filtersAndOrders = 500
    configuration.limits.firestore.data.inequalityFields = 100
    configuration.limits.firestore.data.aggregations = 100
    configuration.limits.firestore.data.nearestNeighbours = 10_000
    configuration.limits.firestore.maximumRequestBytes = 16 << 20
    configuration.limits.firestore.maximumIndexEntries = 200_000
    configuration.limits.firestore.maximumIndexEntryBytes = 16_384
    configuration.limits.firestore.maximumIndexEntriesBytes = 16 << 20
  }

  static let cases: [LimitCase] = [
    LimitCase(
      "a document's size",
      "its size (10,485,761 bytes) exceeds the maximum allowed size of 10,485,760 bytes",
      fields: { LimitCase.document(of: (10 << 20) + $0) }),
    LimitCase(
      "a text", "The value of property \"t\" is longer than 10485671 bytes.",
      fields: { ["t": .string(LimitCase.text((10 << 20) - 89 + $0))] }),
    LimitCase(
      "levels of maps and arrays", "is nested more than 31 levels",
      fields: { ["v": LimitCase.nested(31 + $0)] }),
    LimitCase(
      "dimensions of a vector", "more than 65536 dimensions",
      fields: { ["v": .vector([Double](repeating: 1, count: 65_536 + $0))] }),
    LimitCase("transforms of one write", "Cannot apply more than 5000 field transforms") { excess in
      LimitCase.request([
        Write(
          .update(try LimitCase.name("c/d"), fields: [:]),
          transforms: LimitCase.increments(5_000 + excess, in: 0..<1))
      ])
    },
    LimitCase(
      "index entries", "INDEX_ENTRIES_COUNT_LIMIT_EXCEEDED",
      fields: { ["a": .array((0..<(99_999 + $0)).map { .integer(Int64($0)) })] }),
    LimitCase(
      "bytes of all index entries", "The document's index entries are larger than 16777216 bytes in all."
    ) { excess in
      // 5,000 elements are far below the limit, and 13,000 far above. An exact number would depend on the encoding
      // of the entries: each has the field's name, the number and 18 bytes.
      let elements = (0..<(excess > 0 ? 13_000 : 5_000)).map { Value.integer($0) }
      return LimitCase.request([
        Write(
          .update(
            try LimitCase.name("c/d"),
            fields: [String(repeating: "n", count: 1_400): .array(elements)]))
      ])
    },
    LimitCase("a request", "Request payload size exceeds the limit: 16777216 bytes.") { excess in
      var request = LimitCase.request([Write(.update(try LimitCase.name("c/d"), fields: ["n": 1]))])
      let size: [UInt8] = try request.serializedBytes()
      request.requestOptions.requestTags = [LimitCase.text((16 << 20) - size.count - 10 + excess)]
      let filled: [UInt8] = try request.serializedBytes()
      #expect(filled.count == (16 << 20) + excess)
      return request
    },
  ]

  @Test(
    "A request at the raised limit passes and is read back; for a larger request the error has the raised limit",
    arguments: cases)
  func bounds(limit: LimitCase) async throws {
    let directory = FirestoreTestServer.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    try await FirestoreTestServer.with(.directory(directory), Self.raise) { client in
      do {
        let _: Google_Firestore_V1_CommitResponse = try await client.unary("Commit", try limit.commit(1))
        Issue.record("a request above the limit succeeded: \(limit.testDescription)")
      } catch let status as GRPCStatus {
        #expect(status.code == .invalidArgument, "\(status)")
        #expect(status.message.contains(limit.message), "\(status.message.prefix(300))")
      }
      let passing = try limit.commit(0)
      let _: Google_Firestore_V1_CommitResponse = try await client.unary("Commit", passing)
      let stored = try await client.get("c/d")
      if passing.writes[0].updateTransforms.isEmpty {
        #expect(stored.fields == passing.writes[0].update.fields)
      }
      // The same write again replaces the document, so one commit removes the old index entries and adds the new
      // index entries.
      let _: Google_Firestore_V1_CommitResponse = try await client.unary("Commit", passing)
      try await client.commit([.delete("c/d")])
    }
  }

  @Test("A value at the maximum depth is queried, listened to, served by REST, exported and imported")
  func depth() async throws {
    let directory = FirestoreTestServer.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    let value = LimitCase.nested(31)
    let maps = (0..<31).reduce(Value.integer(1)) { value, _ in .map(["m": value]) }
    let write = Write(.update(try LimitCase.name("c/d"), fields: ["v": value, "w": maps, "n": 7]))
    let fields = LimitCase.request([write]).writes[0].update.fields
    func check(_ client: GRPCTestClient) async throws {
      #expect(try await client.get("c/d").fields == fields)
      var query = Google_Firestore_V1_RunQueryRequest()
      query.parent = FirestoreTestServer.documents
      query.structuredQuery.from = [.with { $0.collectionID = "c" }]
      query.structuredQuery.where.fieldFilter.field.fieldPath = "w"
      query.structuredQuery.where.fieldFilter.op = .equal
      query.structuredQuery.where.fieldFilter.value = try #require(fields["w"])
      #expect(try await client.query(query).map(\.document.fields) == [fields])
      let listener = try await ListenClient(client)
      try await listener.add(1, query.structuredQuery)
      #expect(try await listener.snapshot { $0.targets[1]?.isEmpty == false }.targets[1] == ["c/d": 7])
    }
    let server = try await FirestoreTestServer.start(.directory("\(directory)/data"), Self.raise)
    try await server.client.commit([Proto.Write(write)])
    try await check(server.client)
    let get = try await server.rest("GET", "/v1/\(FirestoreTestServer.documents)/c/d")
    #expect(get.status == 200)
    // REST accepts the JSON that it returns.
    let patch = try await server.rest(
      "PATCH", "/v1/\(FirestoreTestServer.documents)/c/e",
      "{\"fields\":\(String(decoding: get.json["fields"].value.json(), as: UTF8.self))}")
    #expect(patch.status == 200, "\(patch.body.prefix(300))")
    #expect(try await server.client.get("c/e").fields == fields)
    try await server.client.commit([.delete("c/e")])
    let databaseMember = "\"database\":\"\(FirestoreTestServer.database)\""
    let export = try await server.rest(
      "POST", "/emulator/v1/projects/demo-test:export",
      "{\(databaseMember),\"export_directory\":\"\(directory)\",\"export_name\":\"n\"}")
    #expect(export.status == 200, "\(export.body)")
    await server.stop()

    let importing = try await FirestoreTestServer.start(.ephemeral, Self.raise)
    let imported = try await importing.rest(
      "POST", "/emulator/v1/projects/demo-test:import",
      "{\(databaseMember),\"export_directory\":\"\(directory)/n/n.overall_export_metadata\"}")
    #expect(imported.status == 200, "\(imported.body)")
    try await check(importing.client)
    await importing.stop()

    // A server with the default limits reads the stored value and accepts no new one.
    try await FirestoreTestServer.with(.directory("\(directory)/data")) { client in
      try await check(client)
      await #expect(throws: GRPCStatus.self) { try await client.commit([Proto.Write(write)]) }
      try await client.commit([.delete("c/d")])
    }
  }

  @Test(
    "The largest document is read, queried, listened to and exported, and its row fits the store")
  func largest() async throws {
    let directory = FirestoreTestServer.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    try await FirestoreTestServer.serving(Self.raise) { server in
      let client = server.client
      let write = Write(
        .update(try LimitCase.name("c/d"), fields: ["n": 1, "t": .string(LimitCase.text((10 << 20) - 100))]))
      try await client.commit([Proto.Write(write)])
      let listener = try await ListenClient(client)
      try await listener.add(1, .with { $0.from = [.with { $0.collectionID = "c" }] })
      #expect(try await listener.snapshot { $0.targets[1]?.isEmpty == false }.targets[1] == ["c/d": 1])
      let get = try await server.rest("GET", "/v1/\(FirestoreTestServer.documents)/c/d")
      #expect(get.status == 200 && get.body.utf8.count > 10 << 20)
      let databaseMember = "\"database\":\"\(FirestoreTestServer.database)\""
      for (verb, body) in [
        ("export", "{\(databaseMember),\"export_directory\":\"\(directory)\",\"export_name\":\"n\"}"),
        ("import", "{\(databaseMember),\"export_directory\":\"\(directory)/n/n.overall_export_metadata\"}"),
      ] {
        let reply = try await server.rest("POST", "/emulator/v1/projects/demo-test:\(verb)", body)
        #expect(reply.status == 200, "\(reply.body)")
      }
      #expect(try await client.get("c/d").fields["t"]?.stringValue.utf8.count == (10 << 20) - 100)
      // A negative number counts eight bytes for the document limit but takes thirteen bytes in the stored row.
      // Many such numbers exceed the store's limit on a row before the document limit.
      var status = GRPCStatus.ok
      for field in 0..<2 {
        let fields: MapValue = ["f\(field)": .array([Value](repeating: -1, count: 650_000))]
        let merge = Write(
          .update(try LimitCase.name("c/e"), fields: fields), mask: [FieldPath(field: "f\(field)")])
        do { try await client.commit([Proto.Write(merge)]) } catch let failure as GRPCStatus {
          status = failure
          #expect(field == 1)
        }
      }
      #expect(status.code == .invalidArgument, "\(status)")
      #expect(try await client.get("c/e").fields.count == 1)
    }
  }

  @Test("Queries at the raised limits succeed; for queries above these limits the error has the raised limit")
  func queries() async throws {
    try await FirestoreTestServer.with(.ephemeral, Self.raise) { client in
      try await client.commit((0..<600).map { .set("c/d\($0)", ["n": .int(Int64($0)), "z": .int(0)]) })
      func numbers(_ range: Range<Int>) -> Proto.Value {
        var value = Proto.Value()
        value.arrayValue.values = range.map { .int(Int64($0)) }
        return value
      }
      func filter(
        _ field: String, _ op: Google_Firestore_V1_StructuredQuery.FieldFilter.Operator, _ value: Proto.Value
      ) -> Google_Firestore_V1_StructuredQuery.Filter {
        .with {
          $0.fieldFilter.field.fieldPath = field
          $0.fieldFilter.op = op
          $0.fieldFilter.value = value
        }
      }
      func composite(
        _ op: Google_Firestore_V1_StructuredQuery.CompositeFilter.Operator,
        _ parts: [Google_Firestore_V1_StructuredQuery.Filter]
      ) -> Google_Firestore_V1_StructuredQuery.Filter {
        .with {
          $0.compositeFilter.op = op
          $0.compositeFilter.filters = parts
        }
      }
      func run(_ filter: Google_Firestore_V1_StructuredQuery.Filter) async throws -> Int {
        var request = Google_Firestore_V1_RunQueryRequest()
        request.parent = FirestoreTestServer.documents
        request.structuredQuery.from = [.with { $0.collectionID = "c" }]
        request.structuredQuery.where = filter
        return try await client.query(request).count { $0.hasDocument }
      }
      let cases: [(String, String, (Int) -> Google_Firestore_V1_StructuredQuery.Filter, Int)] = [
        (
          "in", "'IN' supports up to 500 comparison values.", { filter("n", .in, numbers(0..<500 + $0)) }, 500
        ),
        (
          "or", "more than 500 disjunctions",
          { excess in
            composite(
              .and,
              [
                composite(.or, (0..<(5 + excess)).map { filter("z", .equal, .int(Int64($0))) }),
                filter("n", .in, numbers(0..<100)),
              ])
          }, 100
        ),
        (
          "not-in", "supports up to 500 comparison values.", { filter("n", .notIn, numbers(0..<500 + $0)) },
          100
        ),
        (
          "filters", "The query has more than 500 filters and orders.",
          { composite(.and, (0..<500 + $0).map { _ in filter("z", .equal, .int(0)) }) }, 600
        ),
        (
          "inequalities", "on more than 100 fields",
          { composite(.and, (0..<100 + $0).map { filter("i\($0)", .greaterThan, .int(0)) }) }, 1
        ),
      ]
      try await client.commit([
        .set("c/i", Dictionary(uniqueKeysWithValues: (0..<101).map { ("i\($0)", .int(1)) }))
      ])
      for (name, message, filter, count) in cases {
        #expect(try await run(filter(0)) == count, "\(name)")
        do {
          _ = try await run(filter(1))
          Issue.record("a query above the limit succeeded: \(name)")
        } catch let status as GRPCStatus {
          #expect(status.code == .invalidArgument && status.message.contains(message), "\(name): \(status)")
        }
      }

      // The limits also apply in a transaction and to a listener.
      let begun: Google_Firestore_V1_BeginTransactionResponse = try await client.unary(
        "BeginTransaction",
        Google_Firestore_V1_BeginTransactionRequest.with { $0.database = FirestoreTestServer.database })
      var request = Google_Firestore_V1_RunQueryRequest()
      request.parent = FirestoreTestServer.documents
      request.structuredQuery.from = [.with { $0.collectionID = "c" }]
      request.structuredQuery.where = filter("n", .in, numbers(0..<500))
      request.transaction = begun.transaction
      #expect(try await client.query(request).count { $0.hasDocument } == 500)
      try await client.commit([.set("c/d0", ["n": .int(-1)])], transaction: begun.transaction)
      let listener = try await ListenClient(client)
      try await listener.add(1, request.structuredQuery)
      #expect(try await listener.snapshot { $0.targets[1]?.count == 499 }.targets[1]?["c/d7"] == 7)
      try await client.commit([.delete("c/d7")])
      #expect(try await listener.snapshot().targets[1]?.count == 498)

      // The limits also apply to aggregations and nearest neighbours.
      func aggregate(_ count: Int) async throws -> Int {
        var request = Google_Firestore_V1_RunAggregationQueryRequest()
        request.parent = FirestoreTestServer.documents
        request.structuredAggregationQuery.structuredQuery.from = [.with { $0.collectionID = "c" }]
        request.structuredAggregationQuery.aggregations = (0..<count).map { _ in
          .with { $0.sum.field.fieldPath = "z" }
        }
        let responses: [Google_Firestore_V1_RunAggregationQueryResponse] = try await client.stream(
          "RunAggregationQuery", request)
        return try #require(responses.first).result.aggregateFields.count
      }
      #expect(try await aggregate(100) == 100)
      let many = try await status { _ = try await aggregate(101) }
      #expect(
        many.code == .invalidArgument && many.message.contains("in an aggregation query is 100. "), "\(many)")
      func nearest(_ limit: Int32) async throws -> Int {
        var request = Google_Firestore_V1_RunQueryRequest()
        request.parent = FirestoreTestServer.documents
        request.structuredQuery.from = [.with { $0.collectionID = "v" }]
        request.structuredQuery.findNearest = .with {
          $0.vectorField.fieldPath = "v"
          $0.queryVector = Google_Firestore_V1_Value(.vector([1, 2]))
          $0.distanceMeasure = .euclidean
          $0.limit = .init(limit)
        }
        return try await client.query(request).count { $0.hasDocument }
      }
      try await client.commit([.set("v/d", ["v": Google_Firestore_V1_Value(.vector([1, 1]))])])
      #expect(try await nearest(10_000) == 1)
      let aboveLimit = try await status { _ = try await nearest(10_001) }
      #expect(
        aboveLimit.code == .invalidArgument && aboveLimit.message.contains("a limit of 1 to 10000"),
        "\(aboveLimit)")
    }
  }

  private func status(_ body: () async throws -> Void) async throws -> GRPCStatus {
    do { try await body() } catch let status as GRPCStatus { return status }
    return .ok
  }
}
