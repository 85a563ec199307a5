// Tests the Realtime Database's REST interface: methods, parameters, queries, conditional requests,
// authentication and error messages.

import Access
import JSON
import NIOCore
import RealtimeEngine
import RealtimeModel
import Testing

@testable import EndpointFixture
@testable import Ports
@testable import RealtimeEndpoints

@Suite("Realtime Database over REST", .timeLimit(.minutes(10)))
struct RESTTests {
  /// One request with its expected response.
  struct Exchange: Sendable {
    var method: String
    var target: String
    var body: String?
    var headers: [String] = []
    var status = 200
    var answer: String?

    init(
      _ method: String, _ target: String, _ body: String? = nil, _ headers: [String] = [],
      is status: Int = 200, _ answer: String? = nil
    ) {
      self.method = method
      self.target = target
      self.body = body
      self.headers = headers
      self.status = status
      self.answer = answer
    }
  }

  private func play(
    _ exchanges: [Exchange], policy: any AccessPolicy<RealtimeAccess> = OpenPolicy(),
    authentication: RealtimeAuthentication = .emulator
  ) async throws {
    try await RealtimeTestServer.run(policy: policy, authentication: authentication) { server in
      for exchange in exchanges {
        let answer = try await server.rest(
          exchange.method, exchange.target, body: exchange.body, headers: exchange.headers)
        #expect(answer.status == exchange.status, "\(exchange.method) \(exchange.target): \(answer.body)")
        if let expected = exchange.answer {
          #expect(answer.body == expected, "\(exchange.method) \(exchange.target)")
        }
      }
    }
  }

  private static func error(_ text: String) -> String { "{\n  \"error\" : \"\(text)\"\n}\n" }

