// Tests that a production server that is started as docs/production.md shows gives nothing to callers without credentials:
// every port, path and method is tried, and stored data neither appears in a response nor changes.

import CryptoExtras
import FirestoreProtobuf
import Foundation
import GRPCFraming
import HearthServer
import Identity
import JSON
import NIOCore
import SwiftProtobuf
import Testing

@testable import EndpointFixture

@Suite("Doors of a production server", .serialized, .timeLimit(.minutes(5)))
struct ProductionDoorTests {
  private static let project = "my-app"
  private static let documents = "projects/my-app/databases/(default)/documents"
  private static let document = documents + "/vault/a"
  /// The stored text that no response may contain.
  private static let marker = "stored-for-the-administrator"
  /// Query parameters of callers without accepted credentials.
  private static let callers = ["", "access_token=owner", "access_token=e30.e30.", "auth=owner&key=k"]

  private struct Ports {
    var firestore: Int
    var database: Int
    var auth: Int
  }

  @Test("Every port, path and method of a production server is shut to callers without credentials")
  func doors() async throws {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent(
      "hearth-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: directory) }
    let data = directory.appendingPathComponent("data").path
    let process = try HearthProcess([
      "serve", "--data", data, "--project", Self.project, "--firestore-port", "0", "--database-port", "0",
      "--auth-port", "0",
    ])
    try await process.wait(for: "ready\n")
    let administrator = try await Self.administrator(data)
    let ports = Ports(
      firestore: try process.port(of: "Cloud Firestore"), database: try process.port(of: "Realtime Database"),
      auth: try process.port(of: "Authentication"))
    let stored = #"{"fields":{"text":{"stringValue":"\#(Self.marker)"}}}"#
    let document = "/v1/\(Self.document)?access_token=\(administrator)"
    let value = "/vault.json?ns=my-app-default-rtdb&access_token=\(administrator)"
    #expect(try await PlainRequest.send(ports.firestore, "PATCH \(document)", stored).contains(" 200 "))
    #expect(
      try await PlainRequest.send(ports.database, "PUT \(value)", #""\#(Self.marker)""#).contains(" 200 "))
    let before = try await PlainRequest.send(ports.firestore, "GET \(document)")
    #expect(before.contains(Self.marker))

    try await tryREST(ports)
    try await tryRPC(ports.firestore)
    try await trySocket(ports.database)

    let after = try await PlainRequest.send(ports.firestore, "GET \(document)")
    #expect(after.split(separator: "\r\n\r\n").last == before.split(separator: "\r\n\r\n").last)
    let root = "/.json?ns=my-app-default-rtdb&access_token=\(administrator)"
    #expect(
      try await PlainRequest.send(ports.database, "GET \(root)").hasSuffix(#"{"vault":"\#(Self.marker)"}"#))
    process.signal(SIGTERM)
    #expect(await process.wait() == 0)
  }

  /// Creates a service account of a running server, as `hearth credentials create` does.
  /// - Returns: a token that the account signs.
  private static func administrator(_ data: String) async throws -> String {
    let file = try JSONValue(
      json: try await Credentials(directory: data).create(
        name: "backend", project: project, role: .administrator, tokenURI: "http://127.0.0.1/token"))
    let now = Int64(Date().timeIntervalSince1970)
    let email = file["client_email"] ?? .null
    let text = JSONWebToken.encode(
      ["alg": .string("RS256"), "kid": file["private_key_id"] ?? .null, "typ": .string("JWT")],
      [
        "iss": email, "sub": email, "iat": .int(now), "exp": .int(now + 3600),
        "scope": .string("https://www.googleapis.com/auth/cloud-platform"),
      ])
    let key = try _RSA.Signing.PrivateKey(pemRepresentation: try #require(file["private_key"]?.string))
    let signature = try key.signature(for: Array(text.utf8), padding: .insecurePKCS1v1_5)
    return text + "." + Base64.encode(Array(signature.rawRepresentation), .urlSafe, padded: false)
  }

  // MARK: REST

  private func tryREST(_ ports: Ports) async throws {
    let databases = "/v1/projects/my-app/databases"
    let collection = "/v1/\(Self.documents)"
    let toolkit = "/identitytoolkit.googleapis.com"
    let doors: [(port: Int, paths: [String], methods: [String])] = [
      (
        ports.firestore,
        [
          "/v1/\(Self.document)", "\(collection)/vault", databases, "\(databases)/(default)",
          "\(databases)/(default)/collectionGroups/vault/indexes", "/v1/projects/my-app/releases",
          "/v1/projects/my-app/rulesets", "/emulator/v1/\(Self.documents)",
          "/emulator/v1/projects/my-app:securityRules", "/emulator/v1/projects/my-app:ruleCoverage", "/reset",
          "/google.firestore.v1.Firestore/Listen/channel", "/nothing",
        ], ["GET", "POST", "PUT", "PATCH", "DELETE"]
      ),
      (
        ports.firestore,
        [
          "commit", "batchWrite", "batchGet", "beginTransaction", "rollback", "runQuery",
          "runAggregationQuery",
          "partitionQuery", "listCollectionIds", "listen", "write",
        ].map { "\(collection):\($0)" }, ["GET", "POST"]
      ),
      (
        ports.database,
        [
          "/.json", "/vault.json", "/vault", "/.settings/rules.json", "/.settings/rules.json.x",
          "/.settings/strictTriggerValidation.json", "/.inspect/databases.json", "/.inspect/coverage",
          "/.upload",
        ].map { $0 + "?ns=my-app-default-rtdb" } + [
          "/.json?ns=my-app-default-rtdb&format=export&shallow=true"
        ],
        ["GET", "POST", "PUT", "PATCH", "DELETE"]
      ),
      (
        ports.auth,
        [
          "/v1/projects/my-app/accounts", "/v1/projects/my-app/accounts:lookup",
          "/v1/projects/my-app/accounts:update", "/v1/projects/my-app/accounts:delete",
          "/v1/projects/my-app/accounts:batchCreate", "/v1/projects/my-app/accounts:batchGet",
          "/v1/projects/my-app/accounts:batchDelete", "/v1/projects/my-app/accounts:query",
          "/v1/projects/my-app/accounts:sendOobCode", "/v1/projects/my-app:createSessionCookie",
          "/v2/projects/my-app/config", "/v2/projects/my-app/tenants", "/v1/accounts:update",
          "/v1/accounts:delete", "/v1/accounts:lookup",
        ].map { toolkit + $0 } + [
          "/emulator/v1/projects/my-app/accounts", "/emulator/v1/projects/my-app/config",
          "/emulator/v1/projects/my-app/oobCodes", "/emulator/v1/projects/my-app/verificationCodes",
          "/credentials", "/credentials:revoke", "/token", "/securetoken.googleapis.com/v1/token", "/",
        ], ["GET", "POST", "PATCH", "DELETE"]
      ),
    ]
    for door in doors {
      for path in door.paths {
        for method in door.methods {
          for caller in Self.callers {
            let target = path + (caller.isEmpty ? "" : (path.contains("?") ? "&" : "?") + caller)
            let response = try await PlainRequest.send(
              door.port, "\(method) \(target)", method == "GET" ? "" : Self.body(of: path))
            let status = response.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
            #expect((400..<600).contains(status), "\(method) \(target): \(response.prefix(200))")
            #expect(!response.contains(Self.marker), "\(method) \(target)")
          }
        }
      }
    }
  }

  /// A body that would change or read the stored data if its operation were permitted.
  private static func body(of path: String) -> String {
    let query = #"{"from":[{"collectionId":"vault"}]}"#
    switch path.split(separator: ":").last {
    case "batchGet": return #"{"documents":["\#(document)"]}"#
    case "commit", "batchWrite": return #"{"writes":[{"delete":"\#(document)"}]}"#
    case "runQuery", "partitionQuery": return #"{"structuredQuery":\#(query)}"#
    case "runAggregationQuery":
      return #"{"structuredAggregationQuery":{"structuredQuery":\#(query),"aggregations":[{"count":{}}]}}"#
    case "batchDelete": return #"{"localIds":["u1"],"force":true}"#
    default: return path.contains(".json") || path.contains("/vault") ? #"{"fields":{}}"# : "{}"
    }
  }

  // MARK: gRPC

  private func tryRPC(_ port: Int) async throws {
    let client = try await GRPCTestClient.connect(port: port)
    let requests = Self.requests
    for credential in [nil, "Bearer owner", "Bearer e30.e30.", "nonsense"] {
      let metadata = credential.map { [("authorization", $0)] } ?? []
      for (method, request) in requests {
        let call = try await client.open(method, metadata: metadata)
        // The response may arrive before the request is sent.
        try? await call.send(request, endStream: method != "Listen" && method != "Write")
        if method == "Write" { try? await call.send(Self.write(token: "1"), endStream: true) }
        let (status, bytes) = try await Self.outcome(of: call, endsByTarget: method == "Listen")
        #expect(status != .ok, "\(method) \(credential ?? "")")
        #expect(!String(decoding: bytes, as: UTF8.self).contains(Self.marker), "\(method)")
      }
      for service in ["google.firestore.admin.v1.FirestoreAdmin", "grpc.reflection.v1.ServerReflection"] {
        let call = try await client.open("ListIndexes", service: service, metadata: metadata)
        try? await call.halfClose()
        #expect(try await call.status().code == .unimplemented, "\(service)")
      }
    }
    await client.close()
  }

  /// The status of a call, or the code of the cause for which its target is removed, and all bytes of its messages.
  private static func outcome(
    of call: GRPCTestCall, endsByTarget: Bool
  ) async throws -> (GRPCStatus.Code, [UInt8]) {
    var bytes: [UInt8] = []
    while true {
      switch try await call.next() {
      case .metadata: continue
      case .end(let status, _): return (status.code, bytes)
      case .message(let message):
        bytes += message.readableBytesView
        guard endsByTarget else { continue }
        let change = try Google_Firestore_V1_ListenResponse(
          serializedBytes: Array(message.readableBytesView)
        ).targetChange
        guard change.targetChangeType == .remove else { continue }
        try await call.reset()
        return (GRPCStatus.Code(rawValue: UInt32(clamping: change.cause.code)), bytes)
      }
    }
  }

  private static func write(token: String) -> Google_Firestore_V1_WriteRequest {
    .with {
      $0.database = "projects/my-app/databases/(default)"
      $0.streamToken = Data(token.utf8)
      $0.writes = [.with { $0.delete = document }]
    }
  }

  private static var requests: [(method: String, request: any Message)] {
    let database = "projects/my-app/databases/(default)"
    let query = Google_Firestore_V1_StructuredQuery.with { $0.from = [.with { $0.collectionID = "vault" }] }
    return [
      ("GetDocument", Google_Firestore_V1_GetDocumentRequest.with { $0.name = document }),
      (
        "ListDocuments",
        Google_Firestore_V1_ListDocumentsRequest.with {
          $0.parent = documents
          $0.collectionID = "vault"
        }
      ),
      (
        "CreateDocument",
        Google_Firestore_V1_CreateDocumentRequest.with {
          $0.parent = documents
          $0.collectionID = "vault"
        }
      ),
      ("UpdateDocument", Google_Firestore_V1_UpdateDocumentRequest.with { $0.document.name = document }),
      ("DeleteDocument", Google_Firestore_V1_DeleteDocumentRequest.with { $0.name = document }),
      (
        "BatchGetDocuments",
        Google_Firestore_V1_BatchGetDocumentsRequest.with {
          $0.database = database
          $0.documents = [document]
        }
      ),
      ("BeginTransaction", Google_Firestore_V1_BeginTransactionRequest.with { $0.database = database }),
      (
        "Commit",
        Google_Firestore_V1_CommitRequest.with {
          $0.database = database
          $0.writes = [.with { $0.delete = document }]
        }
      ),
      (
        "Rollback",
        Google_Firestore_V1_RollbackRequest.with {
          $0.database = database
          $0.transaction = Data([1])
        }
      ),
      (
        "BatchWrite",
        Google_Firestore_V1_BatchWriteRequest.with {
          $0.database = database
          $0.writes = [.with { $0.delete = document }]
        }
      ),
      ("ListCollectionIds", Google_Firestore_V1_ListCollectionIdsRequest.with { $0.parent = documents }),
      (
        "PartitionQuery",
        Google_Firestore_V1_PartitionQueryRequest.with {
          $0.parent = documents
          $0.structuredQuery = query
          $0.partitionCount = 2
        }
      ),
      (
        "RunQuery",
        Google_Firestore_V1_RunQueryRequest.with {
          $0.parent = documents
          $0.structuredQuery = query
        }
      ),
      (
        "RunAggregationQuery",
        Google_Firestore_V1_RunAggregationQueryRequest.with {
          $0.parent = documents
          $0.structuredAggregationQuery.structuredQuery = query
          $0.structuredAggregationQuery.aggregations = [.with { $0.count = .init() }]
        }
      ),
      (
        "Listen",
        Google_Firestore_V1_ListenRequest.with {
          $0.database = database
          $0.addTarget.targetID = 1
          $0.addTarget.documents.documents = [document]
        }
      ),
      ("Write", Google_Firestore_V1_WriteRequest.with { $0.database = database }),
    ]
  }

  // MARK: WebSocket

  private func trySocket(_ port: Int) async throws {
    let socket = try await RawSocket.open(
      port: port, host: "localhost:\(port)", "v=5&ns=my-app-default-rtdb")
    let requests = [
      #""a":"q","b":{"p":"/vault","h":""}"#, #""a":"g","b":{"p":"/vault","q":{}}"#,
      #""a":"p","b":{"p":"/vault","d":1}"#, #""a":"m","b":{"p":"/","d":{"vault":1}}"#,
      #""a":"o","b":{"p":"/vault","d":1}"#, #""a":"om","b":{"p":"/","d":{"vault":1}}"#,
      #""a":"auth","b":{"cred":"owner"}"#, #""a":"gauth","b":{"cred":"owner"}"#,
      #""a":"gauth","b":{"cred":"e30.e30.","authvar":{"uid":"ada"}}"#, #""a":"g","b":{"p":"/","q":{}}"#,
    ]
    for (number, request) in requests.enumerated() {
      try await socket.send(#"{"r":\#(number),\#(request)}"#)
      let reply = try await socket.next()
      #expect(reply.hasPrefix(#"{"r":\#(number),"b":{"s":""#) && !reply.contains(#""s":"ok""#), "\(reply)")
      #expect(!reply.contains(Self.marker))
    }
    await socket.close()
  }
}
