// A genuine client's requests, sent again byte for byte, bring the answers that it had.

import FirestoreProtobuf
import Foundation
import JSON
import NIOCore
import OrderedStore
import RealtimeModel
import Testing

@testable import Endpoints

@Suite(.timeLimit(.minutes(10))) struct GenuineTranscriptTests {
  /// What is known of a stream's session on the way.
  private struct Session {
    var client: WebChannelTestClient
    var id = ""
    var header = ""
    var back: BackChannel?
    var received: [ReceivedArray] = []

    /// What a request may acknowledge: nothing that has not come yet. Listen's arrays may be fewer than they were, since
    /// changes that come close together are told as one.
    mutating func acknowledging(_ query: String, _ stream: String) async throws -> String {
      guard let asked = query.firstMatch(of: /&AID=(\d+)/), let id = Int(asked.1) else { return query }
      while stream == "Write", (received.last?.id ?? 0) < id, let array = try await back?.next() {
        received.append(array)
      }
      let known = min(id, received.last?.id ?? 0)
      return query.replacingCharacters(in: asked.range, with: "&AID=\(known)")
    }

    mutating func read(until text: String) async throws {
      while !received.contains(where: { $0.text.contains(text) }), let array = try await back?.next() {
        received.append(array)
      }
    }
  }

  @Test func streaming() async throws {
    try await FirestoreTestPort.with(store: try MemoryStore()) { running in
      var sessions: [String: Session] = [:]
      for request in GenuineRequest.streaming {
        let stream = request.stream
        var session =
          sessions[stream]
          ?? Session(client: WebChannelTestClient(port: running.port.port, stream: stream))
        if request.query.contains("TYPE=terminate") {
          try await session.read(until: stream == "Listen" ? "REMOVE" : "Ng==")
        }
        let query = try await session.acknowledging(request.query, stream).replacingOccurrences(
          of: "{SID}", with: session.id
        )
        .replacingOccurrences(of: "{SESSION}", with: session.header)
        let answer = BackChannel(try await session.client.request(request.method, query, request.body))
        if request.query.contains("RID=rpc") {
          session.back = answer
        } else {
          let reply = try await answer.whole()
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
      // Both back channels end with their sessions; what they brought is whole.
      for stream in ["Listen", "Write"] {
        try await sessions[stream]?.read(until: "nothing says this")
        let ids = sessions[stream]?.received.map(\.id) ?? []
        #expect(ids == Array(1..<(1 + ids.count)), "\(stream)")
        await sessions[stream]?.back?.close()
      }
      var request = Google_Firestore_V1_GetDocumentRequest()
      request.name = "projects/demo-books/databases/(default)/documents/books/b1"
      let document: Proto.Document = try await running.client.unary("GetDocument", request)
      #expect(document.fields == ["n": .int(4)])
    }
  }
}