  @Test("each method has its effect and Firebase's response body")
  func methods() async throws {
    try await play([
      .init("GET", "/a.json", is: 200, "null"),
      .init("PUT", "/a.json", #"{"x":1,"y":[1,null,2]}"#, is: 200, #"{"x":1,"y":[1,null,2]}"#),
      .init("GET", "/a/x.json", is: 200, "1"), .init("GET", "/a/x/.json", is: 200, "1"),
      .init("GET", "/.json", is: 200, #"{"a":{"x":1,"y":[1,null,2]}}"#),
      .init(
        "PATCH", "/a.json", #"{"x":null,"y/0":9,"z/deep":true}"#, is: 200,
        #"{"x":null,"y/0":9,"z/deep":true}"#),
      .init("GET", "/a.json", is: 200, #"{"y":[9,null,2],"z":{"deep":true}}"#),
      .init("DELETE", "/a/z.json", is: 200, "null"), .init("GET", "/a.json", is: 200, #"{"y":[9,null,2]}"#),
      .init("POST", "/a/y.json", "1", ["X-HTTP-Method-Override: DELETE"], is: 200, "null"),
      .init("POST", "/b.json?x-http-method-override=PUT", "3", is: 200, "3"),
      .init("GET", "/.json", is: 200, #"{"b":3}"#),
      .init("PATCH", "/b.json", "null", is: 200, "null"), .init("GET", "/.json", is: 200, "null"),
      .init("TRACE", "/b.json", is: 405),
    ])
  }

  @Test("an update with an empty key is rejected, and leaves the location unchanged")
  func emptyUpdateKeys() async throws {
    func refused(_ column: Int) -> String {
      Self.error(
        "Invalid data; couldn't parse key beginning at 1:\(column). "
          + "Key value can't be empty or contain $ # [ ] / or .")
    }
    try await play([
      .init("PUT", "/keep.json", #"{"a":1}"#, is: 200),
      .init("PUT", "/.json", #"{"":null}"#, is: 400, refused(2)),
      .init("PATCH", "/.json", #"{"":null}"#, is: 400, refused(2)),
      .init("PATCH", "/keep.json", #"{"///":"gone"}"#, is: 400, refused(2)),
      .init("PATCH", "/keep.json", #"{"b":2,"":{"c":3}}"#, is: 400, refused(8)),
      .init("PATCH", "/keep.json?print=silent", #"{"/":null}"#, is: 400),
      .init("GET", "/.json", is: 200, #"{"keep":{"a":1}}"#),
      .init("PATCH", "/keep.json", #"{"/b//c/":2}"#, is: 200),
      .init("GET", "/.json", is: 200, #"{"keep":{"a":1,"b":{"c":2}}}"#),
    ])
  }

  @Test("a POST request generates a push ID (a key in order of time) and returns the ID")
  func post() async throws {
    try await RealtimeTestServer.run { server in
      var names: [String] = []
      for index in 0..<3 {
        let answer = try await server.rest("POST", "/list.json", body: "\(index)")
        names.append(try #require(JSONValue(json: answer.body)["name"]?.string))
      }
      #expect(names == names.sorted() && names.allSatisfy { $0.utf8.count == 20 })
      #expect(try await server.rest("GET", "/list/\(names[1]).json").body == "1")
    }
  }

  @Test("priorities and server values are written; plain output omits priorities, export shows them")
  func exportFormat() async throws {
    try await play([
      .init(
        "PUT", "/p.json", #"{"a":{".value":1,".priority":2},"b":{".sv":{"increment":4}},".priority":"x"}"#,
        is: 200, #"{"a":1,"b":4}"#),
      .init("GET", "/p.json", is: 200, #"{"a":1,"b":4}"#),
      .init(
        "GET", "/p.json?format=export", is: 200, #"{"a":{".value":1,".priority":2},"b":4,".priority":"x"}"#),
      .init("GET", "/p/a/.priority.json", is: 200, "2"),
      .init("PUT", "/p/a/.priority.json", "7", is: 200, "7"),
      .init("GET", "/p/a.json?format=export", is: 200, #"{".value":1,".priority":7}"#),
      .init("PUT", "/p/a/.priority.json", "true", is: 400),
    ])
  }

  @Test("a shallow read accepts an unquoted key, even if the key looks like a number or boolean")
  func bareKeys() async throws {
    let read = "/l.json?shallow=true"
    try await play([
      .init(
        "PUT", "/l.json?print=silent", #"{"-5":1,"7":1,"12":1,"1e5":1,"null":1,"true":1,"z":1}"#, is: 204),
      .init("GET", "\(read)&limitToFirst=2", is: 200, #"{"-5":true,"7":true}"#),
      .init("GET", "\(read)&limitToFirst=2&startAfter=7", is: 200, #"{"12":true,"1e5":true}"#),
      .init("GET", "\(read)&limitToFirst=1&startAfter=12", is: 200, #"{"1e5":true}"#),
      .init("GET", "\(read)&limitToFirst=1&startAfter=-5", is: 200, #"{"7":true}"#),
      .init("GET", "\(read)&startAfter=1e5", is: 200, #"{"null":true,"true":true,"z":true}"#),
      .init("GET", "\(read)&startAfter=null", is: 200, #"{"true":true,"z":true}"#),
      .init("GET", "\(read)&startAt=true", is: 200, #"{"true":true,"z":true}"#),
      .init("GET", "\(read)&startAt=7&endAt=12", is: 200, #"{"7":true,"12":true}"#),
      .init("GET", "\(read)&endBefore=12", is: 200, #"{"-5":true,"7":true}"#),
      .init("GET", "\(read)&equalTo=12", is: 200, #"{"12":true}"#),
      .init("GET", "\(read)&startAfter=%2212%22&limitToFirst=1", is: 200, #"{"1e5":true}"#),
      // Here the unquoted bound counts as a number, which key order rejects: 1.5 is not a valid key, and an
      // explicit orderBy requires quotes.
      .init("GET", "\(read)&startAfter=1.5", is: 400),
      .init("GET", "\(read)&orderBy=%22$key%22&startAfter=12", is: 400),
      .init("GET", "/l.json?orderBy=%22$key%22&startAfter=12", is: 400),
    ])
  }

  @Test("the parameters print, shallow, callback and download change the form of the response")
  func output() async throws {
    try await play([
      .init("PUT", "/a.json?print=silent", #"{"x":{"y":1},"z":2}"#, is: 204, ""),
      .init("GET", "/a.json?print=pretty", is: 200, "{\n  \"x\" : {\n    \"y\" : 1\n  },\n  \"z\" : 2\n}\n"),
      .init("GET", "/a.json?print=silent", is: 204, ""), .init("GET", "/a.json?print=loud", is: 400),
      .init("GET", "/a.json?shallow=true", is: 200, #"{"x":true,"z":true}"#),
      .init("GET", "/a/z.json?shallow=true", is: 200, "2"),
      .init("GET", "/b.json?shallow=true", is: 200, "null"),
      .init("GET", "/a.json?shallow=true&limitToFirst=1", is: 200, #"{"x":true}"#),
      .init("GET", "/a.json?shallow=true&limitToFirst=5&startAfter=x&timeout=10s", is: 200, #"{"z":true}"#),
      .init("GET", "/a/z.json?callback=jsonp.cb", is: 200, "jsonp.cb(2);"),
      .init("GET", "/a/z.json?callback=alert(1)", is: 400), .init("GET", "/a/z.json?timeout=20min", is: 400),
      .init("GET", "/a/z.json?timeout=300ms", is: 200),
      .init("PUT", "/a/z.json?writeSizeLimit=huge", "1", is: 400),
      .init("PUT", "/a/z.json?writeSizeLimit=tiny", "1", is: 200),
    ])
    try await RealtimeTestServer.run { server in
      let answer = try await server.rest("GET", "/a.json?download=my%20%22data%22.json")
      #expect(answer.headers["content-disposition"] == "attachment; filename=\"my data.json\"")
      #expect(answer.headers["content-type"] == "application/json; charset=utf-8")
      #expect(answer.headers["cache-control"] == "no-cache")
      #expect(answer.headers["access-control-allow-origin"] == "*")
      #expect(answer.headers["content-length"] == "4")
    }
  }

  @Test("queries support orders, bounds and limits")
  func queries() async throws {
    let data = #"{"a":{"h":3,"n":"x"},"b":{"h":1},"c":{"h":2,"n":"y"},"d":{"w":1}}"#
    try await RealtimeTestServer.run { server in
      try await server.publish(
        rules: #"{"rules":{".read":true,".write":true,"q":{".indexOn":["h","n"]},"v":{".indexOn":".value"}}}"#
      )
      #expect(try await server.rest("PUT", "/q.json", body: data).status == 200)
      for (parameters, keys) in [
        ("orderBy=%22h%22", "abcd"), ("orderBy=%22h%22&limitToFirst=2", "bd"),
        ("orderBy=%22h%22&limitToLast=2", "ac"),
        ("orderBy=%22h%22&startAt=2", "ac"), ("orderBy=%22h%22&startAfter=2", "a"),
        ("orderBy=%22h%22&endAt=1", "bd"),
        ("orderBy=%22h%22&endBefore=2", "bd"), ("orderBy=%22h%22&equalTo=2", "c"),
        ("orderBy=%22h%22&equalTo=null", "d"),
        ("orderBy=%22h%22&startAt=1&endAt=2", "bc"), ("orderBy=%22h%22&startAt=2,%22d%22", "a"),
        ("orderBy=%22h%22&startAfter=2,%22[MAX_NAME]%22", "a"), ("orderBy=%22n%22&equalTo=%22x%22", "a"),
        ("orderBy=%22$key%22&startAt=%22b%22&endAt=%22c%22", "bc"),
        ("orderBy=%22$key%22&startAfter=%22b%22", "cd"),
        ("orderBy=%22$key%22&endBefore=%22b%22", "a"), ("orderBy=%22$priority%22&limitToFirst=1", "a"),
        ("orderBy=%22h%22&startAt=9", ""),
      ] {
        let answer = try await server.rest("GET", "/q.json?" + parameters)
        let found = try JSONValue(json: answer.body).object?.members.map(\.key).sorted().joined() ?? ""
        #expect(found == keys, "\(parameters): \(answer.body)")
      }
      #expect(try await server.rest("PUT", "/v.json", body: #"{"a":3,"b":1}"#).status == 200)
      #expect(try await server.rest("GET", "/v.json?orderBy=%22$value%22&limitToLast=1").body == #"{"a":3}"#)
    }
  }

  @Test("invalid queries are rejected with Firebase's messages")
  func badQueries() async throws {
    let missing = Self.error("orderBy must be defined when other query parameters are defined")
    try await play([
      .init("GET", "/q.json?limitToFirst=1", is: 400, missing),
      .init("GET", "/q.json?startAt=1", is: 400, missing),
      .init("GET", "/q.json?orderBy=h", is: 400), .init("GET", "/q.json?orderBy=%22%22", is: 400),
      .init("GET", "/q.json?orderBy=%22a.b%22", is: 400),
      .init("GET", "/q.json?orderBy=%22h%22&startAt=x", is: 400),
      .init("GET", "/q.json?orderBy=%22h%22&startAt=%7B%22a%22:1%7D", is: 400),
      .init("GET", "/q.json?orderBy=%22h%22&limitToFirst=1&limitToLast=1", is: 400),
      .init("GET", "/q.json?orderBy=%22h%22&limitToFirst=0", is: 400),
      .init("GET", "/q.json?orderBy=%22h%22&limitToFirst=x", is: 400),
      .init("GET", "/q.json?orderBy=%22$key%22&startAt=1", is: 400),
      .init("GET", "/q.json?orderBy=%22h%22&equalTo=1&startAt=1", is: 400),
      .init("GET", "/q.json?orderBy=%22h%22&startAt=1&startAfter=1", is: 400),
    ])
  }

  @Test("a query without an index is rejected with the index's name")
  func noIndex() async throws {
    let error = Self.error(
      #"Index not defined, add \".indexOn\": \"due\", for path \"/notes\", to the rules"#)
    try await play([
      .init("PUT", "/notes.json", #"{"n1":{"due":5}}"#),
      .init("GET", "/notes.json?orderBy=%22due%22&limitToLast=2", is: 400, error),
      .init("GET", "/notes.json?orderBy=%22due%22", is: 400, error),
      .init(
        "GET", "/notes.json?orderBy=%22due%22&limitToLast=2", nil, ["Accept: text/event-stream"], is: 400,
        error),
      .init("GET", "/notes.json?orderBy=%22$key%22&limitToLast=2", is: 200, #"{"n1":{"due":5}}"#),
      .init(
        "PUT", "/.settings/rules.json", #"{"rules":{".read":true,".write":true,"notes":{".indexOn":"due"}}}"#,
        ["Authorization: Bearer owner"]),
      .init("GET", "/notes.json?orderBy=%22due%22&limitToLast=2", is: 200, #"{"n1":{"due":5}}"#),
      .init("GET", "/notes.json?orderBy=%22rank%22", is: 400),
    ])
  }

  @Test("ETags are the value's hash (null_etag for an empty location), and make reads and writes conditional")
  func etags() async throws {
    try await RealtimeTestServer.run { server in
      let absent = try await server.rest("GET", "/e.json", headers: ["X-Firebase-ETag: true"])
      #expect(absent.headers["etag"] == "null_etag" && absent.body == "null")
      let created = try await server.rest("PUT", "/e.json", body: "600613", headers: ["if-match: null_etag"])
      #expect(created.status == 200 && created.headers["etag"] == "ViJFJowpbyRvgGNPzPJdGeN+mCY=")
      let again = try await server.rest("PUT", "/e.json", body: "1", headers: ["if-match: null_etag"])
      #expect(again.status == 412 && again.body == "600613")
      #expect(again.headers["etag"] == "ViJFJowpbyRvgGNPzPJdGeN+mCY=")
      let same = try await server.rest(
        "GET", "/e.json", headers: ["if-none-match: \"ViJFJowpbyRvgGNPzPJdGeN+mCY=\""])
      #expect(
        same.status == 304 && same.body.isEmpty && same.headers["etag"] == "ViJFJowpbyRvgGNPzPJdGeN+mCY=")
      let changed = try await server.rest("GET", "/e.json", headers: ["if-none-match: x"])
      #expect(changed.status == 200 && changed.body == "600613" && changed.headers["etag"] != nil)
      #expect(try await server.rest("GET", "/e.json").headers["etag"] == nil)
      let silent = try await server.rest(
        "DELETE", "/e.json?print=silent", headers: ["if-match: ViJFJowpbyRvgGNPzPJdGeN+mCY="])
      #expect(silent.status == 204 && silent.headers["etag"] == "null_etag")
      #expect(try await server.rest("PATCH", "/e.json", body: "{}", headers: ["if-match: x"]).status == 400)
      #expect(try await server.rest("POST", "/e.json", body: "1", headers: ["if-match: x"]).status == 400)
      #expect(try await server.rest("PUT", "/e.json", body: "1", headers: ["if-match: x, y"]).status == 400)
      #expect(
        try await server.rest("GET", "/e.json?shallow=true", headers: ["X-Firebase-ETag: true"]).status == 400
      )
      for header in ["if-match: \"\"", "if-match:", "if-none-match: \"\""] {
        let method = header.contains("none") ? "GET" : "PUT"
        let empty = try await server.rest(method, "/e.json", body: "1", headers: [header])
        #expect(empty.status == 400 && empty.body.contains("must name an ETag"), "\(header)")
      }
      #expect(try await server.rest("GET", "/e.json").body == "null")
    }
  }

  @Test("invalid paths, keys and bodies are rejected with Firebase's messages")
  func badInput() async throws {
    let path = Self.error("Invalid path: Invalid token in path")
    let json = Self.error("Invalid data; couldn't parse JSON object, array, or value.")
    let key =
      "Invalid data; couldn't parse key beginning at 1:2. Key value can't be empty or contain $ # [ ] / or ."
    try await play([
      .init("GET", "/a", is: 404, Self.error("append .json to your request URI to use the REST API.")),
      .init("GET", "/a.b.json", is: 400, path), .init("GET", "/a%5B.json", is: 400, path),
      .init("GET", "/a%2Fb.json", is: 400, path), .init("GET", "/a%00.json", is: 400),
      .init("GET", "/a%zz.json", is: 400),
      .init("GET", "/a%C3.json", is: 400), .init("GET", "/x.json?orderBy=%zz", is: 400),
      .init("PUT", "/a.json", "{nope", is: 400, json), .init("PUT", "/a.json", "", is: 400, json),
      .init("PUT", "/a.json", #"{"":1}"#, is: 400, Self.error(key)),
      .init(
        "PUT", "/a.json", "{\"\(String(repeating: "k", count: 769))\":1}", is: 400,
        Self.error(
          "Invalid data; couldn't parse key beginning at 1:2. A key may have at most 768 bytes, and this has 769."
        )),
      .init("PATCH", "/a.json", "[1]", is: 400),
      .init("PATCH", "/a.json", #"{"x":1,"x/y":2}"#, is: 400),
      .init("PUT", "/a.json", #"{".sv":"never"}"#, is: 400),
      .init("PUT", "/" + Array(repeating: "d", count: 33).joined(separator: "/") + ".json", "1", is: 400),
      .init("GET", "/%C5%BC%C3%B3%20%F0%9F%98%80.json", is: 200, "null"),
      .init("GET", "/.inspect/coverage", is: 501),
      .init(
        "GET", "/a.json?shallow=true", nil, ["Accept: text/event-stream"], is: 400,
        Self.error("shallow is not supported for event streams")),
    ])
  }

  @Test("a database without public access answers anonymous requests with 401")
  func unauthenticated() async throws {
    let denied = Self.error("Permission denied")
    try await play(
      [
        .init("GET", "/a.json", is: 401, denied), .init("PUT", "/a.json", "1", is: 401, denied),
        .init("POST", "/a.json", "1", is: 401, denied),
        .init("PATCH", "/a.json", #"{"x":1}"#, is: 401, denied),
        .init("DELETE", "/a.json", is: 401, denied),
        .init("GET", "/a.json", nil, ["Accept: text/event-stream"], is: 401, denied),
        .init("GET", "/a.json?auth=owner", is: 401, Self.error("Could not parse auth token.")),
        .init(
          "GET", "/a.json", nil, ["Authorization: Bearer owner"], is: 401,
          Self.error("Could not parse auth token.")),
        .init("GET", "/.inspect/databases.json", is: 401, denied),
      ], policy: LockedPolicy(), authentication: .rejectAll)
  }

  @Test(
    "the emulator recognizes its owner by header and by parameter, and lets the owner act as another user")
  func credentials() async throws {
    try await play(
      [
        .init("PUT", "/a.json?access_token=owner", "1", is: 200, "1"),
        .init("GET", "/a.json?auth=owner", is: 200, "1"),
        .init("GET", "/a.json", nil, ["Authorization: Bearer owner"], is: 200, "1"),
        .init("GET", "/a.json", is: 401),
        .init("GET", "/a.json?auth=owner&auth_variable_override=null", is: 401),
        .init("GET", "/a.json?auth=owner&auth_variable_override=%7B%22uid%22:%22u%22%7D", is: 401),
        .init("GET", "/a.json?auth=owner&auth_variable_override=%7B", is: 400),
        .init("GET", "/.inspect/databases.json?auth=owner", is: 200, #"[{"name":"127"}]"#),
      ], policy: LockedPolicy())
  }

  @Test("with public access, listing the databases needs no credentials")
  func databases() async throws {
    try await play([
      .init("PUT", "/a.json", "1"),
      .init("GET", "/.inspect/databases.json?ns=127", is: 200, #"[{"name":"127"}]"#),
      .init("HEAD", "/.inspect/databases.json", is: 200, ""),
      .init("PUT", "/.inspect/databases.json", "1", is: 501),
    ])
  }

  @Test("CORS allows requests from any origin, and preflights get the allowed methods")
  func crossOrigin() async throws {
    try await RealtimeTestServer.run { server in
      let answer = try await server.rest(
        "OPTIONS", "/a.json",
        headers: [
          "Origin: http://app.test", "Access-Control-Request-Method: PUT",
          "Access-Control-Request-Headers: if-match, x-firebase-etag",
        ])
      #expect(answer.status == 200)
      #expect(answer.headers["access-control-allow-origin"] == "*")
      #expect(answer.headers["access-control-allow-headers"] == "if-match, x-firebase-etag")
      #expect(answer.headers["access-control-allow-methods"]?.contains("PATCH") == true)
      for target in [
        "/", "/a", "/a.json?orderBy=%zz", "/.settings/rules.json", "/.inspect/databases.json",
        "/.inspect/coverage", "/.inspect/none", "/.lp", "/.ws", "/namespaces/demo/rulesets",
      ] {
        let preflight = try await server.rest("OPTIONS", target, headers: ["Origin: http://app.test"])
        #expect(
          preflight.status == 200 && preflight.headers["access-control-allow-origin"] == "*", "\(target)")
      }
      for header in ["Accept: */*", "Accept: text/event-stream"] {
        let head = try await server.rest("HEAD", "/a.json", headers: [header])
        #expect(head.status == 200 && head.body.isEmpty && head.headers["content-length"] == "4")
      }
    }
  }

  @Test("one connection serves many requests, pipelined ones in order")
  func pipelining() async throws {
    try await RealtimeTestServer.run { server in
      let client = try await RawClient.connect(server.port.port)
      var text = ""
      for index in 0..<20 {
        text +=
          "PUT /k.json?ns=x HTTP/1.1\r\nHost: h\r\nContent-Length: \(String(index).utf8.count)\r\n\r\n\(index)"
      }
      text += "GET /k.json?ns=x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
      try await client.send(text)
      let answers = String(decoding: await client.readToEnd(), as: UTF8.self)
      let bodies = answers.components(separatedBy: "HTTP/1.1 200 OK").dropFirst().map {
        $0.split(separator: "\r\n").last.map(String.init)
      }
      #expect(bodies == (0..<20).map(String.init) + ["19"])
    }
  }

  @Test("a value too large for a response is rejected; a socket stays open")
  func largeAnswer() async throws {
    var limits = RealtimeEndpointLimits()
    limits.data.responseBytes = 1000
    try await RealtimeTestServer.run(limits: limits) { server in
      let value = "\"" + String(repeating: "x", count: 5000) + "\""
      let written = try await server.rest("PUT", "/a.json?print=silent&ns=demo", body: value)
      #expect(written.status == 204)
      let answer = try await server.rest("GET", "/a.json?ns=demo")
      #expect(answer.status == 400 && answer.body == Self.error(RealtimeError.tooBig.message))
      let socket = try await RawSocket.open(server)
      try await socket.play(
        [#"{"r":1,"a":"g","b":{"p":"/a","q":{}}}"#, #"{"r":2,"a":"s","b":{}}"#],
        expect: [
          #"{"r":1,"b":{"s":"too_big","d":"\#(RealtimeError.tooBig.message)"}}"#,
          #"{"r":2,"b":{"s":"ok","d":""}}"#,
        ])
    }
  }

  @Test("a body beyond the limit is rejected without being buffered")
  func largeBody() async throws {
    var limits = RealtimeEndpointLimits()
    limits.data.restWriteBytes = 1000
    try await RealtimeTestServer.run(limits: limits) { server in
      let answer = try await server.rest(
        "PUT", "/a.json", body: "\"" + String(repeating: "x", count: 5000) + "\"")
      #expect(answer.status == 400)
      #expect(answer.body == Self.error(RealtimeError.writeTooBig.message))
      #expect(try await server.rest("PUT", "/a.json", body: "\"fits\"").status == 200)
    }
  }
}

extension String {
  /// The parts between occurrences of a separator.
  fileprivate func components(separatedBy separator: String) -> [Substring] {
    var parts: [Substring] = []
    var rest = self[...]
    while let range = rest.firstRange(of: separator) {
      parts.append(rest[..<range.lowerBound])
      rest = rest[range.upperBound...]
    }
    return parts + [rest]
  }
}
