// Tests the Realtime Database's limits at their maxima, over sockets and on disk. Values at the maximum are
// written, read, queried, listened to, exported and imported. A value above the maximum is rejected with the raised
// limit in the message.

import Foundation
import HearthServer
import RealtimeModel
import Testing

@testable import EndpointFixture

@Suite("Raised limits of the Realtime Database", .timeLimit(.minutes(20)))
struct RaisedRealtimeLimitTests {
  /// Runs a server on a new directory, or on an existing directory.
  private func run(
    _ directory: String, _ change: (inout RealtimeLimits) -> Void,
    _ body: (Int) async throws -> Void
  ) async throws {
    var configuration = HearthConfiguration.forTesting(storage: .directory(directory))
    change(&configuration.limits.realtime)
    let server = HearthServer(configuration)
    try await server.start()
    let result: Result<Void, any Error>
    do { result = .success(try await body(server.databasePort ?? 0)) } catch { result = .failure(error) }
    await server.stop()
    try result.get()
  }

  private func directory() -> String { FirestoreTestServer.temporaryDirectory() }

  private func open(_ port: Int) async throws -> RawSocket {
    try await RawSocket.open(port: port, host: "127.0.0.1:\(port)", "v=5&ns=demo")
  }

  private func rest(
    _ port: Int, _ method: String, _ path: String, _ body: String? = nil
  ) async throws -> RESTAnswer {
    let client = try await RawClient.connect(port)
    var head =
      "\(method) \(path)\(path.contains("?") ? "&" : "?")ns=demo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    if let body { head += "Content-Length: \(body.utf8.count)\r\n" }
    try await client.send(head + "\r\n" + (body ?? ""))
    return try RESTAnswer(String(decoding: await client.readToEnd(), as: UTF8.self))
  }

  private static func nested(_ depth: Int, _ key: String = "k", _ leaf: String = "1") -> String {
    String(repeating: "{\"\(key)\":", count: depth) + leaf + String(repeating: "}", count: depth)
  }

  private static func text(_ count: Int) -> String { String(repeating: "x", count: count) }

  @Test("every kind of request accepts a value of maximum depth, and none accepts a deeper value")
  func depth() async throws {
    let directory = directory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let deep = Self.nested(99)
    let change: (inout RealtimeLimits) -> Void = { $0.depth = 100 }
    let tooDeep = "Invalid data; data lies more than 100 levels deep"
    var exported = ""
    try await run(directory, change) { port in
      let socket = try await open(port)
      try await socket.play(
        [
          #"{"r":1,"a":"q","b":{"p":"/d","h":""}}"#, #"{"r":2,"a":"p","b":{"p":"/d","d":\#(deep)}}"#,
          #"{"r":3,"a":"p","b":{"p":"/d","d":\#(Self.nested(100))}}"#,
          #"{"r":4,"a":"g","b":{"p":"/d"}}"#,
          #"{"r":5,"a":"m","b":{"p":"/","d":{"e/\#(Array(repeating: "k", count: 98).joined(separator: "/"))":{"k":1}}}}"#,
        ],
        expect: [
          #"{"r":1,"b":{"s":"ok","d":{}}}"#, #"{"a":"d","b":{"p":"d","d":\#(deep)}}"#,
          #"{"r":2,"b":{"s":"ok","d":""}}"#, #"{"r":3,"b":{"s":"failure","d":"\#(tooDeep)"}}"#,
          #"{"r":4,"b":{"s":"ok","d":\#(deep)}}"#, #"{"r":5,"b":{"s":"ok","d":""}}"#,
        ])
      // Over REST the value is read completely and at a path, and written by a streamed PUT and by PATCH.
      #expect(try await rest(port, "GET", "/d.json").body == deep)
      #expect(try await rest(port, "GET", "/e.json").body == deep)
      let path = Array(repeating: "k", count: 99).joined(separator: "/")
      #expect(try await rest(port, "GET", "/d/\(path).json").body == "1")
      #expect(try await rest(port, "GET", "/d/\(path)/k.json").status == 400)
      let long = "{\"a\":\(deep.dropFirst(5).dropLast()),\"b\":\"\(Self.text(1_100_000))\"}"
      #expect(try await rest(port, "PUT", "/f.json?print=silent", long).status == 204)
      #expect(try await rest(port, "GET", "/f/a.json").body == String(deep.dropFirst(5).dropLast()))
      #expect(
        try await rest(port, "PUT", "/f.json", "{\"a\":\(deep),\"b\":\"\(Self.text(1_100_000))\"}").body
          .contains(tooDeep))
      #expect(try await rest(port, "PATCH", "/.json", "{\"g\":\(deep)}").status == 200)
      #expect(try await rest(port, "PATCH", "/.json", "{\"g\":\(Self.nested(100))}").status == 400)
      #expect(try await rest(port, "DELETE", "/f.json").status == 200)
      // A filtered listen covers the value, and its window changes.
      let query = #""q":{"i":".key","l":1,"vf":"l"}"#
      try await socket.send(#"{"r":6,"a":"q","b":{"p":"/",\#(query),"t":1,"h":""}}"#)
      #expect(try await socket.next().hasPrefix(#"{"a":"d","b":{"p":"","d":{"d":\#(deep)}"#))
      #expect(try await socket.next() == #"{"r":6,"b":{"s":"ok","d":{}}}"#)
      exported = try await rest(port, "GET", "/.json?format=export").body
      await socket.close()
    }
    #expect(exported == "{\"d\":\(deep),\"e\":\(deep),\"g\":\(deep)}")
    // Another server imports the export. After a restart with the standard limits everything is readable, and
    // new values are rejected.
    let other = self.directory()
    defer { try? FileManager.default.removeItem(atPath: other) }
    try await run(other, change) { port in
      let put = try await rest(port, "PUT", "/.json?writeSizeLimit=unlimited&print=silent", exported)
      #expect(put.status == 204)
      #expect(try await rest(port, "GET", "/.json").body == exported)
    }
    try await run(directory, { _ in }) { port in
      let socket = try await open(port)
      try await socket.play(
        [
          #"{"r":1,"a":"g","b":{"p":"/d"}}"#, #"{"r":2,"a":"p","b":{"p":"/d","d":\#(deep)}}"#,
        ],
        expect: [
          #"{"r":1,"b":{"s":"ok","d":\#(deep)}}"#,
          #"{"r":2,"b":{"s":"failure","d":"Invalid data; data lies more than 32 levels deep"}}"#,
        ])
      #expect(try await rest(port, "GET", "/.json?format=export").body == exported)
      #expect(try await rest(port, "DELETE", "/.json").status == 200)
      await socket.close()
    }
  }

