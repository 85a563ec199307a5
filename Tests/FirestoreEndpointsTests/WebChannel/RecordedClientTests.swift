// Replays recorded requests of the official client, and checks the responses.
//
// The server sends its messages as numbered arrays on a long response, the back channel. The client acknowledges
// the last array that it received in the query parameter `AID`.

import FirestoreProtobuf
import Foundation
import JSON
import NIOCore
import OrderedStore
import RealtimeModel
import Testing

@testable import EndpointFixture
@testable import Ports

@Suite("Recorded client", .timeLimit(.minutes(10)))
struct RecordedClientTests {
  /// The state of one stream's session.
  private struct Session {
    var client: WebChannelTestClient
    var id = ""
    var header = ""
    /// The open back channel.
    var back: BackChannel?
    var received: [ReceivedArray] = []

    /// Returns the query with `AID` limited to the arrays that have arrived in this run.
    ///
    /// A Listen stream may send fewer arrays than in the recording, since the server merges changes in quick
    /// succession.
    mutating func acknowledging(_ query: String, _ stream: String) async throws -> String {
      guard let acknowledgement = query.firstMatch(of: /&AID=(\d+)/), let id = Int(acknowledgement.1) else {
        return query
      }
      while stream == "Write", (received.last?.id ?? 0) < id, let array = try await back?.next() {
        received.append(array)
      }
      let acknowledged = min(id, received.last?.id ?? 0)
      return query.replacingCharacters(in: acknowledgement.range, with: "&AID=\(acknowledged)")
    }

    mutating func read(until text: String) async throws {
      while !received.contains(where: { $0.text.contains(text) }), let array = try await back?.next() {
        received.append(array)
      }
    }
  }

  @Test("The recorded requests of the official client get the responses that it expects")
  func streaming() async throws {
    try await FirestoreTestPort.with(store: try MemoryStore()) { server in
      var sessions: [String: Session] = [:]
      for request in RecordedRequest.streaming {
        let stream = request.stream
        var session =
          sessions[stream]
          ?? Session(client: WebChannelTestClient(port: server.port.port, stream: stream))
        if request.query.contains("TYPE=terminate") {
          try await session.read(until: stream == "Listen" ? "REMOVE" : "Ng==")
        }
        let query = try await session.acknowledging(request.query, stream).replacingOccurrences(
          of: "{SID}", with: session.id
        )
        .replacingOccurrences(of: "{SESSION}", with: session.header)
        let response = BackChannel(try await session.client.request(request.method, query, request.body))
        if request.query.contains("RID=rpc") {
          session.back = response
        } else {
          let reply = try await response.complete()
          #expect(reply.status == 200)
          if session.id.isEmpty {
            session.id = reply.arrays.first?.payload.array?[1].string ?? ""
            session.header = reply.headers["x-http-session-id"] ?? ""
          }
        }
        sessions[stream] = session
        if request.query.contains("RID=rpc"), stream == "Listen" {
          try await sessions[stream]?.read(until: "CURRENT")
        }
      }
      // The back channels of both sessions end, and each delivered arrays with consecutive numbers.
      for stream in ["Listen", "Write"] {
        try await sessions[stream]?.read(until: "a text that no array contains")
        let ids = sessions[stream]?.received.map(\.id) ?? []
        #expect(ids == Array(1..<(1 + ids.count)), "\(stream)")
        await sessions[stream]?.back?.close()
      }
      var request = Google_Firestore_V1_GetDocumentRequest()
      request.name = "projects/demo-books/databases/(default)/documents/books/b1"
      let document: Proto.Document = try await server.client.unary("GetDocument", request)
      #expect(document.fields == ["n": .int(4)])
    }
  }
}
