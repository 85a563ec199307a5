// Tests the fields of single requests and of their responses, over real sockets.

import FirestoreProtobuf
import Foundation
import GRPCFraming
import NIOCore
import SwiftProtobuf
import Testing

@testable import EndpointFixture

@Suite("Fields of Firestore requests over gRPC", .timeLimit(.minutes(10)))
struct RequestShapeTests {
  private let documents = FirestoreTestServer.documents

  private func rejection(_ body: () async throws -> Void) async throws -> GRPCStatus {
    do {
      try await body()
    } catch let status as GRPCStatus {
      return status
    }
    return .ok
  }

  @Test(
    "A commit has a result for each write: the update time of the document, or an empty result for a delete")
  func writeResults() async throws {
    try await FirestoreTestServer.with { client in
      let first = try await client.commit([
        .set("c/old", ["n": .int(1)]), .set("c/gone", [:]), .set("c/kept", [:]),
      ])
      #expect(first.writeResults.map(\.updateTime) == Array(repeating: first.commitTime, count: 3))
      var verified = Proto.Write()
      verified.verify = "\(documents)/c/kept"
      verified.currentDocument.exists = true
      var absent = Proto.Write()
      absent.verify = "\(documents)/c/absent"
      absent.currentDocument.exists = false
      var transformed = Proto.Write()
      transformed.transform.document = "\(documents)/c/new"
      transformed.transform.fieldTransforms = [
        .with {
          $0.fieldPath = "n"
          $0.increment = .int(2)
        },
        .with {
          $0.fieldPath = "tags"
          $0.appendMissingElements.values = [.text("a")]
        },
      ]
      let second = try await client.commit([
        .set("c/old", ["n": .int(1)]), .delete("c/gone"), .delete("c/never"), verified, absent, transformed,
        .set("c/made", [:]), .delete("c/made"),
      ])
      let results = second.writeResults
      try #require(results.count == 8)
      #expect(results[0].updateTime == first.commitTime, "nothing changed")
      #expect(!results[1].hasUpdateTime)
      #expect(!results[2].hasUpdateTime)
      #expect(results[3].updateTime == first.commitTime)
      #expect(!results[4].hasUpdateTime)
      #expect(results[5].updateTime == second.commitTime)
      #expect(results[5].transformResults.first == .int(2))
      #expect(results[5].transformResults.last?.valueType == .nullValue(.nullValue))
      #expect(results[6].updateTime == second.commitTime)
      #expect(!results[7].hasUpdateTime)
    }
  }

  @Test("A created document gets the given id or 20 random letters and digits; a given name is rejected")
  func createdNames() async throws {
    try await FirestoreTestServer.with { client in
      var request = Google_Firestore_V1_CreateDocumentRequest()
      request.parent = "\(documents)/a/b"
      request.collectionID = "c"
      request.document.fields = ["n": .int(1)]
      var names: Set<String> = []
      for _ in 0..<20 {
        let created: Proto.Document = try await client.unary("CreateDocument", request)
        let id = try #require(created.name.split(separator: "/").last)
        #expect(created.name == "\(documents)/a/b/c/\(id)")
        #expect(id.utf8.count == 20)
        #expect(id.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) })
        names.insert(created.name)
      }
      #expect(names.count == 20)
      request.documentID = "given"
      let given: Proto.Document = try await client.unary("CreateDocument", request)
      #expect(given.name == "\(documents)/a/b/c/given")
      request.documentID = "other"
      for name in ["\(documents)/a/b/c/other", "x"] {
        request.document.name = name
        let status = try await rejection {
          let _: Proto.Document = try await client.unary("CreateDocument", request)
        }
        #expect(status.code == .invalidArgument)
        #expect(status.message.contains("name must not be set"))
      }
      await #expect(throws: GRPCStatus.self) { try await client.get("a/b/c/other") }
    }
  }

  @Test("A transaction that a read begins is read-only by default, and its token arrives first")
  func newTransactionsAreReadOnly() async throws {
    try await FirestoreTestServer.with { client in
      try await client.commit((0..<3).map { .set("c/d\($0)", ["n": .int(1)]) })
      var read = Google_Firestore_V1_BatchGetDocumentsRequest()
      read.database = FirestoreTestServer.database
      read.documents = (0..<3).map { "\(documents)/c/d\($0)" }
      read.newTransaction = .init()
      let responses: [Google_Firestore_V1_BatchGetDocumentsResponse] = try await client.stream(
        "BatchGetDocuments", read)
      #expect(responses.map(\.transaction.isEmpty) == [false, true, true])

      var query = Google_Firestore_V1_RunQueryRequest.collection("c")
      query.newTransaction = .init()
      let found = try await client.query(query)
      #expect(found.map(\.transaction.isEmpty) == [false, true, true, true])
      #expect(found.map(\.hasDocument) == [false, true, true, true])

      // The transaction holds no lock and keeps its snapshot.
      try await client.commit([.set("c/d0", ["n": .int(2)])])
      for token in [responses.first?.transaction, found.first?.transaction] {
        let token = try #require(token)
        var get = Google_Firestore_V1_GetDocumentRequest()
        get.name = "\(documents)/c/d0"
        get.transaction = token
        let document: Proto.Document = try await client.unary("GetDocument", get)
        #expect(document.fields == ["n": .int(1)])
        let status = try await rejection {
          try await client.commit([.set("c/d1", ["n": .int(3)])], transaction: token)
        }
        #expect(status.code == .invalidArgument)
        #expect(status.message.contains("read-only"))
      }
      #expect(try await client.get("c/d1").fields == ["n": .int(1)])
    }
  }

  @Test(
    "If a request has a transaction and a read time, the last of the two fields applies, as in any protobuf oneof"
  )
  func lastSelector() async throws {
    try await FirestoreTestServer.with { client in
      let time = try await client.commit([.set("c/d", ["n": .int(1)])]).commitTime
      try await client.commit([.set("c/d", ["n": .int(2)])])
      var token = Google_Firestore_V1_GetDocumentRequest()
      token.transaction = Data([1, 2, 3])
      var past = Google_Firestore_V1_GetDocumentRequest()
      past.name = "\(documents)/c/d"
      past.readTime = time
      let parts: [[UInt8]] = [try token.serializedBytes(), try past.serializedBytes()]
      for (order, code) in [(parts, GRPCStatus.Code.ok), (parts.reversed(), .invalidArgument)] {
        var bytes = ByteBuffer()
        bytes.writeGRPCMessage(bytes: Array(order.joined()))
        let call = try await client.open("GetDocument")
        try await call.send(raw: bytes, endStream: true)
        if code == .ok {
          let document: Proto.Document = try await call.message()
          #expect(document.fields == ["n": .int(1)])
        }
        #expect(try await call.status().code == code)
      }
    }
  }
}
