// A suite server is an emulator with both databases and the emulator hub, for tests of exports. The hub is
// the port from which the Firebase CLI requests exports.

import FirestoreProtobuf
import Foundation
import HearthServer
import RealtimeModel
import Testing

extension FirestoreTestServer {
  static func servingSuite(
    _ change: (inout HearthConfiguration) -> Void = { _ in },
    _ body: (FirestoreTestServer) async throws -> Void
  ) async throws {
    try await serving {
      $0.hub = .init(port: 0)
      $0.project = "demo-test"
      change(&$0)
    } _: {
      try await body($0)
    }
  }

  /// Starts a server with a changed configuration. Returns the error if the start fails; an empty string if
  /// it succeeds.
  static func startError(_ change: (inout HearthConfiguration) -> Void) async -> String {
    do {
      try await servingSuite(change) { _ in Issue.record("the server started") }
      return ""
    } catch { return "\(error)" }
  }

  /// Requests an export from the hub, as the Firebase CLI does.
  func export(_ path: String, targets: String = "", headers: [String] = []) async throws -> RESTReply {
    try await RESTClient.request(
      server.hubPort ?? 0, "POST", "/_admin/export",
      body: "{\"path\":\"\(path)\",\"initiatedBy\":\"emulators:export\"\(targets)}", headers: headers)
  }

  /// Sends a request to the Realtime Database and expects success.
  func realtime(_ method: String, _ target: String, _ body: String? = nil) async throws -> String {
    let reply = try await RESTClient.request(
      server.databasePort ?? 0, method, target, body: body, headers: ["Authorization: Bearer owner"])
    #expect(reply.status == 200, "\(reply.body)")
    return reply.body
  }

  /// Writes to two databases of each product.
  func fill() async throws {
    try await client.commit([.set("c/a", ["n": .int(1)]), .set("c/a/s/b", ["t": .text("ä")])])
    _ = try await rest(
      "POST", "/v1/projects/demo-test/databases/second/documents/c?documentId=x",
      #"{"fields":{"n":{"integerValue":"7"}}}"#)
    _ = try await realtime("PUT", "/.json?ns=demo-test-default-rtdb", #"{"a":{".value":1,".priority":2}}"#)
    _ = try await realtime("PUT", "/.json?ns=other", #"{"b":[1,2]}"#)
  }

  /// Expects the data that ``fill()`` wrote.
  func expectFilled() async throws {
    #expect(try await client.get("c/a").fields["n"]?.integerValue == 1)
    #expect(try await client.get("c/a/s/b").fields["t"]?.stringValue == "ä")
    let other = try await rest("GET", "/v1/projects/demo-test/databases/second/documents/c/x")
    #expect(other.json["fields"]["n"]["integerValue"] == .string("7"))
    #expect(
      try await realtime("GET", "/.json?format=export&ns=demo-test-default-rtdb")
        == #"{"a":{".value":1,".priority":2}}"#)
    #expect(try await realtime("GET", "/.json?ns=other") == #"{"b":[1,2]}"#)
  }
}
