// Tests that a production server rejects callers without credentials: requests to every port, path and method neither
// return nor change stored data. The server is started as docs/production.md shows. The operations of the auth port,
// the verbs of REST, the gRPC methods and the settings come from the tables of the server (EndpointTables.swift).

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

@Suite("Endpoints of a production server without credentials", .serialized, .timeLimit(.minutes(5)))
struct ProductionEndpointTests {
  private static let project = "my-app"
  private static let documents = "projects/my-app/databases/(default)/documents"
  private static let document = documents + "/vault/a"
  private static let toolkit = "/identitytoolkit.googleapis.com"
  /// The stored text that no response may contain.
  private static let marker = "stored-for-the-administrator"
  /// Callers without accepted credentials: query parameters, and a header.
  private static let callers: [(query: String, header: String?)] = [
    ("", nil), ("access_token=owner", nil), ("access_token=e30.e30.", nil), ("auth=owner&key=k", nil),
    ("key=k", "Authorization: Bearer owner"), ("key=k", "Authorization: Bearer e30.e30."),
  ]
  /// The operations of the auth port that succeed without credentials, even if the body names another account. Most of
  /// these operations return settings that SDKs read at the start, or published keys. `revokeToken` does nothing.
  /// `createAuthUri` lists sign-in methods without showing whether an account exists.
  private static let publicOperations: Set<String> = [
    "GET /identitytoolkit.googleapis.com/v1/projects",
    "GET /identitytoolkit.googleapis.com/v1/recaptchaParams",
    "GET /identitytoolkit.googleapis.com/v1/sessionCookiePublicKeys",
    "GET /identitytoolkit.googleapis.com/v2/passwordPolicy",
    "GET /identitytoolkit.googleapis.com/v2/recaptchaConfig",
    "POST /identitytoolkit.googleapis.com/v2/accounts:revokeToken",
    "POST /identitytoolkit.googleapis.com/v1/accounts:createAuthUri",
    "POST /www.googleapis.com/identitytoolkit/v3/relyingparty/createAuthUri",
    "GET /www.googleapis.com/identitytoolkit/v3/relyingparty/getProjectConfig",
    "GET /www.googleapis.com/identitytoolkit/v3/relyingparty/getRecaptchaParam",
  ]

  private struct Ports {
    var firestore: Int
    var database: Int
    var auth: Int
  }

