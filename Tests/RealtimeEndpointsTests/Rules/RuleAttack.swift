// An attack on the rules of a Realtime Database: steps of an attacker, sometimes between steps of the owner.
//
// An attack succeeds if the attacker receives a text that begins with `topsecret`, changes the tree, or learns from a
// status whether a tag or hash is right.

import Access
import Foundation
import JSON
import Ports
import Testing

@testable import EndpointFixture
@testable import RealtimeEngine

/// The steps of one attack.
struct RuleAttack: Sendable {
  enum Step: Sendable {
    /// A REST request of the attacker. `NS` in the target stands for the parameter of the namespace, `RIGHT` in a header
    /// for the tag that the stored value has.
    case rest(String, String, String? = nil, [String] = [])
    /// A request of the attacker over its WebSocket: its action and the JSON of its body.
    case send(String, String)
    /// A request for an event stream.
    case stream(String)
    /// The attacker closes its WebSocket.
    case close
    /// A write of the owner: a path, and the value as JSON.
    case owner(String, String)
    /// The owner replaces the rules.
    case rules(String)
  }

  let group: String
  let name: String
  /// The user of the attacker; empty for nobody.
  var user = "u1"
  /// Further texts that the attacker may not receive.
  var secrets: [String] = []
  let steps: [Step]

  init(_ group: String, _ name: String, user: String = "u1", secrets: [String] = [], _ steps: Step...) {
    self.group = group
    self.name = name
    self.user = user
    self.secrets = secrets
    self.steps = steps
  }
}

/// Plays attacks, each in its own namespace.
struct RuleAttackPlayer {
  let server: RealtimeTestServer
  let namespace: String
  let rules: String
  let data: String

  private static let owner = ["Authorization: Bearer owner"]

  private func token(_ user: String) -> String? {
    user.isEmpty ? nil : RuleCase.token(.object(["sub": .string(user)]))
  }

  private func owner(
    _ method: String, _ path: String, _ body: String? = nil, in namespace: String
  ) async throws -> String {
    let query = method == "GET" ? "&format=export" : ""
    let answer = try await server.rest(
      method, "/\(path).json?ns=\(namespace)\(query)", body: body, headers: Self.owner)
    #expect(answer.status == 200, "\(path): \(answer.body)")
    return answer.body
  }

  private func prepare(_ namespace: String) async throws {
    _ = try await owner("PUT", ".settings/rules", rules, in: namespace)
    _ = try await owner("PUT", "", data, in: namespace)
  }

  /// Plays an attack. Returns how it succeeded; nil if it failed.
  func play(_ attack: RuleAttack) async throws -> String? {
    // The owner's steps alone, without an attacker, give the tree that is expected at the end.
    let twin = namespace + "-twin"
    try await prepare(namespace)
    try await prepare(twin)
    for step in attack.steps {
      if case .owner(let path, let value) = step { _ = try await owner("PUT", path, value, in: twin) }
    }
    var received: [String] = []
    var oracle: String?
    var client: RulesClient?
    var streams: [RawClient] = []
    for step in attack.steps {
      switch step {
      case .rest(let method, let target, let body, let headers):
        let (text, status) = try await rest(attack, method, target, body, headers)
        received.append(text)
        if [304, 412].contains(status) { oracle = "the status \(status) shows whether the tag is right" }
      case .stream(let target): streams.append(try await stream(attack, target))
      case .send(let action, let body):
        var open = try await openClient(client, attack)
        let result = try await open.exchange(action, JSONValue(json: body).object ?? JSONObject())
        received += result.received
        if result.status == "datastale" { oracle = "the status shows that the hash is wrong" }
        client = open
      case .close:
        if let open = client { try await close(open) }
        client = nil
      case .owner(let path, let value): _ = try await owner("PUT", path, value, in: namespace)
      case .rules(let rules): _ = try await owner("PUT", ".settings/rules", rules, in: namespace)
      }
    }
    if var open = client {
      received += try await open.exchange("g", ["p": .string("/open"), "q": .object([:])]).received
      try await close(open)
    }
    let (tree, expected) = (
      try await owner("GET", "", in: namespace), try await owner("GET", "", in: twin)
    )
    _ = try await owner("PUT", ".settings/rules", #"{"rules":{}}"#, in: namespace)
    for stream in streams { received.append(String(decoding: await stream.readToEnd(), as: UTF8.self)) }
    if tree != expected { return "the tree is \(tree)" }
    for text in received {
      for secret in ["topsecret"] + attack.secrets where text.contains(secret) { return "received \(text)" }
    }
    return oracle
  }

  // MARK: Steps

  private func openClient(_ client: RulesClient?, _ attack: RuleAttack) async throws -> RulesClient {
    if let client { return client }
    return try await RulesClient(server, token: token(attack.user), namespace: namespace)
  }

  /// Closes a session and waits until its onDisconnect writes are performed.
  private func close(_ client: RulesClient) async throws {
    let database = try await server.engine.database(namespace)
    await client.close()
    database.takeOver(session: client.name)
    _ = try await database.call(.barrier, as: .administrator)
  }

  private func complete(_ target: String, _ attack: RuleAttack) -> String {
    let credential = target.contains("auth=") ? nil : token(attack.user)
    let parameters = "ns=\(namespace)" + (credential.map { "&auth=\($0)" } ?? "")
    return target.replacing("NS", with: parameters)
  }

  private func rest(
    _ attack: RuleAttack, _ method: String, _ target: String, _ body: String?, _ headers: [String]
  ) async throws -> (text: String, status: Int) {
    var complete: [String] = []
    for header in headers {
      guard header.contains("RIGHT") else {
        complete.append(header)
        continue
      }
      let path = String(target.prefix { $0 != "?" })
      let stored = try await server.rest(
        "GET", "\(path)?ns=\(namespace)", headers: Self.owner + ["X-Firebase-ETag: true"])
      complete.append(header.replacing("RIGHT", with: stored.headers["etag"] ?? ""))
    }
    let answer = try await server.rest(
      method, self.complete(target, attack), body: body, headers: complete)
    let heads = answer.headers.map { "\($0): \($1)\n" }.joined()
    if answer.status == 401, answer.headers["etag"] != nil { return (heads + "topsecret tag", 401) }
    return (heads + answer.body, answer.status)
  }

  private func stream(_ attack: RuleAttack, _ target: String) async throws -> RawClient {
    let client = try await RawClient.connect(server.port.port)
    try await client.send(
      "GET \(complete(target, attack)) HTTP/1.1\r\nHost: \(server.host)\r\nAccept: text/event-stream\r\n"
        + "Connection: close\r\n\r\n")
    _ = try await client.read(through: "\r\n\r\n")
    return client
  }
}
