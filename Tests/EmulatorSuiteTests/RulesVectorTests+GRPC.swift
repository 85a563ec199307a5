// Sends over gRPC the requests of the shared test vectors, JSON files with rules, requests and recorded results.

import FirestoreProtobuf
import Foundation
import GRPCFraming
import JSON
import SwiftProtobuf

@testable import EndpointFixture

extension RulesVectorTests {
  /// Sends the same request over gRPC. The bodies of REST are the JSON forms of the messages.
  func call(
    _ request: JSONTree, _ transaction: String, _ server: FirestoreTestServer
  ) async throws -> Answer {
    let path = request["path"].string ?? ""
    let name = Self.root + (path.isEmpty ? "" : "/\(path)")
    let parameters = request["params"].value.object ?? JSONObject()
    var body = request["body"].value.object ?? JSONObject()
    let metadata = Self.headers(request["caller"]).map { ("authorization", String($0.dropFirst(15))) }
    func send<Request: Message, Response: Message>(
      _ method: String, _ type: Request.Type, _ response: Response.Type
    ) async throws -> Answer {
      let json = text(.object(body)).replacingOccurrences(of: "$TXN", with: transaction)
      let message: Request
      // A message that the JSON form does not allow cannot be sent over gRPC.
      do { message = try Request(jsonString: json) } catch { return Answer(status: "INVALID_ARGUMENT") }
      do {
        let responses: [Response] = try await server.client.stream(method, message, metadata: metadata)
        let texts = try responses.map { try $0.jsonString() }
        let json = texts.compactMap { try? JSONValue(json: $0) }.map { JSONTree($0)["transaction"].string }
        return Answer(status: "OK", transaction: json.compactMap(\.self).first)
      } catch let status as GRPCStatus {
        return Answer(status: Self.name(of: status.code), message: status.message)
      }
    }
    func parameter(_ key: String) -> String? { JSONTree(parameters[key] ?? .null).string }
    switch request["kind"].string {
    case "get" where path.split(separator: "/").count.isMultiple(of: 2):
      body = ["name": .string(name)]
      return try await send(
        "GetDocument", Google_Firestore_V1_GetDocumentRequest.self, Google_Firestore_V1_Document.self)
    case "get", "list":
      let parts = path.split(separator: "/")
      body = [
        "parent": .string(([Self.root] + parts.dropLast().map(String.init)).joined(separator: "/")),
        "collectionId": .string(parts.last.map(String.init) ?? ""),
      ]
      for key in ["pageSize", "orderBy", "pageToken"] {
        if let value = parameter(key) { body[key] = .string(value) }
      }
      if let value = parameter("showMissing") { body["showMissing"] = .bool(value == "true") }
      return try await send(
        "ListDocuments", Google_Firestore_V1_ListDocumentsRequest.self,
        Google_Firestore_V1_ListDocumentsResponse.self)
    case "create":
      let parts = path.split(separator: "/")
      body = [
        "parent": .string(([Self.root] + parts.dropLast().map(String.init)).joined(separator: "/")),
        "collectionId": .string(parts.last.map(String.init) ?? ""), "document": .object(body),
      ]
      if let id = parameter("documentId") { body["documentId"] = .string(id) }
      return try await send(
        "CreateDocument", Google_Firestore_V1_CreateDocumentRequest.self, Google_Firestore_V1_Document.self)
    case "update":
      body["name"] = .string(name)
      body = ["document": .object(body)]
      if let paths = parameters["updateMask.fieldPaths"] {
        body["updateMask"] = .object(["fieldPaths": .array(paths.array ?? [paths])])
      }
      if let exists = parameter("currentDocument.exists") {
        body["currentDocument"] = .object(["exists": .bool(exists == "true")])
      }
      if let time = parameter("currentDocument.updateTime") {
        body["currentDocument"] = .object(["updateTime": .string(time)])
      }
      return try await send(
        "UpdateDocument", Google_Firestore_V1_UpdateDocumentRequest.self, Google_Firestore_V1_Document.self)
    case "delete":
      body = ["name": .string(name)]
      if let exists = parameter("currentDocument.exists") {
        body["currentDocument"] = .object(["exists": .bool(exists == "true")])
      }
      if let time = parameter("currentDocument.updateTime") {
        body["currentDocument"] = .object(["updateTime": .string(time)])
      }
      return try await send(
        "DeleteDocument", Google_Firestore_V1_DeleteDocumentRequest.self, Google_Protobuf_Empty.self)
    case "runQuery":
      body["parent"] = .string(name)
      return try await send(
        "RunQuery", Google_Firestore_V1_RunQueryRequest.self, Google_Firestore_V1_RunQueryResponse.self)
    case "runAggregationQuery":
      body["parent"] = .string(name)
      return try await send(
        "RunAggregationQuery", Google_Firestore_V1_RunAggregationQueryRequest.self,
        Google_Firestore_V1_RunAggregationQueryResponse.self)
    case "listCollectionIds":
      body["parent"] = .string(name)
      return try await send(
        "ListCollectionIds", Google_Firestore_V1_ListCollectionIdsRequest.self,
        Google_Firestore_V1_ListCollectionIdsResponse.self)
    default: break
    }
    body["database"] = .string("projects/demo-rules/databases/(default)")
    switch request["kind"].string {
    case "commit":
      return try await send(
        "Commit", Google_Firestore_V1_CommitRequest.self, Google_Firestore_V1_CommitResponse.self)
    case "batchGet":
      return try await send(
        "BatchGetDocuments", Google_Firestore_V1_BatchGetDocumentsRequest.self,
        Google_Firestore_V1_BatchGetDocumentsResponse.self)
    case "beginTransaction":
      return try await send(
        "BeginTransaction", Google_Firestore_V1_BeginTransactionRequest.self,
        Google_Firestore_V1_BeginTransactionResponse.self)
    case "rollback":
      return try await send("Rollback", Google_Firestore_V1_RollbackRequest.self, Google_Protobuf_Empty.self)
    case "batchWrite":
      return try await send(
        "BatchWrite", Google_Firestore_V1_BatchWriteRequest.self, Google_Firestore_V1_BatchWriteResponse.self)
    default: return Answer(status: "no such kind")
    }
  }

  /// The canonical name of a status.
  private static func name(of code: GRPCStatus.Code) -> String {
    let names = [
      "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
      "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE",
      "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
    ]
    return names.indices.contains(Int(code.rawValue)) ? names[Int(code.rawValue)] : "\(code.rawValue)"
  }
}
