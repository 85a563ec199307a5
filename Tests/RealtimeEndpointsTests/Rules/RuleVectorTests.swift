// Plays the shared vectors of Realtime Database rules (JSON files with requests and expected results) against a server,
// over REST, event streams and WebSockets.

import JSON
import Testing

@testable import EndpointFixture

@Suite(
  "Shared vectors of Realtime Database rules over the network", .timeLimit(.minutes(3)), .serialized,
  .enabled(if: RuleCase.folder != nil, "HEARTH_CONFORMANCE is not set"))
struct RuleVectorTests {
  /// Disputed cases in which this server's response differs from the vectors, with the reason.
  private static let differences = [
    "tokens.token-no-sub": "the emulator takes an unsigned token without a subject as a user with an empty id"
  ]

  @Test(
    "Each request gets the expected response and leaves the expected tree",
    arguments: [
      "tokens", "wildcards", "cascades", "multipath", "priorities", "server-values", "query", "indexes",
      "conditional", "data-forms", "files", "defaults", "websocket",
    ])
  func requests(category: String) async throws {
    try await RealtimeTestServer.run { server in
      for (number, item) in try RuleCase.all(category).enumerated() where item.json["expression"] == nil {
        let player = RulePlayer(server: server, namespace: "\(category)-\(number)")
        let problem = try await player.play(item)
        if Self.differences[item.id] != nil {
          #expect(problem != nil, "\(item.id) is no longer a difference")
        } else {
          #expect(problem == nil, "\(item.id): \(problem ?? "")")
        }
      }
    }
  }

  @Test(
    "Each expression has the expected result, over REST and WebSockets",
    arguments: ["operators", "static", "strings", "regex", "snapshots", "auth", "query"])
  func expressions(category: String) async throws {
    try await RealtimeTestServer.run { server in
      let items = try RuleCase.all(category).filter { $0.json["expression"] != nil }
      for (number, item) in items.enumerated() {
        let player = RulePlayer(server: server, namespace: "\(category)-\(number)")
        let problem = try await player.playExpression(item)
        #expect(problem == nil, "\(item.id): \(problem ?? "")")
      }
    }
  }
}
