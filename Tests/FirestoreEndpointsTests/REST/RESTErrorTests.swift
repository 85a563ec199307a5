// Compares the errors of invalid requests over gRPC and REST: code and message.

import FirestoreProtobuf
import Foundation
import GRPCFraming
import RealtimeModel
import SwiftProtobuf
import Testing

@testable import EndpointFixture

@Suite("REST errors", .timeLimit(.minutes(10)))
struct RESTErrorTests {
  /// An invalid request.
  struct InvalidRequest: Sendable, CustomTestStringConvertible {
    let method: String
    let verb: String
    let path: String
    let request: any Message & Sendable

    var testDescription: String { "\(method) \(path)" }

    init(_ method: String, _ path: String, _ request: any Message & Sendable, verb: String = "POST") {
      self.method = method
      self.verb = verb
      self.path = path
      self.request = request
    }
  }

  private static let docs = FirestoreTestServer.documents

  private static func query(_ change: (inout Google_Firestore_V1_StructuredQuery) -> Void) -> InvalidRequest {
    let request = Google_Firestore_V1_RunQueryRequest.with {
      $0.parent = docs
      $0.structuredQuery.from = [.with { $0.collectionID = "c" }]
      change(&$0.structuredQuery)
    }
    return InvalidRequest("RunQuery", "\(docs):runQuery", request)
  }

  private static func commit(_ change: (inout Proto.Write) -> Void) -> InvalidRequest {
    let request = Google_Firestore_V1_CommitRequest.with {
      $0.database = FirestoreTestServer.database
      $0.writes = [Proto.Write.with(change)]
    }
    return InvalidRequest("Commit", "\(docs):commit", request)
  }

  static let invalidRequests: [InvalidRequest] = [
    InvalidRequest(
      "GetDocument", "\(docs)/a/none",
      Google_Firestore_V1_GetDocumentRequest.with { $0.name = docs + "/a/none" },
      verb: "GET"),
    InvalidRequest(
      "DeleteDocument", "\(docs)/a", Google_Firestore_V1_DeleteDocumentRequest.with { $0.name = docs + "/a" },
      verb: "DELETE"),
    InvalidRequest(
      "ListDocuments", "\(docs)/a?pageSize=-1",
      Google_Firestore_V1_ListDocumentsRequest.with {
        $0.parent = docs
        $0.collectionID = "a"
        $0.pageSize = -1
      }, verb: "GET"),
    InvalidRequest(
      "CreateDocument", "\(docs)/there?documentId=is",
      Google_Firestore_V1_CreateDocumentRequest.with {
        $0.parent = docs
        $0.collectionID = "there"
        $0.documentID = "is"
        $0.document = .init()
      }),
    query { $0.offset = -1 },
    query { $0.orderBy = [.with { $0.field.fieldPath = "a..b" }] },
    query {
      $0.where.fieldFilter = .with {
        $0.field.fieldPath = "a"; $0.op = .in; $0.value = .int(1)
      }
    },
    commit { _ in },
    commit { $0 = .set("a/b/c", [:]) },
    commit { $0 = .set("there/none", [:]).requiring(exists: true) },
    commit { $0 = .set("there/is", [:]).requiring(exists: false) },
    commit { $0 = .set("there/is", ["__x__": .int(1)]) },
    commit { write in
      write = .set("there/is", [:])
      write.currentDocument.updateTime = .init(seconds: 1)
    },
    InvalidRequest(
      "Rollback", "\(docs):rollback",
      Google_Firestore_V1_RollbackRequest.with {
        $0.database = FirestoreTestServer.database
        $0.transaction = .init([1, 2, 3])
      }),
    InvalidRequest(
      "ListCollectionIds", "\(docs):listCollectionIds",
      Google_Firestore_V1_ListCollectionIdsRequest.with {
        $0.parent = docs
        $0.pageToken = "x"
      }),
    InvalidRequest(
      "ExecutePipeline", "\(docs):executePipeline",
      Google_Firestore_V1_ExecutePipelineRequest.with { $0.database = FirestoreTestServer.database }),
  ]

  @Test("REST and gRPC return the same code and message", arguments: invalidRequests)
  func parity(invalid: InvalidRequest) async throws {
    try await FirestoreTestServer.serving { server in
      try await server.client.commit([.set("there/is", [:])])
      let call = try await server.client.open(invalid.method)
      // The error may arrive before the request is sent completely.
      try? await call.send(invalid.request, endStream: true)
      let status = try await call.status()
      let isDocument = invalid.verb == "POST" && invalid.method == "CreateDocument"
      let body = invalid.verb != "POST" ? nil : isDocument ? "{}" : try invalid.request.jsonString()
      let reply = try await server.rest(invalid.verb, "/v1/" + invalid.path, body)
      let error = reply.error
      #expect(status.code != .ok)
      #expect(error["status"].string == status.code.name)
      #expect(error["message"].string == status.message)
      #expect(error["code"] == .int(Int64(reply.status)))
    }
  }
}
