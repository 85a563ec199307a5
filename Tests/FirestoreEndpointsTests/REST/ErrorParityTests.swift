// Compares the errors of rejected writes over gRPC, REST and WebChannel: code, message and details.

import FirestoreProtobuf
import Foundation
import GRPCFraming
import HearthServer
import NIOHPACK
import RealtimeModel
import SwiftProtobuf
import Testing

@testable import EndpointFixture

@Suite("Errors over gRPC, REST and WebChannel", .timeLimit(.minutes(2)))
struct ErrorParityTests {
  /// A rejected write.
  struct RejectedWrite: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let write: Proto.Write
    var reason: String?

    init(_ name: String, reason: String? = nil, _ write: Proto.Write) {
      testDescription = name
      self.reason = reason
      self.write = write
    }
  }

  private static func array(_ count: Int) -> Proto.Value {
    var value = Proto.Value()
    value.arrayValue.values = (0..<count).map { .int(Int64($0)) }
    return value
  }

  private static func transform(_ count: Int) -> Proto.Write {
    var write = Proto.Write.set("c/d", [:])
    write.updateTransforms = (0..<count).map { index in
      .with {
        $0.fieldPath = "f\(index)"
        $0.increment = .int(1)
      }
    }
    return write
  }

  static let rejectedWrites: [RejectedWrite] = [
    RejectedWrite("nothing to write", .init()), RejectedWrite("a collection's name", .set("a/b/c", [:])),
    RejectedWrite(
      "a missing document that must exist", Proto.Write.set("there/none", [:]).requiring(exists: true)),
    RejectedWrite(
      "a document that must not exist", Proto.Write.set("there/is", [:]).requiring(exists: false)),
    RejectedWrite("a reserved field", .set("there/is", ["__x__": .int(1)])),
    RejectedWrite("an empty field", .set("there/is", ["": .int(1)])),
    RejectedWrite("too many transforms", transform(501)),
    RejectedWrite(
      "another database", .with { $0.delete = "projects/demo-test/databases/other/documents/a/b" }),
    RejectedWrite(
      "another update time",
      .with {
        $0 = .delete("there/is")
        $0.currentDocument.updateTime = .init(seconds: 1)
      }),
    RejectedWrite(
      "too many index entries", reason: "INDEX_ENTRIES_COUNT_LIMIT_EXCEEDED",
      .set("c/d", ["a": array(20_000)])),
  ]

  @Test("a rejected write has the same error over gRPC, REST and WebChannel", arguments: rejectedWrites)
  func writes(rejected: RejectedWrite) async throws {
    try await FirestoreTestServer.serving { server in
      try await server.client.commit([.set("there/is", [:])])
      let request = Google_Firestore_V1_CommitRequest.with {
        $0.database = FirestoreTestServer.database
        $0.writes = [rejected.write]
      }
      let (status, trailers) = try await outcome(of: "Commit", request, server)
      let rest = try await server.rest(
        "POST", "/v1/\(FirestoreTestServer.documents):commit", try request.jsonString())
      let channel = try await webChannelError(of: rejected.write, server)
      #expect(status.code != .ok && !status.message.isEmpty)
      for error in [rest.error, channel] {
        #expect(error["status"].string == status.code.name, "\(error)")
        #expect(error["message"].string == status.message)
      }
      #expect(rest.error["code"] == .int(Int64(rest.status)))
      #expect(channel["code"] == .int(Int64(status.code.rawValue)))
      #expect(rest.error["details"] == channel["details"])
      guard let reason = rejected.reason else {
        #expect(rest.error["details"] == .null && trailers == nil)
        return
      }
      let info = rest.error["details"][0]
      #expect(info["@type"] == .string("type.googleapis.com/google.rpc.ErrorInfo"))
      #expect(info["reason"] == .string(reason) && info["domain"] == .string("firestore.googleapis.com"))
      let details = try Google_Rpc_Status(serializedBytes: try #require(trailers))
      #expect(details.code == Int32(status.code.rawValue) && details.message == status.message)
      #expect(details.details.first?.typeURL == "type.googleapis.com/google.rpc.ErrorInfo")
      #expect(details.details.first?.value.range(of: Data(reason.utf8)) != nil)
    }
  }

  @Test("an invalid request names its field in the error details, over REST and WebChannel")
  func invalidPayload() async throws {
    try await FirestoreTestServer.serving { server in
      let message = "Invalid JSON payload received. Unknown name \"x\" at 'writes[0]': Cannot find field."
      let rest = try await server.rest(
        "POST", "/v1/\(FirestoreTestServer.documents):commit", #"{"writes":[{"x":1}]}"#)
      let channel = try await webChannelError(#"{"streamToken":"MA==","writes":[{"x":1}]}"#, server)
      for error in [rest.error, channel] {
        #expect(error["status"] == .string("INVALID_ARGUMENT") && error["message"] == .string(message))
        let detail = error["details"][0]
        #expect(detail["@type"] == .string("type.googleapis.com/google.rpc.BadRequest"))
        #expect(detail["fieldViolations"][0]["field"] == .string("writes[0]"))
        #expect(detail["fieldViolations"][0]["description"] == .string(message))
      }
      let parameter = try await server.rest("GET", "/v1/\(FirestoreTestServer.documents)/a/b?nope=1")
      #expect(parameter.status == 400)
      #expect(parameter.error["details"][0]["fieldViolations"].array?.count == 1)
    }
  }

  @Test(
    "REST requests for the bidirectional streams get 400, as from Firebase")
  func bidirectionalStreams() async throws {
    try await FirestoreTestServer.serving { server in
      for verb in ["listen", "write"] {
        let reply = try await server.rest("POST", "/v1/\(FirestoreTestServer.documents):\(verb)", "{}")
        #expect(reply.status == 400 && reply.json.array?.count == 1)
        #expect(reply.error["status"] == .string("INVALID_ARGUMENT"))
        #expect(reply.error["message"].string?.contains("only available via gRPC or WebChannel") == true)
      }
    }
  }

  /// Returns the status of a call, and the details in its trailers.
  private func outcome(
    of method: String, _ request: some Message, _ server: FirestoreTestServer
  ) async throws -> (GRPCStatus, [UInt8]?) {
    let call = try await server.client.open(method)
    // The error may arrive before the request is sent completely.
    try? await call.send(request, endStream: true)
    while true {
      guard case .end(let status, let trailers) = try await call.next() else { continue }
      guard var text = trailers.first(name: "grpc-status-details-bin") else { return (status, nil) }
      while !text.count.isMultiple(of: 4) { text += "=" }
      return (status, [UInt8](try #require(Data(base64Encoded: text))))
    }
  }

  private func webChannelError(
    of write: Proto.Write, _ server: FirestoreTestServer
  ) async throws -> JSONTree {
    let json = try write.jsonString()
    return try await webChannelError("{\"streamToken\":\"MA==\",\"writes\":[\(json)]}", server)
  }

  private func webChannelError(_ message: String, _ server: FirestoreTestServer) async throws -> JSONTree {
    let port = try #require(server.server.firestorePort)
    let (client, _) = try await WebChannelTestClient.handshake(
      port, "Write", ["{\"database\":\"\(WebChannelTestClient.database)\"}"])
    _ = try await client.post([message], from: 1)
    let back = try await client.open(after: 0)
    let last = try #require(try await back.arrays(until: "\"error\"").last)
    await back.close()
    return JSONTree(last.payload)[0]["error"]
  }
}
