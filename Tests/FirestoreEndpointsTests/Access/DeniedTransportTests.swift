// Tests denied data over every transport: no byte of a response over REST, gRPC or WebChannel shows a denied document, and
// the responses for stored and missing documents are the same.

import Access
import FirestoreModel
import FirestoreProtobuf
import FirestoreWire
import GRPCFraming
import NIOCore
import OrderedStore
import Ports
import Testing

@testable import EndpointFixture

@Suite("Denied data over every transport", .timeLimit(.minutes(5)))
struct DeniedTransportTests {
  private static let marker = "zebra17"
  private static let documents = FirestoreTestServer.documents

  /// Runs a test on a server with a denied document, whose id is the marker.
  private func withServer(_ body: (FirestoreTestPort) async throws -> Void) async throws {
    try await FirestoreTestPort.with(store: try MemoryStore(), policy: SecretPolicy()) { port in
      var request = Google_Firestore_V1_CommitRequest()
      request.database = FirestoreTestServer.database
      request.writes = [
        .set("secret/\(Self.marker)", ["text": .text(Self.marker)]), .set("open/a", ["n": .int(1)]),
      ]
      let _: Google_Firestore_V1_CommitResponse = try await port.client.unary(
        "Commit", request, metadata: GRPCTestClient.administrator)
      try await body(port)
    }
  }

  /// Requests over REST for one document of the denied collection.
  private func requests(_ id: String) -> [(method: String, target: String, body: String?)] {
    let docs = "/v1/\(Self.documents)"
    let name = "\(Self.documents)/secret/\(id)"
    let query = #"{"structuredQuery":{"from":[{"collectionId":"secret"}]}}"#
    let group = #"{"structuredQuery":{"from":[{"collectionId":"secret","allDescendants":true}]}}"#
    let count =
      #"{"structuredAggregationQuery":{"structuredQuery":{"from":[{"collectionId":"secret"}]},"#
      + #""aggregations":[{"alias":"n","count":{}}]}}"#
    return [
      ("GET", "\(docs)/secret/\(id)", nil),
      ("GET", "\(docs)/secret?pageSize=1", nil),
      ("PATCH", "\(docs)/secret/\(id)", #"{"fields":{}}"#),
      ("PATCH", "\(docs)/secret/\(id)?currentDocument.exists=true", #"{"fields":{}}"#),
      ("PATCH", "\(docs)/secret/\(id)?updateMask.fieldPaths=a", #"{"fields":{}}"#),
      ("POST", "\(docs)/secret?documentId=\(id)", #"{"fields":{}}"#),
      ("DELETE", "\(docs)/secret/\(id)", nil),
      ("DELETE", "\(docs)/secret/\(id)?currentDocument.updateTime=2001-01-01T00:00:00Z", nil),
      ("POST", "\(docs):batchGet", "{\"documents\":[\"\(Self.documents)/open/a\",\"\(name)\"]}"),
      ("POST", "\(docs):runQuery", query),
      ("POST", "\(docs):runQuery", group),
      ("POST", "\(docs):runAggregationQuery", count),
      (
        "POST", "\(docs):commit",
        "{\"writes\":[{\"verify\":\"\(name)\",\"currentDocument\":{\"exists\":false}}]}"
      ),
    ]
  }

  @Test("over REST, responses for stored and missing documents are the same denial")
  func rest() async throws {
    try await withServer { port in
      for (stored, missing) in zip(requests(Self.marker), requests("missing")) {
        let replies = [
          try await RESTClient.request(port.port.port, stored.method, stored.target, body: stored.body),
          try await RESTClient.request(port.port.port, missing.method, missing.target, body: missing.body),
        ]
        #expect(replies.map(\.status) == [403, 403], "\(stored.method) \(stored.target)")
        #expect(replies[0].body == replies[1].body)
        for reply in replies {
          #expect(!reply.body.contains(Self.marker))
          #expect(reply.error["status"] == .string("PERMISSION_DENIED"))
          #expect(reply.error["message"] == .string("Missing or insufficient permissions."))
        }
      }
    }
  }

  @Test("over gRPC, neither a Listen stream nor a Write stream shows a denied document")
  func streams() async throws {
    try await withServer { port in
      let listen = try await ListenClient(port.client)
      try await listen.add(2, .collection("secret"))
      try await listen.add(4, documents: ["secret/\(Self.marker)"])
      try await listen.add(6, documents: ["secret/missing"])
      for id in [2, 4, 6] as [Int32] {
        let cause = try await listen.removal(of: id)
        #expect(cause.code == 7 && cause.message == "Missing or insufficient permissions.")
      }
      #expect(listen.receivedKinds.isEmpty && listen.filters.isEmpty)
      try await listen.call.reset()
      for id in [Self.marker, "missing"] {
        let write = try await port.client.open("Write")
        var request = Google_Firestore_V1_WriteRequest()
        request.database = FirestoreTestServer.database
        try await write.send(request)
        let handshake: Google_Firestore_V1_WriteResponse? = try await write.message()
        request.streamToken = try #require(handshake).streamToken
        var change = Proto.Write.set("secret/\(id)", [:])
        change.currentDocument.exists = true
        request.writes = [change]
        try await write.send(request)
        let status = try await write.status()
        #expect(status.code == .permissionDenied)
        #expect(status.message == "Missing or insufficient permissions.")
      }
    }
  }

  @Test("over WebChannel, a listen to a denied document is removed without showing it")
  func webChannel() async throws {
    try await withServer { port in
      for path in ["secret/\(Self.marker)", "secret/missing"] {
        let (client, _) = try await WebChannelTestClient.handshake(
          port.port.port, "Listen", [WebChannelTestClient.listen(to: path, 2)], headers: "")
        let back = try await client.open(after: 0)
        let arrays = try await back.arrays(until: "REMOVE")
        let removal = try #require(arrays.last)
        #expect(removal.text.contains("Missing or insufficient permissions."))
        #expect(!arrays.contains { $0.text.contains(Self.marker) || $0.text.contains("documentDelete") })
        await back.close()
      }
    }
  }
}

/// Denies every operation on the collection `secret`.
private struct SecretPolicy: AccessPolicy {
  func decide(
    _ principal: Principal, _ operation: FirestoreOperation, view: any DocumentView
  ) -> FirestoreDecision {
    let isDenied =
      switch operation {
      case .get(let names): names.contains { $0.path.segments.first == "secret" }
      case .commit(let writes): writes.contains { $0.name.path.segments.first == "secret" }
      case .list(let listed), .aggregate(let listed):
        listed.query.structured.from.contains { $0.collectionID != "open" }
      default: false
      }
    return isDenied ? .deny(reason: "secret") : .allowed
  }
}