  @Test("keys of maximum size are accepted everywhere, and the bytes of all keys along a path are limited")
  func keys() async throws {
    let directory = directory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    try await run(directory) {
      $0.keyBytes = 4_096
      $0.depth = 100
    } _: { port in
      let key = Self.text(4_096)
      let socket = try await open(port)
      try await socket.play(
        [
          #"{"r":1,"a":"p","b":{"p":"/\#(key)","d":{"\#(key)":1}}}"#,
          #"{"r":2,"a":"p","b":{"p":"/x","d":{"\#(key)x":1}}}"#,
          #"{"r":3,"a":"p","b":{"p":"/\#(key)x","d":1}}"#,
          #"{"r":4,"a":"m","b":{"p":"/","d":{"y/\#(key)":2}}}"#,
          #"{"r":5,"a":"g","b":{"p":"/\#(key)/\#(key)"}}"#,
        ],
        expect: [
          #"{"r":1,"b":{"s":"ok","d":""}}"#,
          #"{"r":2,"b":{"s":"failure","d":"Invalid data; couldn't parse key beginning at 1:48. A key may have at most 4096 bytes, and this has 4097."}}"#,
          #"{"r":3,"b":{"s":"failure","d":"Invalid path: key longer than 4096 bytes"}}"#,
          #"{"r":4,"b":{"s":"ok","d":""}}"#, #"{"r":5,"b":{"s":"ok","d":1}}"#,
        ])
      // The path has six such keys and one that fills the 24,608 bytes. Each key counts with one additional
      // byte.
      let path = Array(repeating: key, count: 6).joined(separator: "/")
      let rest = RealtimeLimits.pathBytes - 6 * 4_097 - 1
      let longest = #"{"\#(Self.text(rest))":1}"#
      let tooLong = #"{"\#(Self.text(rest + 1))":1}"#
      let refusal = "Invalid data; the path to a value is longer than 24608 bytes"
      try await socket.play(
        [
          #"{"r":6,"a":"p","b":{"p":"/\#(path)","d":\#(longest)}}"#,
          #"{"r":7,"a":"p","b":{"p":"/\#(path)","d":\#(tooLong)}}"#,
          #"{"r":8,"a":"p","b":{"p":"/\#(path)/\#(Self.text(rest + 1))","d":1}}"#,
          #"{"r":9,"a":"o","b":{"p":"/\#(path)/\#(Self.text(rest))","d":2}}"#,
        ],
        expect: [
          #"{"r":6,"b":{"s":"ok","d":""}}"#, #"{"r":7,"b":{"s":"failure","d":"\#(refusal)"}}"#,
          #"{"r":8,"b":{"s":"failure","d":"Invalid path: longer than 24608 bytes"}}"#,
          #"{"r":9,"b":{"s":"ok","d":""}}"#,
        ])
      // The limit also applies to a large body, which is validated while it arrives.
      let filler = "\"f\":\"\(Self.text(1_100_000))\""
      func document(_ last: String) -> String {
        "{\(filler),\"w\":" + String(repeating: "{\"\(key)\":", count: 5) + last
          + String(repeating: "}", count: 6)
      }
      let remainingBytes = RealtimeLimits.pathBytes - 2 - 2 - 5 * 4_097
      #expect(remainingBytes > 4_096)
      let nestedKeys = { (count: Int) in "{\"\(Self.text(4_000))\":{\"\(Self.text(count - 4_001 - 1))\":1}}" }
      #expect(
        try await self.rest(port, "PUT", "/w.json?print=silent", document(nestedKeys(remainingBytes))).status
          == 204)
      let refused = try await self.rest(port, "PUT", "/w.json", document(nestedKeys(remainingBytes + 1)))
      #expect(refused.status == 400 && refused.body.contains(refusal), "\(refused.body)")
      // Indexes children by value, with the longest possible sort key.
      let rules = try await self.rest(
        port, "PUT", "/.settings/rules.json?auth=owner",
        #"{"rules":{".read":true,".write":true,"i":{".indexOn":".value"}}}"#)
      #expect(rules.status == 200, "\(rules.body)")
      try await socket.play(
        [
          #"{"r":10,"a":"p","b":{"p":"/i","d":{"\#(key)":3}}}"#,
          #"{"r":11,"a":"g","b":{"p":"/i","q":{"i":".value","sp":3,"ep":3}}}"#,
        ],
        expect: [
          #"{"r":10,"b":{"s":"ok","d":""}}"#, #"{"r":11,"b":{"s":"ok","d":{"\#(key)":3}}}"#,
        ])
      await socket.close()
    }
  }

