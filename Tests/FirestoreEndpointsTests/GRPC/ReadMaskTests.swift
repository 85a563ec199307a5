// Tests empty read masks. Google's server SDKs list documents with an empty mask to get only the names.
// Without a mask, a read returns all fields.

import FirestoreProtobuf
import SwiftProtobuf
import Testing

@testable import EndpointFixture

@Suite("Read masks", .timeLimit(.minutes(1)))
struct ReadMaskTests {
  private let documents = FirestoreTestServer.documents
  private let fields: [String: Proto.Value] = ["a": .int(1)]

  @Test("Over gRPC, an empty mask returns names and times, and no mask returns all fields")
  func overGRPC() async throws {
    try await FirestoreTestServer.with { client in
      for isMasked in [true, false] {
        let expectedFields = isMasked ? [:] : fields
        let name = "\(documents)/c/\(isMasked)"
        let created: Proto.Document = try await client.unary(
          "CreateDocument",
          Google_Firestore_V1_CreateDocumentRequest.with {
            $0.parent = documents
            $0.collectionID = "c"
            $0.documentID = "\(isMasked)"
            $0.document.fields = fields
            if isMasked { $0.mask = .init() }
          })
        let updated: Proto.Document = try await client.unary(
          "UpdateDocument",
          Google_Firestore_V1_UpdateDocumentRequest.with {
            $0.document.name = name
            $0.document.fields = fields
            if isMasked { $0.mask = .init() }
          })
        let read: Proto.Document = try await client.unary(
          "GetDocument",
          Google_Firestore_V1_GetDocumentRequest.with {
            $0.name = name
            if isMasked { $0.mask = .init() }
          })
        let batch: [Google_Firestore_V1_BatchGetDocumentsResponse] = try await client.stream(
          "BatchGetDocuments",
          Google_Firestore_V1_BatchGetDocumentsRequest.with {
            $0.database = FirestoreTestServer.database
            $0.documents = [name]
            if isMasked { $0.mask = .init() }
          })
        let list: Google_Firestore_V1_ListDocumentsResponse = try await client.unary(
          "ListDocuments",
          Google_Firestore_V1_ListDocumentsRequest.with {
            $0.parent = documents
            $0.collectionID = "c"
            $0.showMissing = true
            if isMasked { $0.mask = .init() }
          }, metadata: GRPCTestClient.administrator)
        let listed = try #require(list.documents.first { $0.name == name })
        for document in [created, updated, read, listed] + batch.map(\.found) {
          #expect(document.name == name && document.fields == expectedFields)
          #expect(document.hasCreateTime && document.hasUpdateTime)
        }
        #expect(try await client.get("c/\(isMasked)").fields == fields)
      }
    }
  }

  @Test("Over REST, an empty mask returns no fields, and null is the same as no mask")
  func overREST() async throws {
    try await FirestoreTestServer.serving { server in
      try await server.client.commit([.set("c/d", fields)])
      let masks = [
        ("", false), (#","mask":null"#, false), (#","mask":{}"#, true), (#","mask":{"fieldPaths":[]}"#, true),
      ]
      for (mask, isMasked) in masks {
        let reply = try await server.rest(
          "POST", "/v1/\(documents):batchGet", #"{"documents":["\#(documents)/c/d"]\#(mask)}"#)
        let found = reply.json[0]["found"]
        #expect(found["name"] == .string("\(documents)/c/d"), "\(mask)")
        #expect(found["updateTime"].string != nil, "\(mask)")
        #expect((found["fields"] == .null) == isMasked, "\(mask)")
      }
    }
  }
}
