// Tests a server without --emulator and without rules. Every data port rejects credentials that the server did not
// issue, with the official error for an unknown client. Every data port also denies callers without credentials.

import FirestoreProtobuf
import Foundation
import GRPCFraming
import HearthServer
import NIOCore
import SwiftProtobuf
import Testing

@testable import EndpointFixture

@Suite("Without --emulator", .timeLimit(.minutes(10)))
struct ProductionTests {
  private func withServer(_ body: (FirestoreTestServer) async throws -> Void) async throws {
    let server = try await FirestoreTestServer.start {
      $0.emulator = false
      // The server creates the database of this project.
      $0.project = "demo-test"
      $0.auth = .init(port: 0)
    }
    do {
      try await body(server)
    } catch {
      await server.stop()
      throw error
    }
    await server.stop()
  }

  @Test(
    "A request that rules deny gets only the hosted product's error text, without the rule, its line or a value"
  )
  func denial() async throws {
    let path = FirestoreTestServer.temporaryDirectory() + ".rules"
    defer { try? FileManager.default.removeItem(atPath: path) }
    let rules = """
      rules_version = '2';
      service cloud.firestore {
        match /databases/{database}/documents/a/{id} { allow read: if debug(resource.data.open) == true; }
      }
      """
    try Data(rules.utf8).write(to: URL(fileURLWithPath: path))
    let server = try await FirestoreTestServer.start {
      $0.emulator = false
      $0.project = "demo-test"
      $0.auth = .init(port: 0)
      $0.rulesFiles = [.init(path: path)]
    }
    do {
      let denied = try await server.rest("GET", "/v1/\(FirestoreTestServer.documents)/a/b")
      #expect(denied.status == 403)
      #expect(denied.error["message"] == .string("Missing or insufficient permissions."))
    } catch {
      await server.stop()
      throw error
    }
    await server.stop()
  }

  private static let credentials: [String?] = [nil, "Bearer owner", "Bearer a.b.c", "Basic eDp5", "nonsense"]

  @Test("Every gRPC method denies callers without accepted credentials", arguments: credentials)
  func grpc(credential: String?) async throws {
    try await withServer { server in
      let metadata = credential.map { [("authorization", $0)] } ?? []
      let database = FirestoreTestServer.database
      let document = FirestoreTestServer.documents + "/a/b"
      var requests: [(String, any Message)] = []
      requests.append(("GetDocument", Google_Firestore_V1_GetDocumentRequest.with { $0.name = document }))
      requests.append(
        (
          "ListDocuments",
          Google_Firestore_V1_ListDocumentsRequest.with {
            $0.parent = FirestoreTestServer.documents
            $0.collectionID = "a"
          }
        ))
      requests.append(
        (
          "CreateDocument",
          Google_Firestore_V1_CreateDocumentRequest.with {
            $0.parent = FirestoreTestServer.documents
            $0.collectionID = "a"
          }
        ))
      requests.append(
        ("UpdateDocument", Google_Firestore_V1_UpdateDocumentRequest.with { $0.document.name = document }))
      requests.append(
        ("DeleteDocument", Google_Firestore_V1_DeleteDocumentRequest.with { $0.name = document }))
      requests.append(
        ("BeginTransaction", Google_Firestore_V1_BeginTransactionRequest.with { $0.database = database }))
      requests.append(("Commit", Google_Firestore_V1_CommitRequest.with { $0.database = database }))
      requests.append(
        (
          "Rollback",
          Google_Firestore_V1_RollbackRequest.with {
            $0.database = database
            $0.transaction = Data([1])
          }
        ))
      requests.append(
        (
          "ListCollectionIds",
          Google_Firestore_V1_ListCollectionIdsRequest.with { $0.parent = FirestoreTestServer.documents }
        ))
      requests.append(
        (
          "BatchGetDocuments",
          Google_Firestore_V1_BatchGetDocumentsRequest.with {
            $0.database = database
            $0.documents = [document]
          }
        ))
      requests.append(("RunQuery", Google_Firestore_V1_RunQueryRequest.collection("a")))
      requests.append(("Write", Google_Firestore_V1_WriteRequest.with { $0.database = database }))
      requests.append(
        (
          "Listen",
          Google_Firestore_V1_ListenRequest.with {
            $0.database = database
            $0.addTarget.documents.documents = [document]
          }
        ))
      for (method, request) in requests {
        let call = try await server.client.open(method, metadata: metadata)
        // The response may arrive before the request is sent.
        try? await call.send(request, endStream: method != "Write" && method != "Listen")
        if credential == nil, method == "Write" {
          // The stream of a caller without credentials opens; the writes that follow are denied.
          try await call.reset()
          continue
        }
        if credential == nil, method == "Listen" {
          // The stream of a caller without credentials stays open; its target is denied.
          try await Self.expectDeniedTarget(call)
          try await call.reset()
          continue
        }
        let status = try await call.status()
        let expected: [GRPCStatus.Code] =
          credential == nil ? [.unauthenticated, .permissionDenied] : [.unauthenticated]
        #expect(expected.contains(status.code), "\(method): \(status)")
        #expect(status.message.contains("auth"), "\(method): \(status.message)")
      }
    }
  }

