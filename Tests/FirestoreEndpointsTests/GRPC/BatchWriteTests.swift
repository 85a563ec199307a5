// Tests BatchWrite over a socket: writes are independent, and each has a status.

import FirestoreProtobuf
import Foundation
import GRPCFraming
import OrderedStore
import SwiftProtobuf
import Testing

@testable import EndpointFixture

@Suite("BatchWrite over gRPC", .timeLimit(.minutes(10)))
struct BatchWriteTests {
  private func batchWrite(
    _ client: GRPCTestClient, _ writes: [Proto.Write]
  ) async throws -> Google_Firestore_V1_BatchWriteResponse {
    var request = Google_Firestore_V1_BatchWriteRequest()
    request.database = FirestoreTestServer.database
    request.writes = writes
    request.labels = ["ignored": "yes"]
    return try await client.unary("BatchWrite", request, metadata: GRPCTestClient.administrator)
  }

  @Test("Each write has a result and a status, and a failed write does not affect the others")
  func statuses() async throws {
    try await FirestoreTestServer.with { client in
      try await client.commit([.set("c/there", ["n": .int(1)])])
      var increment = Proto.Write.set("c/counter", [:])
      increment.updateMask = .init()
      increment.updateTransforms = [
        .with {
          $0.fieldPath = "n"
          $0.increment = .int(5)
        }
      ]
      var otherDatabase = Proto.Write()
      otherDatabase.delete = "projects/demo-test/databases/other/documents/c/d"
      let response = try await batchWrite(
        client,
        [
          .set("c/new", ["n": .int(2)]), Proto.Write.set("c/there", [:]).requiring(exists: false),
          Proto.Write.set("c/missing", [:]).requiring(exists: true), .delete("c/none"), increment,
          .set("c/bad", ["__reserved__": .int(1)]), otherDatabase, .set("c/last", ["n": .int(3)]),
        ])
      #expect(response.status.map(\.code) == [0, 6, 5, 0, 0, 3, 3, 0])
      #expect(response.status[1].message.hasPrefix("Document already exists: "))
      #expect(response.status[0].message.isEmpty)
      #expect(
        response.writeResults.map(\.hasUpdateTime) == [true, false, false, false, true, false, false, true])
      #expect(response.writeResults[4].transformResults == [.int(5)])
      #expect(response.writeResults[0].updateTime != response.writeResults[7].updateTime)
      #expect(try await client.get("c/new").fields["n"] == .int(2))
      #expect(try await client.get("c/there").fields["n"] == .int(1))
      #expect(try await client.get("c/last").fields["n"] == .int(3))
      await #expect(throws: GRPCStatus.self) { try await client.get("c/bad") }
    }
  }

  @Test(
    "A request that names a document twice is rejected before any write; two Unicode forms of a name are two documents"
  )
  func sameDocument() async throws {
    try await FirestoreTestServer.with { client in
      do {
        _ = try await batchWrite(client, [.set("c/a", [:]), .set("c/b", [:]), .delete("c/a")])
        Issue.record("a document was written twice")
      } catch let status as GRPCStatus {
        #expect(status.code == .invalidArgument)
        #expect(
          status.message == "the same document cannot be written more than once in a single request")
      }
      await #expect(throws: GRPCStatus.self) { try await client.get("c/b") }
      let response = try await batchWrite(client, [.set("c/\u{E9}", [:]), .set("c/e\u{301}", [:])])
      #expect(response.status.map(\.code) == [0, 0])
      #expect(try await batchWrite(client, []).writeResults.isEmpty)
    }
  }

  @Test("Hundreds of writes are committed, and only the write to a locked document fails")
  func lockedDocument() async throws {
    try await FirestoreTestPort.with(store: try MemoryStore(), lockWait: 200_000) { server in
      var read = Google_Firestore_V1_BatchGetDocumentsRequest()
      read.database = FirestoreTestServer.database
      read.documents = ["\(FirestoreTestServer.documents)/c/d250"]
      read.newTransaction.readWrite = .init()
      let _: [Google_Firestore_V1_BatchGetDocumentsResponse] = try await server.client.stream(
        "BatchGetDocuments", read)
      let response = try await batchWrite(
        server.client, (0..<500).map { .set("c/d\($0)", ["n": .int(Int64($0))]) })
      #expect(response.status.enumerated().filter { $0.element.code != 0 }.map(\.offset) == [250])
      #expect(response.status[250].code == 10)
      #expect(try await server.client.query(.collection("c")).count { $0.hasDocument } == 499)
    }
  }
}
