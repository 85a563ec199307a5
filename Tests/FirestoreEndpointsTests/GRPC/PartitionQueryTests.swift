// Tests PartitionQuery over real sockets: the parts between the partition points contain the complete
// result.

import FirestoreProtobuf
import Foundation
import GRPCFraming
import SwiftProtobuf
import Testing

@testable import EndpointFixture

@Suite("PartitionQuery over gRPC", .timeLimit(.minutes(10)))
struct PartitionQueryTests {
  private typealias Request = Google_Firestore_V1_PartitionQueryRequest
  private typealias Response = Google_Firestore_V1_PartitionQueryResponse
  private typealias Point = Google_Firestore_V1_Cursor

  private func request(_ count: Int64, group: String = "g") -> Request {
    Request.with {
      $0.parent = FirestoreTestServer.documents
      $0.structuredQuery.from = [
        .with {
          $0.collectionID = group
          $0.allDescendants = true
        }
      ]
      $0.structuredQuery.orderBy = [
        .with {
          $0.field.fieldPath = "__name__"
          $0.direction = .ascending
        }
      ]
      $0.partitionCount = count
    }
  }

  /// Returns all partition points, page by page.
  private func points(_ client: GRPCTestClient, _ request: Request) async throws -> [Point] {
    var request = request
    var points: [Point] = []
    repeat {
      let page: Response = try await client.unary(
        "PartitionQuery", request, metadata: GRPCTestClient.administrator)
      if request.pageSize > 0 { #expect(page.partitions.count <= Int(request.pageSize)) }
      points += page.partitions
      request.pageToken = page.nextPageToken
    } while !request.pageToken.isEmpty
    return points
  }

  /// Writes documents in collections of one id at three depths, and some in other collections.
  private func fill(_ client: GRPCTestClient) async throws {
    try await client.commit(
      (0..<400).map { .set("g/d\($0)", [:]) } + (0..<300).map { .set("a/\($0 % 7)/g/d\($0)", [:]) }
        + (0..<200).map { .set("g/d\($0)/b/x/g/e\($0)", [:]) } + (0..<100).map { .set("h/d\($0)", [:]) })
  }

  @Test(
    "The parts contain each document of the group once and in order, at any page size",
    arguments: [0, 1, 3])
  func reconstruct(pageSize: Int32) async throws {
    try await FirestoreTestServer.with { client in
      try await fill(client)
      var groupQuery = Google_Firestore_V1_RunQueryRequest()
      groupQuery.parent = FirestoreTestServer.documents
      groupQuery.structuredQuery = request(1).structuredQuery
      let expected = try await client.query(groupQuery).map(\.document.name)
      #expect(expected.count == 900)

      var pagedRequest = request(7)
      pagedRequest.pageSize = pageSize
      let points = try await points(client, pagedRequest)
      #expect(points.count == 7)
      #expect(points.allSatisfy { $0.before && $0.values.count == 1 })
      var found: [String] = []
      for index in 0...points.count {
        var part = groupQuery
        if index > 0 { part.structuredQuery.startAt = points[index - 1] }
        if index < points.count { part.structuredQuery.endAt = points[index] }
        let names = try await client.query(part).filter(\.hasDocument).map(\.document.name)
        #expect(abs(names.count - 900 / 8) <= 1, "the parts have equal sizes")
        found += names
      }
      #expect(found == expected)
    }
  }

  @Test("A collection group of few documents has no partition points; the number of points has a maximum")
  func fewDocuments() async throws {
    try await FirestoreTestServer.with { client in
      try await client.commit((0..<5).map { .set("g/d\($0)", [:]) })
      #expect(try await points(client, request(10)).isEmpty)
      try await client.commit((0..<200).map { .set("g/e\($0)", [:]) })
      let some = try await points(client, request(.max))
      #expect((1...4).contains(some.count))
      #expect(try await points(client, request(1)).count == 1)
      #expect(try await points(client, request(1, group: "none")).isEmpty)
    }
  }

  @Test("All pages show the same state, also during writes; a read time selects a past state")
  func consistentPages() async throws {
    try await FirestoreTestServer.with { client in
      try await fill(client)
      var pagedRequest = request(7)
      let before = try await points(client, pagedRequest)
      pagedRequest.pageSize = 3
      let first: Response = try await client.unary(
        "PartitionQuery", pagedRequest, metadata: GRPCTestClient.administrator)
      let time = try await client.commit((0..<500).map { .delete("g/d\($0)") }).commitTime
      pagedRequest.pageToken = first.nextPageToken
      let second: Response = try await client.unary(
        "PartitionQuery", pagedRequest, metadata: GRPCTestClient.administrator)
      #expect(first.partitions + second.partitions == Array(before.prefix(6)))

      var after = request(7)
      #expect(try await points(client, after) != before)
      after.readTime = time
      after.readTime.nanos -= 1000
      if after.readTime.nanos < 0 {
        after.readTime = .with {
          $0.seconds = time.seconds - 1; $0.nanos = 999_999_000
        }
      }
      #expect(try await points(client, after) == before)
    }
  }

  @Test("Queries that cannot be partitioned are INVALID_ARGUMENT, with the reason")
  func invalidQueries() async throws {
    let cases: [(String, (inout Request) -> Void)] = [
      ("count must be positive", { $0.partitionCount = 0 }),
      ("count must be positive", { $0.partitionCount = -3 }),
      ("nonnegative", { $0.pageSize = -1 }),
      ("page token", { $0.pageToken = "nonsense" }),
      ("structured queries", { $0.queryType = nil }),
      ("one collection group", { $0.structuredQuery.from = [] }),
      ("one collection group", { $0.structuredQuery.from[0].allDescendants = false }),
      ("one collection group", { $0.structuredQuery.from[0].collectionID = "" }),
      ("cannot be partitioned", { $0.structuredQuery.offset = 1 }),
      ("cannot be partitioned", { $0.structuredQuery.limit.value = 1 }),
      (
        "cannot be partitioned",
        {
          $0.structuredQuery.where.unaryFilter = .with {
            $0.op = .isNull; $0.field.fieldPath = "a"
          }
        }
      ),
      ("cannot be partitioned", { $0.structuredQuery.startAt.before = true }),
      ("ascending order", { $0.structuredQuery.orderBy[0].direction = .descending }),
      ("ascending order", { $0.structuredQuery.orderBy[0].field.fieldPath = "a" }),
      ("future", { $0.readTime.seconds = 250_000_000_000 }),
    ]
    try await FirestoreTestServer.with { client in
      for (expectedText, change) in cases {
        var pagedRequest = request(3)
        change(&pagedRequest)
        do {
          let _: Response = try await client.unary(
            "PartitionQuery", pagedRequest, metadata: GRPCTestClient.administrator)
          Issue.record("no error with: \(expectedText)")
        } catch let status as GRPCStatus {
          #expect(status.code == .invalidArgument, "\(status)")
          #expect(status.message.contains(expectedText), "\(status.message)")
        }
      }
    }
  }
}