  @Test(
    "With an unknown credential, an invalid or missing request gets the same error as a valid one",
    arguments: ["Bearer owner"])
  func invalidRequests(credential: String) async throws {
    try await withServer { server in
      let metadata = [("authorization", credential)]
      let methods = [
        "GetDocument", "ListDocuments", "CreateDocument", "UpdateDocument", "DeleteDocument",
        "BeginTransaction", "Commit", "Rollback", "BatchWrite", "ListCollectionIds", "PartitionQuery",
        "BatchGetDocuments", "RunQuery", "RunAggregationQuery", "Write", "Listen",
      ]
      for method in methods {
        let silent = try await server.client.open(method, metadata: metadata)
        #expect(try await silent.status().code == .unauthenticated, "\(method), nothing sent")
        let call = try await server.client.open(method, metadata: metadata)
        var garbage = ByteBuffer()
        garbage.writeGRPCMessage(bytes: [0xFF, 0xFF, 0xFF, 0xFF])
        try? await call.send(raw: garbage, endStream: true)
        #expect(try await call.status().code == .unauthenticated, "\(method), garbage")
      }
      let port = server.server.databasePort ?? 0
      let header = "Authorization: \(credential)\r\n"
      for target in [
        "/a.json", "/a", "/a%zz.json", "/a.json?x=%zz", "/a.json?orderBy=1", "/.settings/rules.json",
      ] {
        for method in ["GET", "PUT", "POST", "PATCH", "DELETE", "BREW"] {
          let client = try await RawClient.connect(port)
          try await client.send(
            "\(method) \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\(header)"
              + "Content-Length: 2\r\n\r\n{{")
          let text = String(decoding: await client.readToEnd(), as: UTF8.self)
          if method == "BREW", text.hasPrefix("HTTP/1.1 400") { continue }
          #expect(try RESTAnswer(text).status == 401, "\(method) \(target): \(text.prefix(80))")
        }
      }
      let large = try await RawClient.connect(port)
      try await large.send(
        "PUT /a.json HTTP/1.1\r\nHost: localhost\r\n\(header)Content-Length: 999999999\r\n\r\n")
      #expect(try await large.read(through: "\r\n").hasPrefix("HTTP/1.1 401 "))
      await large.close()
    }
  }

  @Test(
    "Every REST method of the Realtime Database returns 401 with the official body", arguments: credentials)
  func rest(credential: String?) async throws {
    try await withServer { server in
      let port = server.server.databasePort ?? 0
      for method in ["GET", "PUT", "POST", "PATCH", "DELETE"] {
        let client = try await RawClient.connect(port)
        let header = credential.map { "Authorization: \($0)\r\n" } ?? ""
        try await client.send(
          "\(method) /a.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\(header)Content-Length: 7\r\n\r\n{\"x\":1}"
        )
        let response = try RESTAnswer(String(decoding: await client.readToEnd(), as: UTF8.self))
        #expect(response.status == 401, "\(method)")
        let body = credential == nil ? "Permission denied" : "Could not parse auth token."
        #expect(response.body == "{\n  \"error\" : \"\(body)\"\n}\n", "\(method): \(response.body)")
      }
      let stream = try await RawClient.connect(port)
      try await stream.send(
        "GET /a.json HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nConnection: close\r\n\r\n")
      let response = try RESTAnswer(String(decoding: await stream.readToEnd(), as: UTF8.self))
      #expect(response.status == 401 && response.body.contains("Permission denied"))
    }
  }

