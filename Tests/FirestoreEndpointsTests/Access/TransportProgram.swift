// Generates random requests of a client without credentials, for the tests of denied data over every transport. A request is
// one JSON body. REST sends it unchanged, and gRPC sends the equivalent protobuf message.

import FirestoreProtobuf
import Foundation
import GRPCFraming
import RandomModels
import SwiftProtobuf

@testable import EndpointFixture

/// A request that is sent over REST or gRPC.
struct TransportRequest {
  enum Method: CaseIterable {
    case get, batchGet, runQuery, aggregate, list, commit, batchWrite, listCollections, partition
  }

  let method: Method
  /// The path below the database, for REST.
  let path: String
  /// The members of the JSON body, without those that REST sends in its path or query.
  let members: String
  /// The JSON members that REST sends in its path or query.
  let pathMembers: String

  /// The status and the body of the response over REST.
  func outcome(overREST port: Int) async throws -> String {
    let isRead = method == .get || method == .list
    let reply = try await RESTClient.request(
      port, isRead ? "GET" : "POST", "/v1/\(FirestoreTestServer.database)/documents\(path)",
      body: isRead ? nil : "{\(members)}")
    return "\(reply.status) \(reply.body)"
  }

  /// The status and the messages of the response over gRPC.
  func outcome(overGRPC client: GRPCTestClient) async throws -> String {
    let json = "{\([pathMembers, members].filter { !$0.isEmpty }.joined(separator: ","))}"
    func call<Request: Message, Response: Message>(
      _ name: String, _: Request.Type, _: Response.Type
    ) async throws -> String {
      do {
        let responses = try await client.stream(name, try Request(jsonString: json), as: Response.self)
        return try responses.map { try $0.jsonString() }.joined(separator: "\n")
      } catch let status as GRPCStatus { return "\(status.code) \(status.message)" }
    }
    return switch method {
    case .get:
      try await call("GetDocument", Google_Firestore_V1_GetDocumentRequest.self, Proto.Document.self)
    case .batchGet:
      try await call(
        "BatchGetDocuments", Google_Firestore_V1_BatchGetDocumentsRequest.self,
        Google_Firestore_V1_BatchGetDocumentsResponse.self)
    case .runQuery:
      try await call(
        "RunQuery", Google_Firestore_V1_RunQueryRequest.self, Google_Firestore_V1_RunQueryResponse.self)
    case .aggregate:
      try await call(
        "RunAggregationQuery", Google_Firestore_V1_RunAggregationQueryRequest.self,
        Google_Firestore_V1_RunAggregationQueryResponse.self)
    case .list:
      try await call(
        "ListDocuments", Google_Firestore_V1_ListDocumentsRequest.self,
        Google_Firestore_V1_ListDocumentsResponse.self)
    case .commit:
      try await call(
        "Commit", Google_Firestore_V1_CommitRequest.self, Google_Firestore_V1_CommitResponse.self)
    case .batchWrite:
      try await call(
        "BatchWrite", Google_Firestore_V1_BatchWriteRequest.self, Google_Firestore_V1_BatchWriteResponse.self)
    case .listCollections:
      try await call(
        "ListCollectionIds", Google_Firestore_V1_ListCollectionIdsRequest.self,
        Google_Firestore_V1_ListCollectionIdsResponse.self)
    case .partition:
      try await call(
        "PartitionQuery", Google_Firestore_V1_PartitionQueryRequest.self,
        Google_Firestore_V1_PartitionQueryResponse.self)
    }
  }

  /// The text without the parts that differ between two servers: times and the bytes of tokens. The length of a token
  /// stays.
  static func normalised(_ text: String) -> String {
    // Tokens are replaced first, since 16 of their hexadecimal digits can look like a time.
    let tokens = text.replacing(/"(transaction|nextPageToken|resumeToken|streamToken)":\s*"([^"]*)"/) {
      "\"\($0.output.1)\":\($0.output.2.count)"
    }
    // Messages about preconditions name times in microseconds.
    return tokens.replacing(/\d{4}-\d\d-\d\dT[0-9:.]+Z/, with: "TIME").replacing(/\d{16}/, with: "TIME")
  }
}

/// Generates the requests of one program.
struct TransportProgram {
  private var random: SeededGenerator

  init(seed: UInt64) { random = SeededGenerator(seed: seed) }

  private static let documents = FirestoreTestServer.documents

  private mutating func pick<Element>(_ elements: [Element]) -> Element {
    elements[random.below(elements.count)]
  }

  /// The path of a document. Half of the paths are of denied documents, and each server stores other denied documents.
  mutating func documentPath() -> String {
    pick([
      "c/a", "c/b", "c/missing", "e/a", "c/a/s/x", "d/d1", "d/d2", "d/zebra0", "d/zebra1", "d/d1/s/zebra0",
    ])
  }