  @Test("Every port, path and method of a production server rejects callers without credentials")
  func endpoints() async throws {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent(
      "hearth-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: directory) }
    let data = directory.appendingPathComponent("data").path
    let process = try HearthProcess([
      "serve", "--data", data, "--project", Self.project, "--firestore-port", "0", "--database-port", "0",
      "--auth-port", "0",
    ])
    try await process.wait(for: "ready\n")
    let administrator = try await Self.administratorToken(data)
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

    let account = Self.toolkit + "/v1/projects/my-app/accounts"
    let authorization = ["Authorization: Bearer \(administrator)"]
    let user =
      #"{"localId":"u1","email":"vault@example.com","password":"right-password","displayName":"\#(Self.marker)"}"#
    #expect(
      try await PlainRequest.send(ports.auth, "POST \(account)", user, headers: authorization).contains(
        " 200 "))
    func storedUser() async throws -> Substring? {
      try await PlainRequest.send(
        ports.auth, "POST \(account):lookup", #"{"localId":["u1"]}"#, headers: authorization
      ).split(separator: "\r\n\r\n").last
    }
    let userBefore = try await storedUser()
    #expect(userBefore?.contains(Self.marker) == true)

    try await tryREST(ports)
    try await tryOperations(ports.auth)
    try await tryRPC(ports.firestore)
    try await trySocket(ports.database)
    try await tryLongPolling(ports.database)

    #expect(try await storedUser() == userBefore)

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
  private static func administratorToken(_ data: String) async throws -> String {
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
    let endpoints: [(port: Int, paths: [String], methods: [String])] = [
      (
        ports.firestore,
        [
          "/v1/\(Self.document)", "\(collection)/vault", databases, "\(databases)/(default)",
          "\(databases)/(default)/collectionGroups/vault/indexes", "/v1/projects/my-app/releases",
          "/v1/projects/my-app/rulesets", "/emulator/v1/\(Self.documents)",
          "/emulator/v1/projects/my-app:securityRules", "/emulator/v1/projects/my-app:ruleCoverage", "/reset",
          "/v1/projects/my-app:test", "/v1/projects/my-app/rulesets/1", "/v1/projects/my-app/rulesets/1:test",
          "/v1/projects/my-app/releases/cloud.firestore",
          "/v1/projects/my-app/releases/cloud.firestore:getExecutable",
          "/hearth/v1/projects/my-app/databases/(default)/denials",
          "/hearth/v1/projects/my-app/databases/(default)/denials/1",
          "/hearth/v1/projects/my-app/databases/(default)/denials/1:replay",
          "/hearth/v1/projects/my-app/instances/my-app-default-rtdb/denials",
          "/google.firestore.v1.Firestore/Listen/channel", "/google.firestore.v1.Firestore/Write/channel",
          "/nothing",
        ], ["GET", "POST", "PUT", "PATCH", "DELETE"]
      ),
      (
        ports.firestore,
        DatabaseEndpointNames.verbs.map { "\(collection):\($0)" }, ["GET", "POST"]
      ),
      (
        ports.database,
        [
          "/.json", "/vault.json", "/vault", "/.settings/rules.json.x", "/.inspect/databases.json",
          "/.inspect/coverage", "/.inspect/coverage.json", "/.upload", "/.ws",
          "/namespaces/my-app-default-rtdb/rulesets", "/namespaces/my-app-default-rtdb/rulesets/1",
          "/namespaces/my-app-default-rtdb/ruleset_labels",
        ].map { $0 + "?ns=my-app-default-rtdb" }
          + (DatabaseEndpointNames.settings + [
            "rulesets", "rulesets/1", "ruleset_labels", "functionTriggers",
          ])
          .map { "/.settings/\($0).json?ns=my-app-default-rtdb" } + [
            "/.json?ns=my-app-default-rtdb&format=export&shallow=true"
          ],
        ["GET", "POST", "PUT", "PATCH", "DELETE"]
      ),
      (
        ports.auth,
        [
          "/emulator/v1/projects/my-app/accounts", "/emulator/v1/projects/my-app/config",
          "/emulator/v1/projects/my-app/oobCodes", "/emulator/v1/projects/my-app/verificationCodes",
          "/credentials", "/credentials:revoke", "/token", "/securetoken.googleapis.com/v1/token", "/",
        ], ["GET", "POST", "PATCH", "DELETE"]
      ),
    ]
    for endpoint in endpoints {
      for path in endpoint.paths {
        for method in endpoint.methods {
          for caller in Self.callers {
            let response = try await attempt(endpoint.port, method, path, Self.body(of: path), caller)
            #expect((400..<600).contains(Self.status(response)), "\(method) \(path): \(response.prefix(200))")
          }
        }
      }
    }
  }

  /// Sends a request, whose response must not contain stored data.
  private func attempt(
    _ port: Int, _ method: String, _ path: String, _ body: String, _ caller: (query: String, header: String?),
    address: String? = nil
  ) async throws -> String {
    let target = path + (caller.query.isEmpty ? "" : (path.contains("?") ? "&" : "?") + caller.query)
    let response = try await PlainRequest.send(
      port, "\(method) \(target)", method == "GET" ? "" : body,
      headers: ["Content-Type: application/json"]
        + [caller.header, address.map { "X-Forwarded-For: " + $0 }].compactMap(\.self))
    #expect(!response.contains(Self.marker), "\(method) \(target) \(caller.header ?? "")")
    return response
  }

  private static func status(_ response: String) -> Int {
    response.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
  }

  /// The errors of checks that run after an operation has accepted the members of the body. Such an error shows that a
  /// request reached the stored accounts and codes.
  private static let reachedErrors: Set<String> = [
    "INVALID_LOGIN_CREDENTIALS", "EMAIL_EXISTS", "INVALID_OOB_CODE", "INVALID_SESSION_INFO",
    "INVALID_TEMPORARY_PROOF", "INVALID_MFA_PENDING_CREDENTIAL", "INVALID_CUSTOM_TOKEN",
    "INVALID_REFRESH_TOKEN", "MISSING_ID_TOKEN", "no way to send e-mails", "no way to send text messages",
  ]

  /// Tries every operation of the auth port. It tries operations for administrators as every caller, and other
  /// operations with an API key. Each request has a different address, because guesses are limited per address.
  private func tryOperations(_ port: Int) async throws {
    var (successes, reached): (Set<String>, Set<String>) = ([], [])
    var number = 0
    for endpoint in IdentityEndpointCase.all {
      for caller in endpoint.isPrivileged ? Self.callers : [("key=k", nil)] {
        for body in endpoint.bodies {
          number += 1
          let response = try await attempt(
            port, endpoint.method, endpoint.path, body, caller,
            address: "203.0.\(number / 256).\(number % 256)")
          let isRejected = (400..<600).contains(Self.status(response))
          if !isRejected { successes.insert("\(endpoint.method) \(endpoint.path)") }
          reached.formUnion(Self.reachedErrors.filter(response.contains))
          #expect(
            isRejected || !endpoint.isPrivileged,
            "\(endpoint.method) \(endpoint.path): \(response.prefix(200))")
          #expect(
            !response.contains("TOO_MANY_ATTEMPTS"), "the attempt was not decided: \(endpoint.path) \(body)")
          #expect(!response.contains("vault@example.com") || isRejected, "\(endpoint.path): \(response)")
        }
      }
    }
    #expect(reached == Self.reachedErrors)
    #expect(successes == Self.publicOperations)
  }

  /// A body that would change or read the stored data if its operation were permitted.
  private static func body(of path: String) -> String {
    let query = #"{"from":[{"collectionId":"vault"}]}"#
    switch path.split(separator: ":").last {
    case "batchGet": return #"{"documents":["\#(document)"]}"#
    case "executePipeline": return #"{"structuredPipeline":{"pipeline":{"stages":[]}}}"#
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
    #expect(Set(requests.map(\.method)) == (try DatabaseEndpointNames.methods()))
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

  /// The status of a call and all bytes of its messages. If its target is removed, the code of the cause replaces the
  /// status.
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
        "ExecutePipeline",
        Google_Firestore_V1_ExecutePipelineRequest.with {
          $0.database = database
          $0.structuredPipeline.pipeline.stages = [
            .with {
              $0.name = "collection"
              $0.args = [.with { $0.referenceValue = "/vault" }]
            }
          ]
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

  /// Requests of the Realtime Database's protocol.
  private static let realtimeRequests = [
    #""a":"q","b":{"p":"/vault","h":""}"#, #""a":"g","b":{"p":"/vault","q":{}}"#,
    #""a":"p","b":{"p":"/vault","d":1}"#, #""a":"m","b":{"p":"/","d":{"vault":1}}"#,
    #""a":"o","b":{"p":"/vault","d":1}"#, #""a":"om","b":{"p":"/","d":{"vault":1}}"#,
    #""a":"auth","b":{"cred":"owner"}"#, #""a":"gauth","b":{"cred":"owner"}"#,
    #""a":"gauth","b":{"cred":"e30.e30.","authvar":{"uid":"ada"}}"#, #""a":"g","b":{"p":"/","q":{}}"#,
  ]

  private func trySocket(_ port: Int) async throws {
    let socket = try await RawSocket.open(
      port: port, host: "localhost:\(port)", "v=5&ns=my-app-default-rtdb")
    for (number, request) in Self.realtimeRequests.enumerated() {
      try await socket.send(#"{"r":\#(number),\#(request)}"#)
      let reply = try await socket.next()
      #expect(reply.hasPrefix(#"{"r":\#(number),"b":{"s":""#) && !reply.contains(#""s":"ok""#), "\(reply)")
      #expect(!reply.contains(Self.marker))
    }
    await socket.close()
  }

  private func tryLongPolling(_ port: Int) async throws {
    func poll(_ query: String) async throws -> String {
      let response = try await PlainRequest.send(port, "GET /.lp?ns=my-app-default-rtdb&\(query)")
      #expect(Self.status(response) == 200 && !response.contains(Self.marker), "\(response)")
      return response
    }
    let start = try await poll("start=t&ser=1&cb=7&v=5").split(separator: "pLPCommand('start','").last ?? ""
    let parts = start.split(separator: "'")
    let session = "id=\(parts.first ?? "")&pw=\(parts.dropFirst(2).first ?? "")"
    var serial = 1
    for (number, request) in Self.realtimeRequests.enumerated() {
      let message = Array(#"{"t":"d","d":{"r":\#(number),\#(request)}}"#.utf8)
      let data = Base64.encode(message, .urlSafe, padded: true).replacing("=", with: ".")
      serial += 1
      var text = try await poll("\(session)&ser=\(serial)&seg0=\(number)&ts0=1&d0=\(data)")
      while !text.contains(#""r":\#(number)"#) {
        serial += 1
        text += try await poll("\(session)&ser=\(serial)")
      }
      #expect(!text.contains(#""s":"ok""#), "\(text)")
    }
  }
}