  @Test("A socket receives the handshake, and its requests and credentials are rejected")
  func socket() async throws {
    try await withServer { server in
      let client = try await RawClient.connect(server.server.databasePort ?? 0)
      try await client.send(
        "GET /.ws?v=5&ns=demo HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
          + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n")
      #expect(try await client.read(through: "\r\n\r\n").hasPrefix("HTTP/1.1 101 "))
      _ = try await RawSocket.readFrame(client)
      let denied: [(String, String)] = [
        (#""a":"q","b":{"p":"/x","h":""}"#, "permission_denied"),
        (#""a":"g","b":{"p":"/x","q":{}}"#, "permission_denied"),
        (#""a":"p","b":{"p":"/x","d":1}"#, "permission_denied"),
        (#""a":"m","b":{"p":"/x","d":{"y":1}}"#, "permission_denied"),
        (#""a":"o","b":{"p":"/x","d":1}"#, "permission_denied"),
        (#""a":"p","b":{"p":"/x#","d":1}"#, "failure"),
        (#""a":"p","b":7"#, "failure"),
        (#""a":"q","b":{"p":"/x","q":{"i":7}}"#, "failure"),
        (#""a":"auth","b":{"cred":"owner"}"#, "invalid_token"),
        (#""a":"gauth","b":{"cred":"owner"}"#, "invalid_token"),
        (#""a":"p","b":{"p":"/x","d":1}"#, "permission_denied"),
      ]
      for (number, (request, status)) in denied.enumerated() {
        let text = #"{"t":"d","d":{"r":\#(number),\#(request)}}"#
        try await client.send(RawSocket.frame(1, Array(text.utf8)))
        let response = String(decoding: try await RawSocket.readFrame(client).payload, as: UTF8.self)
        #expect(response.hasPrefix(#"{"t":"d","d":{"r":\#(number),"b":{"s":"\#(status)""#), "\(response)")
      }
      await client.close()
    }
  }

  /// Reads the messages of a Listen stream until its target is removed with an error.
  private static func expectDeniedTarget(_ call: GRPCTestCall) async throws {
    while true {
      let response: Google_Firestore_V1_ListenResponse = try await call.message()
      guard response.targetChange.targetChangeType == .remove else { continue }
      #expect(response.targetChange.cause.code != 0)
      return
    }
  }

  @Test("A Listen stream ends with UNAUTHENTICATED when its user deletes the account")
  func revokedStream() async throws {
    try await withServer { server in
      let port = server.server.authPort ?? 0
      let toolkit = "/identitytoolkit.googleapis.com/v1/accounts"
      let signUp = try await RESTClient.request(port, "POST", "\(toolkit):signUp?key=k", body: "{}")
      let token = try #require(signUp.json["idToken"].string)
      let call = try await server.client.open("Listen", metadata: [("authorization", "Bearer \(token)")])
      var request = Google_Firestore_V1_ListenRequest()
      request.database = FirestoreTestServer.database
      request.addTarget.targetID = 1
      request.addTarget.documents.documents = [FirestoreTestServer.documents + "/a/b"]
      try await call.send(request)
      try await Self.expectDeniedTarget(call)
      let deleted = try await RESTClient.request(
        port, "POST", "\(toolkit):delete?key=k", body: #"{"idToken":"\#(token)"}"#)
      #expect(deleted.status == 200)
      #expect(try await call.status(within: .seconds(10)).code == .unauthenticated)
    }
  }
}