  private mutating func precondition() -> String {
    pick([
      "", "", #","currentDocument":{"exists":true}"#, #","currentDocument":{"exists":false}"#,
      #","currentDocument":{"updateTime":"2020-01-01T00:00:00Z"}"#,
    ])
  }

  private mutating func write() -> String {
    let name = "\(Self.documents)/\(documentPath())"
    let fields = #""fields":{"n":{"integerValue":"\#(random.below(5))"}}"#
    return switch random.below(5) {
    case 0: #"{"delete":"\#(name)"\#(precondition())}"#
    case 1: #"{"verify":"\#(name)","currentDocument":{"exists":true}}"#
    case 2: #"{"update":{"name":"\#(name)",\#(fields)},"updateMask":{"fieldPaths":["n"]}\#(precondition())}"#
    case 3:
      #"{"update":{"name":"\#(name)"},"updateMask":{},"updateTransforms":"#
        + #"[{"fieldPath":"k","increment":{"integerValue":"1"}}]}"#
    default: #"{"update":{"name":"\#(name)",\#(fields)}\#(precondition())}"#
    }
  }

  /// The JSON of a structured query.
  mutating func query() -> String {
    let group = random.below(4) == 0 ? #","allDescendants":true"# : ""
    var query = #"{"from":[{"collectionId":"\#(pick(["c", "d", "e", "s"]))"\#(group)}]"#
    if random.below(2) == 0 {
      query +=
        #","where":{"fieldFilter":{"field":{"fieldPath":"n"},"op":"\#(pick(["EQUAL", "GREATER_THAN"]))","#
        + #""value":{"integerValue":"\#(random.below(4))"}}}"#
    }
    if random.below(3) == 0 { query += #","orderBy":[{"field":{"fieldPath":"n"},"direction":"DESCENDING"}]"# }
    if random.below(5) == 0 {
      let name = "\(Self.documents)/\(documentPath())"
      query +=
        #","orderBy":[{"field":{"fieldPath":"__name__"}}],"startAt":{"values":[{"referenceValue":"\#(name)"}]}"#
    }
    if random.below(3) == 0 { query += #","limit":\#(1 + random.below(3))"# }
    if random.below(5) == 0 { query += #","offset":1"# }
    // The query may contain two members `orderBy`. The error for such a request must not depend on data either.
    return query + "}"
  }

  /// A random request.
  mutating func request() -> TransportRequest {
    let parent = #""parent":"\#(Self.documents)""#
    let database = #""database":"\#(FirestoreTestServer.database)""#
    let explain = random.below(6) == 0 ? #","explainOptions":{"analyze":true}"# : ""
    let method = pick(TransportRequest.Method.allCases)
    switch method {
    case .get:
      let path = documentPath()
      return .init(
        method: method, path: "/\(path)", members: "", pathMembers: #""name":"\#(Self.documents)/\#(path)""#)
    case .batchGet:
      let names = (0..<1 + random.below(3)).map { _ in #""\#(Self.documents)/\#(documentPath())""# }
      let newTransaction = random.below(3) == 0 ? #","newTransaction":{"readWrite":{}}"# : ""
      return .init(
        method: method, path: ":batchGet",
        members: #""documents":[\#(names.joined(separator: ","))]\#(newTransaction)"#,
        pathMembers: database)
    case .runQuery:
      return .init(
        method: method, path: ":runQuery", members: #""structuredQuery":\#(query())\#(explain)"#,
        pathMembers: parent)
    case .aggregate:
      let members =
        #""structuredAggregationQuery":{"structuredQuery":\#(query()),"#
        + #""aggregations":[\#(pick([#"{"alias":"n","count":{}}"#, #"{"alias":"s","sum":{"field":{"fieldPath":"n"}}}"#]))]}"#
      return .init(
        method: method, path: ":runAggregationQuery", members: members + explain, pathMembers: parent)
    case .list:
      let (collection, size) = (pick(["c", "d", "e"]), random.below(3))
      let missing = random.below(4) == 0
      return .init(
        method: method, path: "/\(collection)?pageSize=\(size)\(missing ? "&showMissing=true" : "")",
        members: "",
        pathMembers: parent + #","collectionId":"\#(collection)","pageSize":\#(size)"#
          + (missing ? #","showMissing":true"# : ""))
    case .commit, .batchWrite:
      let writes = (0..<1 + random.below(2)).map { _ in write() }.joined(separator: ",")
      return .init(
        method: method, path: method == .commit ? ":commit" : ":batchWrite",
        members: #""writes":[\#(writes)]"#,
        pathMembers: database)
    case .listCollections:
      return .init(method: method, path: ":listCollectionIds", members: "", pathMembers: parent)
    case .partition:
      let group = #"{"from":[{"collectionId":"\#(pick(["c", "d"]))","allDescendants":true}]}"#
      return .init(
        method: method, path: ":partitionQuery",
        members: #""structuredQuery":\#(group),"partitionCount":"3""#, pathMembers: parent)
    }
  }
}
