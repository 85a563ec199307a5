// Tests attacks of many kinds on a server with rules: no response shows a protected document, and no stored document changes.

import Access
import FirestoreModel
import FirestoreProtobuf
import Foundation
import JSON
import OrderedStore
import Ports
import SecurityRules
import SwiftProtobuf
import Testing

@testable import EndpointFixture

@Suite("Attacks on rules", .timeLimit(.minutes(5))) struct RuleAttackTests {
  /// The text in every protected document.
  private static let marker = "zebra17"
  private static let eveToken: String = {
    func part(_ json: String) -> String {
      Data(json.utf8).base64EncodedString().replacing("=", with: "").replacing("+", with: "-")
        .replacing("/", with: "_")
    }
    return part(#"{"alg":"none","typ":"JWT"}"#) + "." + part(#"{"sub":"eve","user_id":"eve"}"#) + "."
  }()

  private static let protected = [
    "users/alice", "posts/private", "posts/private/notes/n", "teams/t", "members/t_alice", "inbox/m",
    "locked/x",
    "locked/x/deep/y",
  ]

  /// Runs a test on a server with protected and permitted documents.
  /// - Parameter body: the test. Its second parameter is a time at which the private post was public.
  private func withServer(_ body: (FirestoreTestPort, _ time: String) async throws -> Void) async throws {
    let policy = FirestoreRulesPolicy(try FirestoreRuleset(compiling: RuleAttack.rules))
    try await FirestoreTestPort.with(store: try MemoryStore(), policy: policy) { port in
      var owner: [String: Proto.Value] = [
        "owner": .text("alice"), "to": .text("alice"), "uid": .text("alice"),
      ]
      owner["text"] = .text(Self.marker)
      owner["public"] = .with { $0.booleanValue = true }
      try await commit(port, [.set("posts/private", owner)])
      let time = Date.now.addingTimeInterval(-0.001).ISO8601Format(
        .iso8601(timeZone: .gmt, includingFractionalSeconds: true))
      owner["public"] = .with { $0.booleanValue = false }
      try await commit(
        port,
        Self.protected.map { .set($0, owner) } + [
          .set("users/eve", ["name": .text("e"), "role": .text("user")]),
          .set("posts/open", ["public": .with { $0.booleanValue = true }]),
          .set("posts/mine", ["owner": .text("eve"), "likes": .int(0)]), .set("counters/c", ["n": .int(1)]),
        ])
      try await body(port, time)
    }
  }

  private func commit(_ port: FirestoreTestPort, _ writes: [Proto.Write]) async throws {
    var request = Google_Firestore_V1_CommitRequest()
    request.database = FirestoreTestServer.database
    request.writes = writes
    let _: Google_Firestore_V1_CommitResponse = try await port.client.unary(
      "Commit", request, metadata: GRPCTestClient.administrator)
  }

  private func send(_ attack: RuleAttack, _ port: FirestoreTestPort) async throws -> RESTReply {
    try await RESTClient.request(
      port.port.port, attack.method, attack.target, body: attack.body,
      headers: attack.isSignedIn ? ["Authorization: Bearer \(Self.eveToken)"] : [])
  }

  /// The documents of the database as text, in order.
  private func state(_ port: FirestoreTestPort) async throws -> String {
    let reply = try await RESTClient.request(
      port.port.port, "POST", "\(RuleAttack.root):runQuery",
      body: #"{"structuredQuery":{"from":[{"allDescendants":true}]}}"#,
      headers: ["Authorization: Bearer owner"])
    #expect(reply.status == 200 && reply.body.contains(Self.marker))
    return (reply.json.array ?? []).map { "\($0["document"])" }.joined(separator: "\n")
  }

  @Test("over REST, no attack succeeds, and none shows or changes a protected document")
  func rest() async throws {
    try await withServer { port, time in
      let before = try await state(port)
      var statuses: [Int: Int] = [:]
      for var attack in RuleAttack.all {
        if "\(attack)".contains("TRANSACTION") {
          let beginReply = try await RESTClient.request(
            port.port.port, "POST", "\(RuleAttack.root):beginTransaction", body: "{}",
            headers: ["Authorization: Bearer \(Self.eveToken)"])
          let id = try #require(beginReply.json["transaction"].string)
          attack.body = attack.body?.replacing("TRANSACTION", with: id)
          attack.target = attack.target.replacing(
            "TRANSACTION",
            with: id.replacing("+", with: "%2B").replacing("/", with: "%2F").replacing("=", with: "%3D"))
        }
        attack.body = attack.body?.replacing("TIME", with: time)
        attack.target = attack.target.replacing("TIME", with: time)
        let reply = try await send(attack, port)
        #expect(
          [400, 403, 404].contains(reply.status), "\(attack): \(reply.status) \(reply.body.prefix(200))")
        // A path without a method gets 404. A 404 for a missing document would show whether the document exists.
        if reply.status == 404 {
          #expect(!reply.body.contains("documents/"), "\(attack): \(reply.body.prefix(200))")
        }
        #expect(!reply.body.contains(Self.marker), "\(attack)")
        statuses[reply.status, default: 0] += 1
      }
      #expect(try await state(port) == before)
      print("attacks over REST: \(RuleAttack.all.count), by status \(statuses.sorted { $0.key < $1.key })")
      #expect(RuleAttack.all.count >= 200 && (statuses[403] ?? 0) >= 200)
    }
  }

  @Test("the rules under attack allow the permitted requests")
  func permitted() async throws {
    try await withServer { port, _ in
      for request in RuleAttack.permitted {
        let reply = try await send(request, port)
        #expect(reply.status == 200, "\(request): \(reply.body.prefix(200))")
      }
    }
  }

  @Test(
    "over gRPC, targets of protected documents and of queries that the rules deny are removed, also with a forged token"
  )
  func listens() async throws {
    try await withServer { port, _ in
      // The resume tokens of the targets: none, and two forged tokens.
      let tokens: [Data?] = [nil, Data([1, 2, 3]), Data(repeating: 0, count: 16)]
      for token in tokens {
        let listen = try await ListenClient(port.client)
        var id: Int32 = 0
        for path in Self.protected + ["users/absent", "nowhere/x"] {
          id += 2
          try await listen.add(id, documents: [path], resuming: token)
        }
        for collection in ["users", "posts", "teams", "members", "inbox", "locked", "nowhere"] {
          id += 2
          try await listen.add(id, .collection(collection), resuming: token)
          id += 2
          var group = Google_Firestore_V1_StructuredQuery.collection(collection)
          group.from[0].allDescendants = true
          try await listen.add(id, group, resuming: token)
        }
        for target in stride(from: Int32(2), through: id, by: 2) {
          let cause = try await listen.removal(of: target)
          // A forged token is an invalid argument. A denied target is removed with the hosted product's error text.
          #expect([3, 7].contains(cause.code), "target \(target): \(cause.code) \(cause.message)")
          #expect(!cause.message.contains(Self.marker))
        }
        #expect(listen.receivedKinds.isEmpty && listen.filters.isEmpty)
        try await listen.call.reset()
      }
    }
  }

  @Test("over WebChannel, a listen to a protected document shows nothing")
  func webChannel() async throws {
    try await withServer { port, _ in
      for path in Self.protected {
        let (client, _) = try await WebChannelTestClient.handshake(
          port.port.port, "Listen", [WebChannelTestClient.listen(to: path, 2)],
          headers: "Authorization: Bearer \(Self.eveToken)\r\n")
        let back = try await client.open(after: 0)
        let arrays = try await back.arrays(until: "REMOVE")
        #expect(!arrays.contains { $0.text.contains(Self.marker) || $0.text.contains("documentDelete") })
        await back.close()
      }
    }
  }
}
