// PartitionQuery over real sockets: whatever the points, the parts between them are the whole.

import FirestoreProtobuf
import Foundation
import GRPCFraming
import SwiftProtobuf
import Testing

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

  /// All points, page by page.
  private func points(_ client: GRPCTestClient, _ request: Request) async throws -> [Point] {
    var request = request
    var points: [Point] = []
    repeat {
      let page: Response = try await client.unary("PartitionQuery", request)
      if request.pageSize > 0 { #expect(page.partitions.count <= Int(request.pageSize)) }
      points += page.partitions
      request.pageToken = page.nextPageToken
    } while !request.pageToken.isEmpty
    return points
  }

  /// Documents in collections of one id at three depths, and some beside them.
  private func fill(_ client: GRPCTestClient) async throws {
    try await client.commit(
      (0..<400).map { .set("g/d\($0)", [:]) } + (0..<300).map { .set("a/\($0 % 7)/g/d\($0)", [:]) }
        + (0..<200).map { .set("g/d\($0)/b/x/g/e\($0)", [:]) } + (0..<100).map { .set("h/d\($0)", [:]) })
  }

  @Test(
    "The parts reconstruct the group, each document once and in order, at any page size",
    arguments: [0, 1, 3])
  func reconstruct(pageSize: Int32) async throws {
    try await FirestoreTestServer.with { client in
      try await fill(client)
      var whole = Google_Firestore_V1_RunQueryRequest()
      whole.parent = FirestoreTestServer.documents
      whole.structuredQuery = request(1).structuredQuery
      let expected = try await client.query(whole).map(\.document.name)
      #expect(expected.count == 900)

      var asked = request(7)
      asked.pageSize = pageSize
      let points = try await points(client, asked)
      #expect(points.count == 7)
      #expect(points.allSatisfy { $0.before && $0.values.count == 1 })
      var found: [String] = []
      for index in 0...points.count {
        var part = whole
        if index > 0 { part.structuredQuery.startAt = points[index - 1] }
        if index < points.count { part.structuredQuery.endAt = points[index] }
        let names = try await client.query(part).filter(\.hasDocument).map(\.document.name)
        #expect(abs(names.count - 900 / 8) <= 1, "parts of one size")
        found += names
      }
      #expect(found == expected)
    }
  }

  @Test("Few documents are not worth splitting, and no more points come than make sense")
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

  @Test("Pages show one state, whatever is written between them; a read time shows a past one")
  func oneState() async throws {
    try await FirestoreTestServer.with { client in
      try await fill(client)
      var asked = request(7)
      let before = try await points(client, asked)
      asked.pageSize = 3
      let first: Response = try await client.unary("PartitionQuery", asked)
      let time = try await client.commit((0..<500).map { .delete("g/d\($0)") }).commitTime
      asked.pageToken = first.nextPageToken
      let second: Response = try await client.unary("PartitionQuery", asked)
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

  @Test("What cannot be partitioned is INVALID_ARGUMENT with a word on why")
  func refusals() async throws {
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
      for (words, change) in cases {
        var asked = request(3)
        change(&asked)
        do {
          let _: Response = try await client.unary("PartitionQuery", asked)
          Issue.record("no error where \(words)")
        } catch let status as GRPCStatus {
          #expect(status.code == .invalidArgument, "\(status)")
          #expect(status.message.contains(words), "\(status.message)")
        }
      }
    }
  }
}
