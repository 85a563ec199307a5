// Plays one case of the shared vectors: sends its requests to a namespace of a test server, and compares the answers with
// the expected answers.

import Foundation
import JSON
import Ports

@testable import EndpointFixture

/// Plays cases in one namespace.
struct RulePlayer {
  let server: RealtimeTestServer
  let namespace: String

  // MARK: Requests

  private static func encoded(_ text: String, _ allowed: CharacterSet = []) -> String {
    text.addingPercentEncoding(withAllowedCharacters: .alphanumerics.union(allowed)) ?? text
  }

  func target(_ path: String, _ parameters: [(String, String)] = []) -> String {
    let query = ([("ns", namespace)] + parameters).map { "\($0.0)=\(Self.encoded($0.1))" }
    return "/" + Self.encoded(path, CharacterSet(charactersIn: "/.")) + ".json?"
      + query.joined(separator: "&")
  }

  func owner(_ method: String, _ path: String, _ body: String? = nil, headers: [String] = []) async throws
    -> RESTAnswer
  {
    try await server.rest(
      method, target(path, method == "GET" ? [("format", "export")] : []), body: body,
      headers: headers + ["Authorization: Bearer owner"])
  }

  func setRules(_ rules: String) async throws -> Int {
    try await owner("PUT", ".settings/rules", rules).status
  }

  /// The complete tree as the owner reads it.
  func tree() async throws -> JSONValue { try JSONValue(json: try await owner("GET", "").body) }

  func set(_ data: JSONValue?) async throws {
    _ = try await owner("PUT", "", String(decoding: (data ?? .null).json(), as: UTF8.self))
  }

  // MARK: Cases

  /// Plays a case. Returns nil if it has the stated result, otherwise the difference.
  func play(_ item: RuleCase) async throws -> String? {
    if let rules = item.json["rules"]?.string {
      let status = try await setRules(rules)
      if item.json["verdict"]?.string == "invalid-rules", item.operation == nil {
        return status == 400 ? nil : "the rules were accepted"
      }
      guard status == 200 else { return "the rules were rejected" }
    }
    try await set(item.json["data"])
    guard let steps = item.json["steps"]?.array else { return try await playStep(item) }
    for step in steps.compactMap(\.object) {
      if let rules = step["set-rules"]?.string {
        let isValid = try await setRules(rules) == 200
        if isValid != (step["verdict"]?.string == "allow") {
          return "the rules were \(isValid ? "accepted" : "rejected")"
        }
      } else if let problem = try await playStep(RuleCase(json: step)) {
        return problem
      }
    }
    return nil
  }

  private func playStep(_ item: RuleCase) async throws -> String? {
    guard let operation = item.operation, let kind = operation["kind"]?.string else { return "no operation" }
    let before = try await tree()
    let token = RuleCase.token(item.json["caller"])
    let answer: Answer
    switch kind {
    case "stream": answer = try await stream(operation, token)
    case _ where kind.hasPrefix("ws-"): answer = try await socket(kind, operation, token)
    default: answer = try await rest(kind, operation, token)
    }
    guard item.statuses.contains(Int64(answer.status)) else {
      return "status \(answer.status): \(answer.text)"
    }
    for text in item.absent where answer.text.contains(text) { return "the answer contains '\(text)'" }
    if item.json["no_etag"] != nil, answer.etag != nil { return "the answer has an ETag" }
    if let expected = item.json["answer"], !RuleCase.matches(answer.json, expected) {
      return "answer \(answer.text)"
    }
    let isDenied = item.json["verdict"]?.string != "allow"
    if let expected = item.json["after"] ?? (isDenied && operation["then"] == nil ? before : nil) {
      var found = try await tree()
      // The writes of a closed connection follow in the background.
      for _ in 0..<(kind.hasPrefix("ws-disconnect") ? 100 : 0) where !RuleCase.matches(found, expected) {
        found = try await tree()
      }
      if !RuleCase.matches(found, expected) {
        return "afterwards \(String(decoding: found.json(), as: UTF8.self))"
      }
    }
    return nil
  }

  /// The transports over which an operation reaches the server.
  private enum Transport: CaseIterable {
    case rest, socket
  }

  /// Plays an expression and its negation, over REST and over a WebSocket.
  func playExpression(_ item: RuleCase) async throws -> String? {
    let ruleKind = item.json["in"]?.string ?? "read"
    let expression = item.json["expression"]?.string ?? ""
    let expected = [item.json["result"]?.string ?? ""] + (item.json["also"]?.array ?? []).compactMap(\.string)
    var locations = JSONObject()
    for (key, text) in [("t", expression), ("n", "!(\(expression))")] {
      var location: JSONObject = [".\(ruleKind)": .string(text)]
      if ruleKind == "validate" { location[".write"] = .bool(true) }
      locations[key] = .object(["$k": .object(location)])
    }
    let rules = JSONValue.object(["rules": .object(locations)]).json()
    guard try await setRules(String(decoding: rules, as: UTF8.self)) == 200 else {
      return expected.contains("invalid") ? nil : "the rules were rejected"
    }
    for transport in Transport.allCases {
      let found = try await result(item, writes: ruleKind != "read", over: transport)
      guard expected.contains(found) else { return "\(found) over \(transport)" }
    }
    return nil
  }

