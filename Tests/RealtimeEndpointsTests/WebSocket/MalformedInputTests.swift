// Tests every kind of malformed input over real sockets: each gets its error, and a concurrent healthy client
// of the same server is not affected.

import NIOCore
import NIOPosix
import RealtimeModel
import Testing

@testable import EndpointFixture
@testable import Ports

@Suite("Malformed input at the Realtime Database's port", .timeLimit(.minutes(10)))
struct MalformedInputTests {
  /// A healthy client, which malformed input of other clients must not affect.
  private struct Bystander {
    let socket: RawSocket
    let client: RawClient

    init(_ server: RealtimeTestServer) async throws {
      socket = try await RawSocket.open(server)
      try await socket.play(
        [#"{"r":0,"a":"q","b":{"p":"/healthy","h":""}}"#],
        expect: [#"{"r":0,"b":{"s":"ok","d":{}}}"#])
      client = try await RawClient.connect(server.port.port)
    }

    /// Checks that a write over REST arrives on the socket, both over the client's existing connections.
    func expectUnaffected(_ number: Int, after name: String) async throws {
      let body = "\(number)"
      try await client.send(
        "PUT /healthy.json?ns=demo HTTP/1.1\r\nHost: h\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
      #expect(try await client.read(through: "\r\n\r\n").hasPrefix("HTTP/1.1 200 "), "after \(name)")
      #expect(try await client.read(body.utf8.count) == Array(body.utf8), "after \(name)")
      #expect(
        try await socket.next() == #"{"a":"d","b":{"p":"healthy","d":\#(number)}}"#, "after \(name)")
    }
  }

  private static func put(_ path: String, _ body: [UInt8]) -> [UInt8] {
    Array(
      "PUT \(path) HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: \(body.count)\r\n\r\n".utf8)
      + body
  }

  private static func get(_ target: String) -> [UInt8] {
    Array("GET \(target) HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".utf8)
  }

  private static func put(_ path: String, _ body: String) -> [UInt8] { put(path, Array(body.utf8)) }

  /// The input, the expected status (0 for a closed connection), and a part of the expected body.
  private struct Case: Sendable {
    var name: String
    var bytes: [UInt8]
    var status: Int
    var expectedText: String

    init(_ name: String, _ bytes: [UInt8], _ status: Int, _ expectedText: String = "") {
      (self.name, self.bytes, self.status, self.expectedText) = (name, bytes, status, expectedText)
    }
  }

  private static let json = "couldn't parse JSON"
  private static let http = "The request is not valid HTTP/1.1: "
  private static let path = "Invalid path: Invalid token in path"

  private static let requests: [Case] = [
    // Bodies.
    Case("no body", put("/a.json", ""), 400, json),
    Case("broken UTF-8", put("/a.json", [0x22, 0xC3, 0x28, 0x22]), 400),
    Case("overlong UTF-8", put("/a.json", [0x22, 0xC0, 0xAF, 0x22]), 400),
    Case("a surrogate in UTF-8", put("/a.json", [0x22, 0xED, 0xA0, 0x80, 0x22]), 400),
    Case("half a surrogate pair", put("/a.json", #""\ud83d""#), 400),
    Case("incomplete JSON", put("/a.json", #"{"a":[1,{"b""#), 400, json),
    Case("text after the value", put("/a.json", "1 2"), 400, json),
    Case("not a number", put("/a.json", "NaN"), 400, json),
    Case("a number that is too large", put("/a.json", "1e999"), 400),
    Case("an invalid key", put("/a.json", #"{"x/y":1}"#), 400, "couldn't parse key"),
    Case("a control character as key", put("/a.json", #"{"\u0001":1}"#), 400, "couldn't parse key"),
    Case(
      "a key that is too long", put("/a.json", "{\"\(String(repeating: "k", count: 769))\":1}"), 400,
      "couldn't parse key"),
    Case(
      "33 levels",
      put("/a.json", String(repeating: #"{"d":"#, count: 33) + "1" + String(repeating: "}", count: 33)),
      400, "32 levels"),
    Case("100,000 arrays", put("/a.json", String(repeating: "[", count: 100_000)), 400),
    Case(
      "100,000 objects", put("/a.json", String(repeating: #"{"a":"#, count: 100_000)), 400),
    Case("an unknown server value", put("/a.json", #"{".sv":{"decrement":1}}"#), 400),
    Case("a value with children", put("/a.json", #"{".value":1,"x":2}"#), 400),
    Case("an object as priority", put("/a.json", #"{".value":1,".priority":{"x":1}}"#), 400),
    // Paths.
    Case("no .json", get("/a"), 404, "append .json"),
    Case("a broken escape", get("/a%zz.json"), 400, path),
    Case("half an escape", get("/a%2.json%2"), 404),
    Case("broken UTF-8 in a path", get("/a%C3%28.json"), 400, path),
    Case("a zero byte in a path", get("/a%00.json"), 400, path),
    Case("an encoded slash", get("/a%2Fb.json"), 400, path),
    Case("forbidden characters", get("/a%23b.json"), 400, path),
    Case("brackets", get("/%5Bx%5D.json"), 400, path),
    Case(
      "a path of 33 keys", put("/" + Array(repeating: "d", count: 33).joined(separator: "/") + ".json", "1"),
      400),
    Case("a key of 769 bytes in a path", put("/\(String(repeating: "k", count: 769)).json", "1"), 400, "768"),
    Case("an invalid namespace", get("/a.json?ns=a%2Fb"), 400, "Invalid namespace"),
    Case(
      "a namespace that is too long", get("/a.json?ns=\(String(repeating: "n", count: 201))"), 400,
      "Invalid namespace"),
    // Parameters.
    Case("a broken parameter", get("/a.json?x=%zz"), 400, "Invalid query parameter"),
    Case("broken UTF-8 in a parameter", get("/a.json?ns=%C3%28"), 400, "Invalid query parameter"),
    Case("an order without quotes", get("/a.json?orderBy=x"), 400, "orderBy"),
    Case("a bound without order", get("/a.json?startAt=1"), 400, "orderBy"),
    Case("a bound that is not JSON", get("/a.json?orderBy=%22$key%22&startAt=%7B"), 400),
    Case("a negative limit", get("/a.json?orderBy=%22$key%22&limitToFirst=-1"), 400, "limitToFirst"),
    Case(
      "a limit that is not a number", get("/a.json?orderBy=%22$key%22&limitToLast=many"), 400, "limitToLast"),
    Case("two limits", get("/a.json?orderBy=%22$key%22&limitToFirst=1&limitToLast=1"), 400, "limitTo"),
    Case("an unknown value of print", get("/a.json?print=loud"), 400, "print must be"),
    Case("an unknown format", get("/a.json?format=xml"), 400, "format must be"),
    Case("a callback that is not a name", get("/a.json?callback=alert(1)"), 400, "callback must be"),
    Case("a timeout without unit", get("/a.json?timeout=5"), 400, "timeout must be"),
    Case(
      "a timeout that is too long", get("/a.json?timeout=99999999999999999999min"), 400, "timeout must be"),
    Case("an unknown write size limit", get("/a.json?writeSizeLimit=huge"), 400, "writeSizeLimit"),
    Case("an invalid token", get("/a.json?auth=x.y"), 401, "Could not parse auth token."),
    Case(
      "an override that is not JSON", get("/a.json?auth=owner&auth_variable_override=%7B"), 400,
      "an object or null"),
    // HTTP.
    Case("not HTTP", Array("\u{1}\u{2}nonsense\r\n\r\n".utf8), 400, http),
    Case("an unknown version", Array("GET /a.json HTTP/7.9\r\nHost: h\r\n\r\n".utf8), 400, http),
    Case("an unknown method", Array("BREW /a.json HTTP/1.1\r\nHost: h\r\n\r\n".utf8), 400, http),
    Case(
      "an unsupported method", Array("TRACE /a.json HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".utf8),
      405
    ),
    Case(
      "a length that is not a number",
      Array("PUT /a.json HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n".utf8), 400, http),
    Case(
      "a negative length", Array("PUT /a.json HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n".utf8), 400,
      http),
    Case(
      "two lengths",
      Array("PUT /a.json HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n1".utf8), 400,
      http),
    Case(
      "a length and chunks",
      Array(
        "PUT /a.json HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n1\r\n0\r\n\r\n"
          .utf8), 400, http),
    Case(
      "a chunk size that is not a number",
      Array("PUT /a.json HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n1\r\n".utf8), 400,
      http),
    Case(
      "a chunk longer than its size",
      Array(
        "PUT /a.json HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n123\r\n0\r\n\r\n".utf8),
      400, http),
    Case(
      "a chunk of 2^64 bytes",
      Array(
        "PUT /a.json HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n".utf8),
      400, http),
    Case("a header without name", Array("GET /a.json HTTP/1.1\r\nHost: h\r\n: x\r\n\r\n".utf8), 400, http),
    Case(
      "a zero byte in a header", Array("GET /a.json HTTP/1.1\r\nHost: h\r\nX: a\u{0}b\r\n\r\n".utf8), 400,
      http),
    Case(
      "a header of a megabyte",
      Array("GET /a.json HTTP/1.1\r\nHost: h\r\nX: \(String(repeating: "x", count: 1 << 20))\r\n\r\n".utf8),
      400, http),
    Case(
      "100,000 headers",
      Array(
        ("GET /a.json HTTP/1.1\r\nHost: h\r\n" + String(repeating: "X: y\r\n", count: 100_000) + "\r\n").utf8),
      400, http),
    Case("a target of a megabyte", get("/\(String(repeating: "a", count: 1 << 20)).json"), 400, http),
    Case(
      "HTTP/2 that ends early",
      Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + [0, 0, 99, 4, 0, 0, 0, 0, 7], 0),
  ]

  @Test("every malformed request gets its error, and other clients are not affected")
  func requests() async throws {
    try await RealtimeTestServer.run { server in
      let bystander = try await Bystander(server)
      for (number, bad) in Self.requests.enumerated() {
        let client = try await RawClient.connect(server.port.port)
        // The server may close the connection before the client has sent everything.
        try? await client.send(bad.bytes)
        if bad.name.hasPrefix("HTTP/2") { await client.close() }
        let text = String(decoding: await client.readToEnd(), as: UTF8.self)
        if bad.status > 0 {
          #expect(text.hasPrefix("HTTP/1.1 \(bad.status) "), "\(bad.name): \(text.prefix(300))")
          #expect(text.contains(bad.expectedText), "\(bad.name): \(text.prefix(600))")
          if !bad.expectedText.isEmpty { #expect(text.contains("\"error\" : \""), "\(bad.name)") }
        } else {
          #expect(!text.contains(" 200 "), "\(bad.name): \(text.prefix(300))")
        }
        try await bystander.expectUnaffected(number, after: bad.name)
      }
      #expect(try await server.rest("GET", "/a.json?ns=127").body == "null")
    }
  }

  /// A frame with any first byte, masked or not.
  private static func frame(_ first: UInt8, _ payload: [UInt8], masked: Bool = true) -> [UInt8] {
    var bytes = RawSocket.frame(1, payload, mask: [0, 0, 0, 0])
    bytes[0] = first
    if !masked {
      bytes[1] &= 0x7F
      let header = payload.count < 126 ? 2 : 4
      bytes.removeSubrange(header..<(header + 4))
    }
    return bytes
  }

  /// A valid message, which the tests send in malformed frames.
  private static let validMessage = Array(#"{"t":"d","d":{"r":1,"a":"s","b":{}}}"#.utf8)

  private static let frames: [(name: String, bytes: [UInt8], code: Int)] = [
    ("an unmasked frame", frame(0x81, validMessage, masked: false), 1002),
    ("an empty unmasked frame", frame(0x81, [], masked: false), 1002),
    ("the first reserved bit", frame(0xC1, validMessage), 1002),
    ("the second reserved bit", frame(0xA1, validMessage), 1002),
    ("the third reserved bit", frame(0x91, validMessage), 1002),
    ("an unknown opcode", frame(0x83, []), 1002), ("an unknown control opcode", frame(0x8B, []), 1002),
    ("binary", frame(0x82, [1, 2]), 1003),
    ("a fragmented ping", frame(0x09, []), 1002), ("a fragmented close frame", frame(0x08, []), 1002),
    ("a ping that is too long", frame(0x89, Array(repeating: 0, count: 126)), 1002),
    ("a continuation without a message", frame(0x80, [1]), 1002),
    ("a message inside a message", frame(0x01, [0x7B]) + frame(0x81, [0x7D]), 1002),
    ("an announced length of 4 GiB", [0x81, 0xFF, 0, 0, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4], 1009),
    ("an announced length of 2^63 bytes", [0x81, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4], 1009),
    ("not JSON", frame(0x81, Array("{nope".utf8)), 1007),
    ("broken UTF-8", frame(0x81, [0x7B, 0x22, 0xC3, 0x28, 0x22, 0x3A, 0x31, 0x7D]), 1007),
    ("not a message", frame(0x81, Array("[1]".utf8)), 1002),
    ("60,000 arrays", frame(0x81, Array(repeating: UInt8(ascii: "["), count: 60_000)), 1002),
    ("a frame count that is too large", frame(0x81, Array("999999999999999999999".utf8)), 1002),
  ]

  @Test("every malformed frame closes only its own socket, with the expected code")
  func frames() async throws {
    try await RealtimeTestServer.run { server in
      let bystander = try await Bystander(server)
      for (number, bad) in Self.frames.enumerated() {
        let socket = try await RawSocket.open(server)
        try? await socket.client.send(bad.bytes)
        var close: RawSocket.Frame?
        // A protocol message with the error may precede the close frame.
        while close == nil, let frame = try? await socket.readFrame() {
          if frame.opcode == 8 { close = frame }
        }
        #expect(
          close?.payload.prefix(2) == [UInt8(bad.code >> 8), UInt8(bad.code & 255)],
          "\(bad.name): \(close as Any)")
        #expect(await socket.client.readToEnd().isEmpty, "\(bad.name)")
        try await bystander.expectUnaffected(number, after: bad.name)
      }
    }
  }

  private static let messages: [(name: String, data: String, answer: String)] = [
    ("an unknown action", #"{"r":1,"a":"zz","b":{}}"#, #""s":"failure""#),
    ("a path that is not a string", #"{"r":1,"a":"p","b":{"p":7,"d":1}}"#, #""s":"failure""#),
    ("an invalid path", #"{"r":1,"a":"p","b":{"p":"/a.b","d":1}}"#, #""s":"failure""#),
    ("no body", #"{"r":1,"a":"p"}"#, #""s":"failure""#),
    ("an invalid key", #"{"r":1,"a":"p","b":{"p":"/x","d":{"a#b":1}}}"#, #""s":"failure""#),
    (
      "33 levels",
      #"{"r":1,"a":"p","b":{"p":"/x","d":"# + String(repeating: #"{"d":"#, count: 33) + "1"
        + String(repeating: "}", count: 33) + "}}", #""s":"failure""#
    ),
    ("an invalid query", #"{"r":1,"a":"q","b":{"p":"/x","t":1,"q":{"l":-1},"h":""}}"#, #""s":"failure""#),
    (
      "an update with a path inside another", #"{"r":1,"a":"m","b":{"p":"/x","d":{"a":1,"a/b":2}}}"#,
      #""s":"failure""#
    ),
    (
      "an invalid compound hash", #"{"r":1,"a":"q","b":{"p":"/x","h":"","ch":{"ps":["a"],"hs":[]}}}"#,
      #""s":"failure""#
    ),
    ("an invalid credential", #"{"r":1,"a":"auth","b":{"cred":"a.b"}}"#, #""s":"invalid_token""#),
  ]

  @Test(
    "every malformed request on a socket gets an error with its request number, and the socket stays open")
  func messages() async throws {
    try await RealtimeTestServer.run { server in
      let bystander = try await Bystander(server)
      let socket = try await RawSocket.open(server)
      for (number, bad) in Self.messages.enumerated() {
        try await socket.send(bad.data)
        let answer = try await socket.next()
        #expect(answer.hasPrefix(#"{"r":1,"b":{"#) && answer.contains(bad.answer), "\(bad.name): \(answer)")
        try await socket.play([#"{"r":2,"a":"s","b":{}}"#], expect: [#"{"r":2,"b":{"s":"ok","d":""}}"#])
        try await bystander.expectUnaffected(number, after: bad.name)
      }
    }
  }

  private static let deep = String(repeating: "[", count: 200) + String(repeating: "]", count: 200)

  @Test(
    "a request whose body is not JSON gets a response with its number, which may precede or follow the body",
    arguments: ["nan", "-inf", "1e999", #""\ud83d""#, #""\xC3""#, "{\"a\":[1,]}", "\"\u{1}\"", deep])
  func invalidBodies(value: String) async throws {
    try await RealtimeTestServer.run { server in
      let socket = try await RawSocket.open(server)
      let numberFirst = #"{"t":"d","d":{"r":1,"a":"p","b":{"d":\#(value),"p":"/x"}}}"#
      let numberLast = #"{"d":{"a":"p","b":{"d":\#(value),"p":"/x"},"r":1},"t":"d"}"#
      var answers: [String] = []
      for text in [
        numberFirst, numberLast, #" { "t": "d", "d": {"a": "p","b":{"d":\#(value)}, "r" : 1 } } "#,
      ] {
        try await socket.send(text: text)
        answers.append(try await socket.next())
        try await socket.play([#"{"r":2,"a":"s","b":{}}"#], expect: [#"{"r":2,"b":{"s":"ok","d":""}}"#])
      }
      #expect(answers[0].hasPrefix(#"{"r":1,"b":{"s":"failure","d":"Invalid data; "#), "\(answers[0])")
      // The errors differ only in the position within the message.
      #expect(Set(answers.map { $0.filter { !$0.isNumber } }).count == 1, "\(answers)")
    }
  }

  @Test("connections that close after any part of a request leave no state")
  func incompleteConnections() async throws {
    try await RealtimeTestServer.run { server in
      let bystander = try await Bystander(server)
      let request = Array(RawSocket.request(server, "v=5&ns=demo").utf8)
      let message = RawSocket.frame(1, Array(#"{"t":"d","d":{"r":1,"a":"p","b":{"p":"/x","d":1}}}"#.utf8))
      let completeInputs: [[UInt8]] = [
        request + message, Self.put("/x.json?ns=demo", #"{"x":"yyyyyyyyyyyyyyyy"}"#),
        Array("GET /x.json?ns=demo HTTP/1.1\r\nHost: h\r\nAccept: text/event-stream\r\n\r\n".utf8),
        Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + [0, 0, 0, 4, 0, 0, 0, 0, 0],
      ]
      for input in completeInputs {
        for cut in stride(from: 0, through: input.count, by: 7) {
          let client = try await RawClient.connect(server.port.port)
          try await client.send(Array(input[..<cut]))
          await client.close()
        }
      }
      try await bystander.expectUnaffected(1, after: "all of them")
      // Only the healthy client's connections remain.
      #expect(try await eventually { server.port.connectionCount <= 2 }, "\(server.port.connectionCount)")
    }
  }
}
