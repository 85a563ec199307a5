// Plays operations of the shared vectors (recorded requests with expected results) over a WebSocket.

import JSON

@testable import EndpointFixture

extension RulePlayer {
  /// Performs an operation over a WebSocket. Converts the protocol's statuses to those of HTTP.
  func socket(_ kind: String, _ operation: JSONObject, _ token: String?) async throws -> Answer {
    let socket = try await RawSocket.open(server, "v=5&ns=\(namespace)")
    var request = 1
    var texts: [String] = []

    func send(_ action: String, _ body: JSONObject) async throws {
      request += 1
      let message: JSONObject = ["r": .int(Int64(request)), "a": .string(action), "b": .object(body)]
      try await socket.send(String(decoding: JSONValue.object(message).json(), as: UTF8.self))
    }
    /// The status of the response to the last request. Pushes before it are collected.
    func status() async throws -> String {
      while true {
        let text = try await socket.next()
        texts.append(text)
        let message = try JSONValue(json: text)
        if message["r"]?.int == Int64(request) { return message["b"]?["s"]?.string ?? "" }
      }
    }

    if let token {
      try await send("auth", ["cred": .string(token)])
      let status = try await status()
      guard status == "ok" else { return Answer(status: 401, text: texts.joined()) }
    }
    let path = operation["path"]?.string ?? ""
    var body: JSONObject = ["p": .string("/" + path)]
    if let query = operation["query"] {
      body["q"] = query
      body["t"] = .int(1)
    }
    if kind == "ws-listen" || operation["hash"] != nil { body["h"] = operation["hash"] ?? .string("") }
    if kind != "ws-listen", kind != "ws-get" { body["d"] = operation["body"] ?? .null }
    let actions = [
      "ws-listen": "q", "ws-get": "g", "ws-put": "p", "ws-merge": "m", "ws-disconnect-put": "o",
      "ws-disconnect-merge": "om",
    ]
    try await send(actions[kind] ?? "", body)
    let result = try await status()
    var answer = Answer(status: Self.httpStatus(result), text: texts.joined(separator: "\n"))
    if kind == "ws-listen", result == "ok", let then = operation["then"]?.array {
      try await perform(then)
      for step in then {
        if step["unauth"] != nil { try await send("unauth", JSONObject()) }
        if let caller = step["auth"], let token = RuleCase.token(caller) {
          try await send("auth", ["cred": .string(token)])
        }
        if step["unauth"] != nil || step["auth"] != nil { _ = try await status() }
      }
      let location = operation["query"] == nil ? path : path + "/a"
      _ = try await owner("PUT", location, "\"marker\"")
      while !texts.contains(where: { $0.contains(#""a":"c""#) || $0.contains("marker") }) {
        texts.append(try await socket.next())
      }
      let isRevoked = texts.contains { $0.contains(#""a":"c""#) }
      answer = Answer(status: isRevoked ? 401 : 200, text: texts.joined(separator: "\n"))
    }
    if let rules = operation["rules_then"]?.string { _ = try await setRules(rules) }
    if kind.hasPrefix("ws-disconnect") { try await socket.sendFrame(8, []) }
    await socket.close()
    return answer
  }

  private static func httpStatus(_ status: String) -> Int {
    switch status {
    case "ok": 200
    case "permission_denied": 401
    case "datastale": 412
    default: 400
    }
  }
}
