// Tests explained queries over real sockets: which messages arrive, and that the generated code decodes
// them.

import FirestoreProtobuf
import Foundation
import GRPCFraming
import SwiftProtobuf
import Testing

@testable import EndpointFixture

@Suite("Explained queries over gRPC", .timeLimit(.minutes(10)))
struct ExplainMethodTests {
  @Test(
    "Without `analyze` only the plan arrives; with `analyze`, plan and statistics arrive with the last document"
  )
  func queries() async throws {
    try await FirestoreTestServer.with { client in
      try await client.commit((0..<4).map { .set("c/d\($0)", ["n": .int(Int64($0))]) })
      var request = Google_Firestore_V1_RunQueryRequest.collection("c", where: "n", is: .int(2))
      request.explainOptions = .init()
      let planned: [Google_Firestore_V1_RunQueryResponse] = try await client.stream(
        "RunQuery", request, metadata: GRPCTestClient.administrator)
      #expect(planned.count == 1)
      let plan = try #require(planned.first)
      #expect(!plan.hasDocument && plan.hasExplainMetrics && !plan.explainMetrics.hasExecutionStats)
      let index = try #require(plan.explainMetrics.planSummary.indexesUsed.first)
      #expect(index.fields["query_scope"]?.stringValue == "Collection")
      #expect(index.fields["properties"]?.stringValue == "(n ASC, __name__ ASC)")

      request.explainOptions.analyze = true
      let analysed: [Google_Firestore_V1_RunQueryResponse] = try await client.stream(
        "RunQuery", request, metadata: GRPCTestClient.administrator)
      #expect(analysed.map(\.hasDocument) == [true])
      #expect(analysed.map(\.hasExplainMetrics) == [true])
      #expect(analysed.allSatisfy { $0.hasReadTime })
      let statistics = try #require(analysed.last?.explainMetrics.executionStats)
      #expect(statistics.resultsReturned == 1 && statistics.readOperations == 1)
      #expect(statistics.executionDuration.seconds > 0 || statistics.executionDuration.nanos > 0)
      #expect(statistics.debugStats.fields["documents_scanned"]?.stringValue == "1")
      #expect(statistics.debugStats.fields["index_entries_scanned"]?.stringValue == "1")
      let billing = try #require(statistics.debugStats.fields["billing_details"]?.structValue)
      #expect(billing.fields["documents_billable"]?.stringValue == "1")
      #expect(billing.fields["min_query_cost"]?.stringValue == "0")
    }
  }

  @Test("An aggregation's message has the plan; with `analyze` also the values and the statistics")
  func aggregations() async throws {
    try await FirestoreTestServer.with { client in
      try await client.commit((0..<4).map { .set("c/d\($0)", ["n": .int(Int64($0))]) })
      var request = Google_Firestore_V1_RunAggregationQueryRequest()
      request.parent = FirestoreTestServer.documents
      request.structuredAggregationQuery.structuredQuery = .collection("c")
      request.structuredAggregationQuery.aggregations = [
        .with {
          $0.alias = "n"
          $0.count = .init()
        }
      ]
      request.explainOptions.analyze = true
      let analysed: [Google_Firestore_V1_RunAggregationQueryResponse] = try await client.stream(
        "RunAggregationQuery", request, metadata: GRPCTestClient.administrator)
      #expect(analysed.count == 1)
      #expect(analysed.first?.result.aggregateFields["n"] == .int(4))
      #expect(analysed.first?.explainMetrics.executionStats.resultsReturned == 1)
      request.explainOptions.analyze = false
      let planned: [Google_Firestore_V1_RunAggregationQueryResponse] = try await client.stream(
        "RunAggregationQuery", request, metadata: GRPCTestClient.administrator)
      #expect(planned.count == 1 && planned.first?.hasResult == false)
      #expect(planned.first?.explainMetrics.planSummary.indexesUsed.count == 1)
    }
  }

  @Test("Vectors are sent as maps with a type key, and nearest neighbours arrive with their distance")
  func neighbours() async throws {
    func vector(_ numbers: [Double]) -> Google_Firestore_V1_Value {
      .with { value in
        value.mapValue.fields["__type__"] = .with { $0.stringValue = "__vector__" }
        value.mapValue.fields["value"] = .with { list in
          list.arrayValue.values = numbers.map { number in .with { $0.doubleValue = number } }
        }
      }
    }
    try await FirestoreTestServer.with { client in
      try await client.commit([
        .set("c/far", ["v": vector([9, 9])]), .set("c/near", ["v": vector([1, 1])]), .set("c/none", [:]),
      ])
      var request = Google_Firestore_V1_RunQueryRequest.collection("c")
      request.structuredQuery.findNearest = .with {
        $0.vectorField.fieldPath = "v"
        $0.queryVector = vector([1, 2])
        $0.distanceMeasure = .euclidean
        $0.limit = 5
        $0.distanceResultField = "away"
      }
      let found: [Google_Firestore_V1_RunQueryResponse] = try await client.stream(
        "RunQuery", request, metadata: GRPCTestClient.administrator)
      #expect(found.map { $0.document.name.split(separator: "/").last } == ["near", "far"])
      #expect(found.first?.document.fields["away"]?.doubleValue == 1)
      #expect(found.first?.document.fields["v"] == vector([1, 1]))
    }
  }
}
