// Tests the unary and server-streaming methods over real sockets, with valid and invalid input.

import FirestoreProtobuf
import Foundation
import GRPCFraming
import NIOCore
import SwiftProtobuf
import HearthServer
import Testing

@testable import EndpointFixture

@Suite("Firestore methods over gRPC", .timeLimit(.minutes(10)))
struct FirestoreMethodTests {
  private let documents = FirestoreTestServer.documents

  private func status(_ body: () async throws -> Void) async -> GRPCStatus {
    do {
      try await body()
      return .ok
    } catch let status as GRPCStatus {
      return status
    } catch {
      return GRPCStatus(.unknown, "\(error)")
    }
  }

  @Test("A document is created, read, updated, listed and deleted")
  func oneDocument() async throws {
    try await FirestoreTestServer.with { client in
      var create = Google_Firestore_V1_CreateDocumentRequest()
      create.parent = documents
      create.collectionID = "books"
      create.documentID = "b1"
      create.document.fields = ["title": .text("Dune"), "pages": .int(412)]
      let created: Proto.Document = try await client.unary("CreateDocument", create)
      #expect(created.name == "\(documents)/books/b1")
      #expect(created.createTime == created.updateTime)
      #expect(
        await status { let _: Proto.Document = try await client.unary("CreateDocument", create) }.code
          == .alreadyExists)

      #expect(try await client.get("books/b1") == created)

      var update = Google_Firestore_V1_UpdateDocumentRequest()
      update.document.name = created.name
      update.document.fields = ["pages": .int(413)]
      update.updateMask.fieldPaths = ["pages"]
      let updated: Proto.Document = try await client.unary("UpdateDocument", update)
      #expect(updated.fields == ["title": .text("Dune"), "pages": .int(413)])
      #expect(updated.createTime == created.createTime)

      var list = Google_Firestore_V1_ListDocumentsRequest()
      list.parent = documents
      list.collectionID = "books"
      let listed: Google_Firestore_V1_ListDocumentsResponse = try await client.unary("ListDocuments", list)
      #expect(listed.documents == [updated])
      #expect(listed.nextPageToken.isEmpty)

      var collections = Google_Firestore_V1_ListCollectionIdsRequest()
      collections.parent = documents
      let ids: Google_Firestore_V1_ListCollectionIdsResponse = try await client.unary(
        "ListCollectionIds", collections, metadata: GRPCTestClient.administrator)
      #expect(ids.collectionIds == ["books"])

      var delete = Google_Firestore_V1_DeleteDocumentRequest()
      delete.name = created.name
      let _: Google_Protobuf_Empty = try await client.unary("DeleteDocument", delete)
      #expect(
        await status { _ = try await client.get("books/b1") }
          == GRPCStatus(.notFound, "Document \"\(created.name)\" not found."))
    }
  }

  @Test("BatchGetDocuments returns each name once, found or missing, at one read time")
  func batchGet() async throws {
    try await FirestoreTestServer.with { client in
      try await client.commit((0..<600).map { .set("c/d\($0)", ["n": .int(Int64($0))]) })
      var request = Google_Firestore_V1_BatchGetDocumentsRequest()
      request.database = FirestoreTestServer.database
      request.documents = (0..<700).map { "\(documents)/c/d\($0)" } + ["\(documents)/c/d0"]
      let responses: [Google_Firestore_V1_BatchGetDocumentsResponse] = try await client.stream(
        "BatchGetDocuments", request)
      #expect(responses.count == 700)
      #expect(responses.filter { $0.found.fields["n"] != nil }.count == 600)
      #expect(Set(responses.map(\.missing)).count == 101)
      #expect(Set(responses.map(\.readTime)).count == 1)
      #expect(responses.allSatisfy { $0.transaction.isEmpty })
    }
  }

  @Test(
    "The token of a transaction that a read begins arrives in the first message, and the transaction commits")
  func newTransaction() async throws {
    try await FirestoreTestServer.with { client in
      try await client.commit([.set("c/d", ["n": .int(1)])])
      var request = Google_Firestore_V1_BatchGetDocumentsRequest()
      request.database = FirestoreTestServer.database
      request.documents = ["\(documents)/c/d"]
      request.newTransaction.readWrite = .init()
      let responses: [Google_Firestore_V1_BatchGetDocumentsResponse] = try await client.stream(
        "BatchGetDocuments", request)
      let token = try #require(responses.first?.transaction)
      #expect(!token.isEmpty)
      #expect(responses.count { $0.hasFoundDocument } == 1)
      try await client.commit([.set("c/d", ["n": .int(2)])], transaction: token)
      #expect(try await client.get("c/d").fields["n"] == .int(2))
      #expect(
        await status { try await client.commit([.delete("c/d")], transaction: token) }.code
          == .invalidArgument)
    }
  }

  @Test("Rollback releases the locks on the documents that a transaction read")
  func rollback() async throws {
    try await FirestoreTestServer.with { client in
      var begin = Google_Firestore_V1_BeginTransactionRequest()
      begin.database = FirestoreTestServer.database
      let begun: Google_Firestore_V1_BeginTransactionResponse = try await client.unary(
        "BeginTransaction", begin)
      var read = Google_Firestore_V1_BatchGetDocumentsRequest()
      read.database = FirestoreTestServer.database
      read.documents = ["\(documents)/c/d"]
      read.transaction = begun.transaction
      let _: [Google_Firestore_V1_BatchGetDocumentsResponse] = try await client.stream(
        "BatchGetDocuments", read)
      var rollback = Google_Firestore_V1_RollbackRequest()
      rollback.database = FirestoreTestServer.database
      rollback.transaction = begun.transaction
      let _: Google_Protobuf_Empty = try await client.unary("Rollback", rollback)
      try await client.commit([.set("c/d", ["n": .int(2)])])
    }
  }

  @Test("RunQuery returns its documents with one read time, and an empty result with one message")
  func query() async throws {
    try await FirestoreTestServer.with { client in
      try await client.commit(
        (0..<700).map { .set("c/d\($0)", ["n": .int(Int64($0)), "even": .int(Int64($0 % 2))]) })
      let found = try await client.query(.collection("c", where: "even", is: .int(0)))
      #expect(found.count == 350)
      #expect(Set(found.map(\.readTime)).count == 1)
      #expect(found.allSatisfy { $0.hasDocument && !$0.done })
      let none = try await client.query(.collection("c", where: "even", is: .int(5)))
      #expect(none.count == 1)
      #expect(none.first?.hasDocument == false)
      #expect(none.first?.hasReadTime == true)
      var skipping = Google_Firestore_V1_RunQueryRequest.collection("c", where: "even", is: .int(1))
      skipping.structuredQuery.offset = 340
      let skipped = try await client.query(skipping)
      #expect(skipped.first?.skippedResults == 340)
      #expect(skipped.filter(\.hasDocument).count == 10)
    }
  }

  @Test("An empty commit succeeds without a commit time")
  func emptyCommit() async throws {
    try await FirestoreTestServer.with { client in
      let response = try await client.commit([])
      #expect(!response.hasCommitTime)
      #expect(response.writeResults.isEmpty)
    }
  }

  @Test(
    "Unsupported methods of the service are UNIMPLEMENTED, with their names",
    arguments: ["NoSuchMethod"])
  func unimplemented(method: String) async throws {
    try await FirestoreTestServer.with { client in
      let call = try await client.open(method)
      let status = try await call.status()
      #expect(status.code == .unimplemented)
      #expect(status.message.contains(method))
    }
  }

  @Test(
    "A pipeline query, which the database's edition does not support, is rejected after the name is checked"
  )
  func pipeline() async throws {
    try await FirestoreTestServer.with { client in
      func rejection(_ database: String) async throws -> GRPCStatus {
        let call = try await client.open("ExecutePipeline")
        try? await call.send(
          Google_Firestore_V1_ExecutePipelineRequest.with { $0.database = database }, endStream: true)
        return try await call.status()
      }
      let editionError = GRPCStatus(
        .invalidArgument, "ExecutePipeline requires the Database Edition to be `enterprise`.")
      #expect(try await rejection(FirestoreTestServer.database) == editionError)
      let invalidName = try await rejection("nonsense")
      #expect(invalidName.code == .invalidArgument && invalidName.message != editionError.message)
    }
  }

  @Test("Malformed protobuf is INVALID_ARGUMENT for that call only, in every method")
  func malformedProtobuf() async throws {
    try await FirestoreTestServer.with { client in
      var bytes = ByteBuffer()
      bytes.writeGRPCMessage(bytes: [0x0a, 0xff, 0xff, 0xff, 0x01, 0x00])
      for method in [
        "GetDocument", "ListDocuments", "CreateDocument", "UpdateDocument", "DeleteDocument",
        "BeginTransaction",
        "Commit", "Rollback", "ListCollectionIds", "BatchGetDocuments", "RunQuery", "BatchWrite",
        "PartitionQuery", "Write", "Listen",
      ] {
        let call = try await client.open(method)
        try await call.send(raw: bytes, endStream: method != "Write" && method != "Listen")
        #expect(try await call.status().code == .invalidArgument, "\(method)")
      }
      try await client.commit([.set("c/d", ["n": .int(1)])])
    }
  }

  @Test("Random request bytes affect neither the server nor another client", arguments: 0..<20)
  func randomRequests(seed: UInt64) async throws {
    try await FirestoreTestServer.with { client in
      var state = seed &* 0x9e37_79b9_7f4a_7c15 | 1
      func random(_ bound: Int) -> Int {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return Int(state >> 33) % bound
      }
      for method in [
        "GetDocument", "Commit", "RunQuery", "BatchGetDocuments", "BatchWrite", "PartitionQuery", "Listen",
        "Write",
      ] {
        var request = Google_Firestore_V1_CommitRequest()
        request.database = FirestoreTestServer.database
        request.writes = [.set("c/d", ["n": .int(1), "s": .text("ab")])]
        var message: [UInt8] = try request.serializedBytes()
        for _ in 0..<random(6) { message[random(message.count)] = UInt8(random(256)) }
        var bytes = ByteBuffer()
        bytes.writeGRPCMessage(bytes: message)
        let call = try await client.open(method)
        try await call.send(raw: bytes, endStream: true)
        _ = try await call.status()
      }
      try await client.commit([.set("c/d", ["n": .int(1)])])
    }
  }

  @Test(
    "Invalid names are INVALID_ARGUMENT",
    arguments: [
      "", "x", "projects/p/databases/d/documents", "projects/p/databases/d/documents/c",
      "projects/p/databases/d/documents/c/__x__",
    ])
  func wrongNames(name: String) async throws {
    try await FirestoreTestServer.with { client in
      var request = Google_Firestore_V1_GetDocumentRequest()
      request.name = name
      #expect(
        await status { let _: Proto.Document = try await client.unary("GetDocument", request) }.code
          == .invalidArgument)
    }
  }

  @Test("A request above 10 MiB is INVALID_ARGUMENT, and the error names the limit")
  func largeRequest() async throws {
    try await FirestoreTestServer.with { client in
      let text = String(repeating: "x", count: 1 << 20)
      let rejected = await status {
        try await client.commit((0..<11).map { .set("c/d\($0)", ["t": .text(String(text.dropLast(100)))]) })
      }
      #expect(rejected.code == .invalidArgument)
      #expect(rejected.message.contains("10485760"))
    }
  }

  @Test("Without --emulator and rules, every data call without accepted credentials is UNAUTHENTICATED")
  func withoutEmulator() async throws {
    let production: (inout HearthConfiguration) -> Void = {
      $0.emulator = false
      $0.project = "demo-test"
    }
    try await FirestoreTestServer.with(.ephemeral, production) { client in
      for metadata in [[], [("authorization", "Bearer owner")], [("authorization", "Bearer a.b.c")]] {
        var request = Google_Firestore_V1_GetDocumentRequest()
        request.name = "\(documents)/c/d"
        let answer = await status {
          let _: Proto.Document = try await client.unary("GetDocument", request, metadata: metadata)
        }
        #expect(answer.code == .unauthenticated)
      }
      #expect(await status { try await client.commit([.set("c/d", [:])]) }.code == .unauthenticated)
      #expect(await status { _ = try await client.query(.collection("c")) }.code == .unauthenticated)
    }
  }

  @Test("The emulator accepts no token, the owner token and unsigned tokens, and rejects malformed tokens")
  func emulatorTokens() async throws {
    try await FirestoreTestServer.with { client in
      try await client.commit([.set("c/d", ["n": .int(1)])])
      var request = Google_Firestore_V1_GetDocumentRequest()
      request.name = "\(documents)/c/d"
      // {"alg":"none","type":"JWT"} . {"sub":"alice","iat":0,"exp":3600} . (no signature)
      let unsigned = "eyJhbGciOiJub25lIiwidHlwZSI6IkpXVCJ9.eyJzdWIiOiJhbGljZSIsImlhdCI6MCwiZXhwIjozNjAwfQ."
      for value in ["Bearer owner", "bearer OWNER", "Bearer ya29.x", "Bearer \(unsigned)"] {
        let _: Proto.Document = try await client.unary(
          "GetDocument", request, metadata: [("authorization", value)])
      }
      for value in ["Bearer nonsense", "Bearer a.b.c", "Bearer a.!!.c"] {
        let answer = await status {
          let _: Proto.Document = try await client.unary(
            "GetDocument", request, metadata: [("authorization", value)])
        }
        #expect(answer == GRPCStatus(.invalidArgument, "invalid jwt"))
      }
      let basic = await status {
        let _: Proto.Document = try await client.unary(
          "GetDocument", request, metadata: [("authorization", "Basic eDp5")])
      }
      #expect(basic.code == .unauthenticated)
    }
  }
}

extension Google_Firestore_V1_BatchGetDocumentsResponse {
  fileprivate var hasFoundDocument: Bool {
    if case .found? = result { return true }
    return false
  }
}
