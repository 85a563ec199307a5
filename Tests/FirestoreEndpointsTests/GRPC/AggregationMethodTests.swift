// Tests RunAggregationQuery over real sockets: its messages and their fields.

import FirestoreProtobuf
import Foundation
import GRPCFraming
import HearthServer
import SwiftProtobuf
import Testing

@testable import EndpointFixture

@Suite("RunAggregationQuery over gRPC", .timeLimit(.minutes(10)))
struct AggregationMethodTests {
  private typealias Request = Google_Firestore_V1_RunAggregationQueryRequest
  private typealias Response = Google_Firestore_V1_RunAggregationQueryResponse

  private func request(_ collection: String) -> Request {
    var request = Request()
    request.parent = FirestoreTestServer.documents
    request.structuredAggregationQuery.structuredQuery = .collection(collection)
    request.structuredAggregationQuery.aggregations = [
      .with {
        $0.alias = "many"
        $0.count = .init()
      },
      .with { $0.sum.field.fieldPath = "n" },
      .with { $0.avg.field.fieldPath = "n" },
    ]
    return request
  }

  @Test("The response is one message with the values by alias and the read time")
  func oneMessage() async throws {
    try await FirestoreTestServer.with { client in
      try await client.commit((0..<4).map { .set("c/d\($0)", ["n": .int(Int64($0))]) })
      let responses: [Response] = try await client.stream("RunAggregationQuery", request("c"))
      #expect(responses.count == 1)
      let response = try #require(responses.first)
      #expect(response.hasReadTime && response.transaction.isEmpty)
      #expect(response.result.aggregateFields["many"] == .int(4))
      #expect(response.result.aggregateFields["field_1"] == .int(6))
      #expect(response.result.aggregateFields["field_2"]?.doubleValue == 1.5)
      #expect(response.result.aggregateFields.count == 3)

      let empty: [Response] = try await client.stream("RunAggregationQuery", request("none"))
      #expect(empty.count == 1)
      #expect(empty.first?.result.aggregateFields["many"] == .int(0))
      #expect(empty.first?.result.aggregateFields["field_2"]?.valueType == .nullValue(.nullValue))

      var bounded = request("c")
      bounded.structuredAggregationQuery.aggregations = [.with { $0.count.upTo = .init(3) }]
      let atMostThree: [Response] = try await client.stream("RunAggregationQuery", bounded)
      #expect(atMostThree.first?.result.aggregateFields == ["field_1": .int(3)])
    }
  }

  @Test(
    "The token of a transaction that the call begins arrives before the result; a past read time selects the past state"
  )
  func consistency() async throws {
    try await FirestoreTestServer.with { client in
      let first = try await client.commit([.set("c/a", ["n": .int(1)])])
      try await client.commit([.set("c/b", ["n": .int(2)])])
      var past = request("c")
      past.readTime = first.commitTime
      let before: [Response] = try await client.stream("RunAggregationQuery", past)
      #expect(before.first?.result.aggregateFields["many"] == .int(1))
      #expect(before.first?.readTime == first.commitTime)

      var beginRequest = request("c")
      beginRequest.newTransaction.readOnly = .init()
      let responses: [Response] = try await client.stream("RunAggregationQuery", beginRequest)
      #expect(responses.count == 2)
      #expect(responses.first?.transaction.isEmpty == false && responses.first?.hasResult == false)
      #expect(responses.last?.result.aggregateFields["many"] == .int(2))
      try await client.commit([.set("c/c", ["n": .int(3)])])
      var inTransaction = request("c")
      inTransaction.transaction = try #require(responses.first?.transaction)
      let again: [Response] = try await client.stream("RunAggregationQuery", inTransaction)
      #expect(again.first?.result.aggregateFields["many"] == .int(2))
    }
  }

  @Test("Invalid aggregations are INVALID_ARGUMENT, with the official error texts")
  func invalidAggregations() async throws {
    try await FirestoreTestServer.with { client in
      func rejection(_ request: Request) async -> GRPCStatus? {
        do {
          let _: [Response] = try await client.stream("RunAggregationQuery", request)
          return nil
        } catch { return error as? GRPCStatus }
      }
      var withoutAggregations = request("c")
      withoutAggregations.structuredAggregationQuery.aggregations = []
      #expect(
        await rejection(withoutAggregations) == GRPCStatus(.invalidArgument, "Aggregations can not be empty.")
      )
      var duplicated = request("c")
      for index in 0..<2 { duplicated.structuredAggregationQuery.aggregations[index].alias = "x" }
      #expect(
        await rejection(duplicated)
          == GRPCStatus(.invalidArgument, "Aggregation aliases contain duplicate alias: x."))
      var withoutOperator = request("c")
      withoutOperator.structuredAggregationQuery.aggregations = [.init()]
      #expect(await rejection(withoutOperator)?.code == .invalidArgument)
      var withoutQuery = request("c")
      withoutQuery.structuredAggregationQuery.clearQueryType()
      #expect(await rejection(withoutQuery)?.code == .invalidArgument)
      #expect(await rejection(Request.with { $0.parent = "nonsense" })?.code == .invalidArgument)
    }
  }
}

extension Google_Firestore_V1_StructuredAggregationQuery {
  /// Removes the query that the request aggregates.
  fileprivate mutating func clearQueryType() { queryType = nil }
}
