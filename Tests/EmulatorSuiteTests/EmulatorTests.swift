// Tests the emulator's paths on the Firestore port: clearing databases and collections, and the rejection of triggers.

import FirestoreProtobuf
import HearthServer
import JSON
import RealtimeModel
import SwiftProtobuf
import Testing

@testable import EmulatorSuite
@testable import EndpointFixture

@Suite("Emulator HTTP interface", .timeLimit(.minutes(10)))
struct EmulatorTests {
  private let clear = "/emulator/v1/" + FirestoreTestServer.documents

  /// Returns the paths of all documents of a database.
  private func documentPaths(_ server: FirestoreTestServer, _ database: String) async throws -> [String] {
    let reply = try await server.rest(
      "POST", "/v1/\(database)/documents:runQuery",
      "{\"structuredQuery\":{\"from\":[{\"allDescendants\":true}],\"select\":{\"fields\":[{\"fieldPath\":\"__name__\"}]}}}"
    )
    return reply.json.array?.compactMap {
      $0["document"]["name"].string?.split(separator: "/documents/").last
    }
    .map(String.init) ?? []
  }

  @Test("Clearing a database keeps other databases; clearing an unknown database succeeds")
  func clearing() async throws {
    try await FirestoreTestServer.serving { server in
      let other = "projects/demo-test/databases/Other"
      try await server.client.commit([.set("a/b", [:]), .set("a/b/c/d", [:]), .set("x/none/y/z", [:])])
      #expect(try await server.rest("PATCH", "/v1/\(other)/documents/a/b", "{}").status == 200)
      let reply = try await server.rest("DELETE", clear)
      #expect(reply.status == 200 && reply.body == "{}\n")
      #expect(try await documentPaths(server, FirestoreTestServer.database).isEmpty)
      #expect(try await documentPaths(server, other) == ["a/b"])
      #expect(
        try await server.rest("DELETE", "/emulator/v1/projects/p/databases/new/documents").status == 200)
      #expect(try await server.rest("GET", clear).status == 404)
      #expect(try await server.rest("POST", "/reset", "").body == "Resetting...\n")
      #expect(try await documentPaths(server, other).isEmpty)
    }
  }

  @Test("Registering a Cloud Functions trigger fails as unimplemented, with the reason")
  func triggers() async throws {
    try await FirestoreTestServer.serving { server in
      let reply = try await server.rest(
        "PUT", "/emulator/v1/projects/p/triggers/onCreate", #"{"eventTrigger":{}}"#)
      #expect(reply.status == 501)
      #expect(
        reply.body.contains("UNIMPLEMENTED") && reply.body.contains("Cloud Functions are not supported"))
    }
  }

  @Test(
    "Clearing a path deletes a document with its subcollections, or a collection",
    arguments: [
      ("/a/b", ["a/c", "x/y"]), ("/a", ["x/y"]), ("/a/b/sub", ["a/b", "a/c", "x/y"]), ("/none", []),
    ])
  func subtrees(path: String, expectedPaths: [String]) async throws {
    try await FirestoreTestServer.serving { server in
      try await server.client.commit(["a/b", "a/b/sub/s", "a/c", "x/y"].map { .set($0, [:]) })
      #expect(try await server.rest("DELETE", clear + path).status == 200)
      let remaining = try await documentPaths(server, FirestoreTestServer.database)
      #expect(
        remaining.sorted() == (expectedPaths.isEmpty ? ["a/b", "a/b/sub/s", "a/c", "x/y"] : expectedPaths))
    }
  }

  @Test("Listeners receive a cleared database as one snapshot, also during a transaction")
  func listeners() async throws {
    try await FirestoreTestServer.serving { server in
      try await server.client.commit((0..<50).map { .set("c/d\($0)", [:]) })
      let begun = try await server.rest("POST", "/v1/\(FirestoreTestServer.documents):beginTransaction", "{}")
      let token = try #require(begun.json["transaction"].string)
      _ = try await server.rest(
        "POST", "/v1/\(FirestoreTestServer.documents):batchGet",
        "{\"transaction\":\"\(token)\",\"documents\":[\"\(FirestoreTestServer.documents)/c/d1\"]}")
      let listen = try await server.client.open("Listen")
      try await listen.send(
        Proto.Listen.with {
          $0.database = FirestoreTestServer.database
          $0.addTarget.targetID = 2
          $0.addTarget.query.parent = FirestoreTestServer.documents
          $0.addTarget.query.structuredQuery.from = [.with { $0.collectionID = "c" }]
        })
      let found = try await Self.snapshot(listen).filter {
        if case .documentChange? = $0.responseType { true } else { false }
      }
      #expect(found.count == 50)
      #expect(try await server.rest("DELETE", clear).status == 200)
      let deleted = try await Self.snapshot(listen).filter {
        if case .documentDelete? = $0.responseType { true } else { false }
      }
      #expect(deleted.count == 50)
    }
  }

  /// Returns the responses of a stream up to the next consistent snapshot that is not empty.
  private static func snapshot(_ call: GRPCTestCall) async throws -> [Proto.ListenResponse] {
    var seen: [Proto.ListenResponse] = []
    while true {
      let message: Proto.ListenResponse = try await call.message()
      seen.append(message)
      guard case .targetChange(let change)? = message.responseType, change.targetIds.isEmpty,
        change.hasReadTime
      else { continue }
      if seen.contains(where: { if case .targetChange? = $0.responseType { false } else { true } }) {
        return seen
      }
    }
  }

  @Test("A database is created by the first use of its name, and databases share no documents")
  func databases() async throws {
    try await FirestoreTestServer.serving { server in
      let names = [
        "projects/one/databases/(default)", "projects/one/databases/x", "projects/Two/databases/X_y",
      ]
      for (index, name) in names.enumerated() {
        let body = "{\"fields\":{\"n\":{\"integerValue\":\(index)}}}"
        #expect(try await server.rest("PATCH", "/v1/\(name)/documents/a/b", body).status == 200)
      }
      for (index, name) in names.enumerated() {
        let read = try await server.rest("GET", "/v1/\(name)/documents/a/b")
        #expect(read.json["fields"]["n"]["integerValue"] == .string("\(index)"))
      }
    }
  }

  /// A browser opens six connections over HTTP/1.1. With six back channels, a request waits for the end of one of them. Clients
  /// report after ten seconds that they are offline.
  @Test("The sixth back channel over HTTP/1.1 ends within ten seconds, and all streams continue")
  func sixthBackChannel() async throws {
    try await FirestoreTestServer.serving { server in
      let port = try #require(server.server.firestorePort)
      let listen = WebChannelTestClient.listen(to: "a/b", 2)
      func open() async throws -> (client: WebChannelTestClient, back: BackChannel) {
        let client = try await WebChannelTestClient.handshake(port, "Listen", [listen]).client
        let back = try await client.open(after: 0)
        _ = try await back.arrays(until: "CURRENT")
        return (client, back)
      }
      var channels: [BackChannel] = []
      for _ in 0..<5 { channels.append(try await open().back) }
      let sixth = try await open()
      let start = ContinuousClock.now
      let arrays = try await sixth.back.arrays(until: "no array contains this")
      #expect(ContinuousClock.now - start < .seconds(10))
      await sixth.back.close()
      channels.append(try await sixth.client.open(after: arrays.last?.id ?? 0))
      try await server.client.commit([.set("a/b", ["n": .int(1)])])
      for channel in channels {
        #expect(try await channel.arrays(until: "documentChange").isEmpty == false)
        await channel.close()
      }
    }
  }
}
