// Implements a long-polling client like a web page: it loads scripts by GET, at most two at a time. Each
// script carries a numbered batch of messages, which the client puts in order.

import JSON
import RealtimeModel
import RealtimeWire
import Testing

@testable import EndpointFixture

/// A function call in a script from the server.
enum ScriptCall: Equatable {
  case start(id: String, password: String)
  case close(after: Int?)
  case batch(Int, [String])

  /// Parses the calls of a script, without the functions that it defines.
  static func calls(of script: String) throws -> [ScriptCall] {
    try script.split(separator: "\n").compactMap { line in
      if line.hasPrefix("pLPCommand('start','") {
        let parts = line.split(separator: "'")
        return .start(id: String(parts[3]), password: String(parts[5]))
      }
      if line == "pLPCommand('close');" { return .close(after: nil) }
      if line.hasPrefix("pLPCommand('close',") {
        return .close(after: Int(line.dropFirst("pLPCommand('close',".count).dropLast(2)))
      }
      guard line.hasPrefix("pRTLPCB(") else { return nil }
      let body = line.dropFirst("pRTLPCB(".count).dropLast(2)
      let comma = try #require(body.firstIndex(of: ","))
      let list = try JSONValue(json: Array(body[body.index(after: comma)...].utf8))
      guard case .array(let messages) = list else { throw RawClient.Failure.closed }
      return .batch(
        try #require(Int(body[..<comma])), messages.map { String(decoding: $0.json(), as: UTF8.self) })
    }
  }
}

/// One session.
struct LongPollClient {
  let server: RealtimeTestServer
  let id: String
  let password: String
  let hello: String
  private var serial = 100
  private var segment = 0

  /// The session's name, which the server's first message (the hello) contains.
  var session: String {
    let parts = hello.split(separator: "\"")
    return parts.firstIndex(of: "s").map { String(parts[$0 + 2]) } ?? ""
  }

  init(_ server: RealtimeTestServer, _ parameters: String = "v=5&ns=demo") async throws {
    self.server = server
    let answer = try await server.rest("GET", "/.lp?start=t&ser=1&cb=7&\(parameters)")
    #expect(
      answer.status == 200 && answer.headers["content-type"]?.hasPrefix("application/javascript") == true)
    #expect(answer.body.contains("parent.window[\"pLPCommand7\"]"))
    #expect(answer.body.contains("parent.window[\"pRTLPCB7\"]"))
    let calls = try ScriptCall.calls(of: answer.body)
    guard calls.count == 2, case .start(let id, let password) = calls[0],
      case .batch(0, let messages) = calls[1]
    else { throw RawClient.Failure.closed }
    (self.id, self.password) = (id, password)
    hello = try #require(messages.first)
  }

  /// The parameters of a message's segments, each of at most `size` characters.
  mutating func segments(of message: String, size: Int = 1840) -> [String] {
    let text = Array(Self.base64(Array(message.utf8)))
    let starts = Array(stride(from: 0, to: text.count, by: size))
    return starts.map { start in
      defer { segment += 1 }
      return "&seg0=\(segment)&ts0=\(starts.count)&d0=" + String(text[start..<min(start + size, text.count)])
    }
  }

  /// Sends one poll, optionally with segments of messages.
  mutating func poll(_ segment: String = "") async throws -> [ScriptCall] {
    serial += 1
    return try await Self.get(server, "/.lp?id=\(id)&pw=\(password)&ser=\(serial)&ns=demo\(segment)")
  }

  static func get(_ server: RealtimeTestServer, _ target: String) async throws -> [ScriptCall] {
    let answer = try await server.rest("GET", target)
    #expect(answer.status == 200, "\(answer)")
    return try ScriptCall.calls(of: answer.body)
  }

  /// Sends the segments of messages and polls, two at a time, until `count` messages have arrived. Returns
  /// them in order.
  mutating func send(_ messages: [String], awaiting count: Int) async throws -> [String] {
    var segments = messages.flatMap { self.segments(of: $0) }[...]
    let server = server
    let target = "/.lp?id=\(id)&pw=\(password)&ns=demo&ser="
    var batches: [Int: [String]] = [:]
    var serial = serial
    try await withThrowingTaskGroup(of: [ScriptCall].self) { group in
      var inFlight = 0
      while batches.values.reduce(0, { $0 + $1.count }) < count || !segments.isEmpty {
        while inFlight < (segments.isEmpty ? 1 : 2) {
          serial += 1
          inFlight += 1
          let segment = segments.popFirst() ?? ""
          group.addTask { [serial] in try await Self.get(server, target + String(serial) + segment) }
        }
        for case .batch(let number, let messages) in try await group.next() ?? [] {
          #expect(batches[number] == nil, "batch \(number) came twice")
          batches[number] = messages
        }
        inFlight -= 1
      }
      group.cancelAll()
    }
    self.serial = serial
    return batches.sorted { $0.key < $1.key }.flatMap(\.value)
  }

  static func base64(_ bytes: [UInt8]) -> String {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    var text = ""
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let group = bytes[start..<min(start + 3, bytes.count)]
      let bits = group.enumerated().reduce(UInt32(0)) {
        $0 | UInt32($1.element) << UInt32(16 - 8 * $1.offset)
      }
      for index in 0..<4 {
        text.append(index <= group.count ? alphabet[Int(bits >> UInt32(18 - 6 * index) & 63)] : ".")
      }
    }
    return text
  }
}