  @Test("strings and writes of maximum size are stored and read, by socket and by REST")
  func sizes() async throws {
    let directory = directory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let maximumBytes = (16 << 20) - 1_024
    try await run(directory) {
      $0.stringBytes = (16 << 20) - 1_024
      $0.socketWriteBytes = 128 << 20
    } _: { port in
      let socket = try await open(port)
      let text = Self.text(maximumBytes)
      // One request writes a string of maximum size and another string. Together they exceed a socket's default limit.
      try await socket.send(
        #"{"r":1,"a":"p","b":{"p":"/s","d":{"a":"\#(text)","b":"\#(Self.text(5_000_000))"}}}"#)
      #expect(try await socket.next() == #"{"r":1,"b":{"s":"ok","d":""}}"#)
      try await socket.send(#"{"r":2,"a":"p","b":{"p":"/s/a","d":"\#(text)x"}}"#)
      #expect(
        try await socket.next()
          == #"{"r":2,"b":{"s":"failure","d":"Invalid data; string longer than \#(maximumBytes) bytes"}}"#)
      #expect(try await rest(port, "GET", "/s/a.json").body == "\"\(text)\"")
      // Replaces a value, so that the store keeps an old version of the same size.
      #expect(try await rest(port, "PUT", "/s/a.json?print=silent", "\"\(text.dropLast())y\"").status == 204)
      #expect(try await rest(port, "PUT", "/s/a.json?print=silent", "\"\(text)y\"").status == 400)
      #expect(try await rest(port, "GET", "/s/a.json").body == "\"\(text.dropLast())y\"")
      await socket.close()
    }
  }

  @Test("a server with a raised time limit for reads accepts timeouts up to that limit")
  func readSeconds() async throws {
    let directory = directory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    try await run(directory) {
      $0.readSeconds = 7_200
    } _: { port in
      #expect(try await rest(port, "GET", "/.json?timeout=120min").status == 200)
      let refused = try await rest(port, "GET", "/.json?timeout=121min")
      #expect(refused.status == 400 && refused.body.contains("at most 120 minutes"), "\(refused.body)")
    }
  }
}
