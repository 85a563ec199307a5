// Plays one conformance case against a server. A case is a list of requests with patterns of their responses.

import Foundation
import JSON
import NIOHTTP1

struct CasePlayer {
  private let server: AuthTestServer
  private let receiver: HTTPReceiver?
  private var values = CaseValues()

  init(_ server: AuthTestServer, _ receiver: HTTPReceiver?) {
    self.server = server
    self.receiver = receiver
    let run = "r" + UUID().uuidString.lowercased().filter(\.isHexDigit).prefix(10)
    values["run"] = .string(run)
    values["project"] = .string(AuthTestServer.project)
    values["own"] = .string("demo-" + run)
    let host = "127.0.0.1:\(server.client.port)"
    values["host"] = .string(host)
    values["base"] = .string("http://" + host)
    values["phone"] = .string("+1555\(Int.random(in: 1_000_000...4_999_999))")
    values["phone2"] = .string("+1555\(Int.random(in: 5_000_000...9_999_999))")
    if let receiver { values["receiver"] = .string(receiver.baseURL) }
  }

  /// Plays the steps of a case.
  mutating func play(_ steps: [JSONValue]) async throws {
    for (index, step) in steps.enumerated() {
      do { try await play(step) } catch {
        throw CaseMismatch(description: "step \(index) \(step["path"]?.string ?? "") \(error)")
      }
    }
  }

  private mutating func play(_ step: JSONValue) async throws {
    for member in step["receiver"]?.object?.members ?? [] {
      let response = member.value
      let body = response["json"].map { $0.json() } ?? Array((response["text"]?.string ?? "").utf8)
      receiver?.respond(to: member.key, with: .init(status: Int(response["status"]?.int ?? 200), body: body))
    }
    if step["path"] != nil { try await request(step) }
    for member in step["saw"]?.object?.members ?? [] {
      let seen = receiver?.lastRequest(member.key)
      if member.value == .string("$never") {
        if seen != nil { throw CaseMismatch(description: "\(member.key) was called") }
      } else {
        let value = try seen.map { try JSONValue(json: $0) }
        try values.match(member.value, value, at: "saw/" + member.key)
      }
    }
  }

  private mutating func request(_ step: JSONValue) async throws {
    var query: [(String, String)] = []
    var headers: [(String, String)] = []
    switch step["headers"] {
    case nil, .string("key"):
      if step["query"]?["key"] == nil { query.append(("key", "fake-api-key")) }
    case .string("owner"): headers.append(("Authorization", "Bearer owner"))
    case .object(let object):
      for member in object.members {
        headers.append((member.key, try values.expand(member.value.string ?? "")))
      }
    default: break
    }
    for member in step["query"]?.object?.members ?? [] {
      query.append((member.key, try values.expand(member.value).string ?? ""))
    }
    var target = try values.expand(step["path"]?.string ?? "")
    if !query.isEmpty {
      target +=
        "?"
        + query.map { CaseValues.escape($0.0) + "=" + CaseValues.escape($0.1) }.joined(separator: "&")
    }
    var body: [UInt8]?
    if let json = step["body"] {
      body = try values.expand(json).json()
      headers.append(("content-type", "application/json"))
    } else if let form = step["form"] {
      body = Array(CaseValues.form(try values.expand(form).object ?? [:]).utf8)
      headers.append(("content-type", "application/x-www-form-urlencoded"))
    } else if let raw = step["raw"]?.string {
      body = Array(raw.utf8)
      headers.append(("content-type", "application/json"))
    }
    let start = ContinuousClock.now
    let reply = try await server.client.send(
      step["method"]?.string ?? "GET", target, headers: headers, body: body)
    if let seconds = step["within"]?.int, ContinuousClock.now - start > .seconds(seconds) {
      throw CaseMismatch(description: "the response took more than \(seconds) s")
    }
    try check(reply, step["expect"] ?? .null)
  }

  private mutating func check(_ reply: AuthReply, _ expect: JSONValue) throws {
    let statuses = expect["status"]?.array ?? [expect["status"] ?? .null]
    guard statuses.contains(.int(Int64(reply.status))) else {
      let text = String(decoding: reply.body.prefix(600), as: UTF8.self)
      throw CaseMismatch(description: "status \(reply.status): \(text)")
    }
    if let pattern = expect["json"] { try values.match(pattern, reply.json, at: "") }
    for member in expect["headers"]?.object?.members ?? [] {
      let value = reply.headers.first(name: member.key).map { JSONValue.string($0) }
      try values.match(member.value, value, at: "headers/" + member.key)
    }
  }
}