  private func setData(of item: RuleCase) async throws {
    try await set(item.json["data"])
    guard let value = item.json["here"] else { return }
    for location in ["t/x", "n/x"] {
      _ = try await owner("PUT", location, String(decoding: value.json(), as: UTF8.self))
    }
  }

  private func result(_ item: RuleCase, writes: Bool, over transport: Transport) async throws -> String {
    let token = RuleCase.token(item.json["caller"])
    var results: [Bool] = []
    for key in ["t", "n"] {
      // Restores the data of the case before each write, because the first write may have changed it.
      if writes || results.isEmpty { try await setData(of: item) }
      let operation: JSONObject = ["path": .string("\(key)/x"), "body": item.json["body"] ?? .int(1)]
      let answer =
        switch transport {
        case .rest: try await rest(writes ? "put" : "get", operation, token)
        case .socket: try await socket(writes ? "ws-put" : "ws-get", operation, token)
        }
      guard [200, 401].contains(answer.status) else { return "status \(answer.status)" }
      results.append(answer.status == 200)
    }
    switch results {
    case [true, false]: return "true"
    case [false, true]: return "false"
    case [true, true]: return "both"
    default: return "error"
    }
  }

  // MARK: REST

  /// An answer of any protocol.
  struct Answer {
    var status: Int
    var text = ""
    var json: JSONValue?
    var etag: String?
  }

  private func parameters(_ operation: JSONObject, _ token: String?) -> [(String, String)] {
    var parameters = (operation["params"]?.object?.members ?? []).map { ($0.key, $0.value.string ?? "") }
    if let token, token != "owner" { parameters.append(("auth", token)) }
    return parameters
  }

  private func headers(_ operation: JSONObject, _ token: String?) async throws -> [String] {
    var headers = token == "owner" ? ["Authorization: Bearer owner"] : []
    for member in operation["headers"]?.object?.members ?? [] {
      var value = member.value.string ?? ""
      if value == "$ETAG" {
        let answer = try await owner(
          "GET", operation["path"]?.string ?? "", headers: ["X-Firebase-ETag: true"])
        value = answer.headers["etag"] ?? ""
      }
      headers.append("\(member.key): \(value)")
    }
    return headers
  }

  private func rest(_ kind: String, _ operation: JSONObject, _ token: String?) async throws -> Answer {
    let body =
      operation["text"]?.string ?? operation["body"].map { String(decoding: $0.json(), as: UTF8.self) }
    let answer = try await server.rest(
      kind.uppercased(), target(operation["path"]?.string ?? "", parameters(operation, token)),
      body: kind == "get" || kind == "delete" ? nil : body, headers: try await headers(operation, token))
    return Answer(
      status: answer.status, text: answer.headers.map { "\($0): \($1)\n" }.joined() + answer.body,
      json: try? JSONValue(json: answer.body), etag: answer.headers["etag"])
  }

  private func stream(_ operation: JSONObject, _ token: String?) async throws -> Answer {
    let client = try await RawClient.connect(server.port.port)
    let answer = try await stream(operation, token, client)
    await client.close()
    return answer
  }

  private func stream(
    _ operation: JSONObject, _ token: String?, _ client: RawClient
  ) async throws -> Answer {
    let path = operation["path"]?.string ?? ""
    let headers = try await headers(operation, token).map { $0 + "\r\n" }.joined()
    try await client.send(
      "GET \(target(path, parameters(operation, token))) HTTP/1.1\r\nHost: \(server.host)\r\n"
        + "Accept: text/event-stream\r\n\(headers)\r\n")
    let head = try await client.read(through: "\r\n\r\n")
    let status = Int(head.split(separator: " ")[1]) ?? 0
    guard status == 200 else { return Answer(status: status, text: head) }
    let event = try await client.read(through: "\n\n")
    let data = event.split(separator: "\n").first { $0.hasPrefix("data: ") }?.dropFirst(6) ?? ""
    guard let then = operation["then"]?.array else {
      return Answer(status: status, text: head + event, json: try? JSONValue(json: String(data)))
    }
    try await perform(then)
    _ = try await owner("PUT", path, "\"marker\"")
    while true {
      let next = try await client.read(through: "\n\n")
      if next.contains("event: cancel") { return Answer(status: 401, text: next) }
      if next.contains("marker") { return Answer(status: 200, text: next) }
    }
  }

  /// Performs the steps of an administrator after a listen.
  func perform(_ steps: [JSONValue]) async throws {
    for step in steps {
      if let rules = step["rules"]?.string { _ = try await setRules(rules) }
      if let put = step["owner-put"]?.array, put.count == 2 {
        _ = try await owner("PUT", put[0].string ?? "", String(decoding: put[1].json(), as: UTF8.self))
      }
    }
  }
}
