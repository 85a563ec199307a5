// A client of the Realtime Database's protocol over a WebSocket or long polling, for tests of rules.

import Foundation
import JSON

@testable import EndpointFixture

/// A client that sends one request at a time.
struct RulesClient {
  enum Transport {
    case socket(RawSocket)
    case longPolling(LongPollClient)
  }

  private(set) var transport: Transport
  private var number: Int64 = 0

  /// The server's name of the session.
  var name: String {
    switch transport {
    case .socket(let socket): socket.session
    case .longPolling(let client): client.session
    }
  }

  /// Opens a session, and authenticates with a token. A long-polling session is in the database `demo`.
  init(
    _ server: RealtimeTestServer, token: String?, isSocket: Bool = true, namespace: String = "demo"
  ) async throws {
    transport =
      isSocket
      ? .socket(try await RawSocket.open(server, "v=5&ns=\(namespace)"))
      : .longPolling(try await LongPollClient(server))
    if let token { _ = try await exchange("auth", ["cred": .string(token)]) }
  }

  /// Sends a request. Returns all that the client receives up to its response, and the status of the response.
  mutating func exchange(
    _ action: String, _ body: JSONObject
  ) async throws -> (received: [String], status: String) {
    number += 1
    let message: JSONObject = ["r": .int(number), "a": .string(action), "b": .object(body)]
    let text = String(decoding: JSONValue.object(message).json(), as: UTF8.self)
    let start = #"{"r":\#(number),"#
    var received: [String] = []
    switch transport {
    case .socket(let socket):
      try await socket.send(text)
      repeat { received.append(try await socket.next()) } while received.last?.hasPrefix(start) == false
    case .longPolling(var client):
      var segments = client.segments(of: LongPollTests.data(text))[...]
      while !received.contains(where: { $0.contains(start) }) || !segments.isEmpty {
        for case .batch(_, let messages) in try await client.poll(segments.popFirst() ?? "") {
          // The messages of a session have an envelope.
          received += messages.map { String($0.dropFirst(#"{"t":"d","d":"#.utf8.count).dropLast()) }
        }
      }
      transport = .longPolling(client)
    }
    let response = received.first { $0.contains(start) } ?? ""
    let status = response.components(separatedBy: #""s":""#).dropFirst().first?.prefix { $0 != "\"" }
    return (received, String(status ?? ""))
  }

  func close() async { if case .socket(let socket) = transport { await socket.close() } }
}
