// Tests imports and exports of databases over REST: bodies written while they arrive, responses sent while
// they are read.

import Access
import JSON
import NIOCore
import OrderedStore
import RealtimeEngine
import RealtimeModel
import Testing

@testable import EndpointFixture
@testable import Ports
@testable import RealtimeEndpoints

@Suite("Imports and exports over REST", .timeLimit(.minutes(10)))
struct RESTStreamTests {
  /// Limits so low that the server handles small bodies like large bodies.
  private var limits: RealtimeEndpointLimits {
    var limits = RealtimeEndpointLimits()
    limits.arrivingBodyBytes = 1_000
    limits.data.restWriteBytes = 250_000
    return limits
  }

  private func tree(_ count: Int) -> Node {
    let text = String(repeating: "xyz", count: 60)
    return .object(
      (0..<count).map { index -> (RealtimeModel.ChildKey, Node) in
        let leaf = Node.leaf(.string("\(index)\(text)"), priority: index % 9 == 0 ? .number(2) : nil)
        let value = Node.object([("v", leaf), ("n", .leaf(.int(Int64(index))))])
        return (RealtimeModel.ChildKey("k\(index)"), value)
      })
  }

  private func text(_ node: Node) -> String { String(decoding: node.json(.export), as: UTF8.self) }

  @Test(
    "a complete database is imported and exported, with a length and in chunks", arguments: [false, true])
  func completeDatabase(isChunked: Bool) async throws {
    try await RealtimeTestServer.run(limits: limits) { server in
      let node = tree(1_500)
      let body = text(node)
      if isChunked {
        let client = try await RawClient.connect(server.port.port)
        try await client.send(
          "PUT /.json?writeSizeLimit=unlimited&print=silent HTTP/1.1\r\nHost: \(server.host)\r\nConnection: close\r\n"
            + "Transfer-Encoding: chunked\r\n\r\n")
        var rest = Array(body.utf8)[...]
        while !rest.isEmpty {
          let piece = Array(rest.prefix(7_001))
          rest = rest.dropFirst(piece.count)
          try await client.send(Array("\(String(piece.count, radix: 16))\r\n".utf8) + piece + [13, 10])
        }
        try await client.send("0\r\n\r\n")
        #expect(try RESTAnswer(String(decoding: await client.readToEnd(), as: UTF8.self)).status == 204)
      } else {
        let answer = try await server.rest("PUT", "/.json?writeSizeLimit=unlimited", body: body)
        #expect(answer.status == 200)
        #expect(try JSONValue(json: Array(answer.body.utf8)) == JSONValue(json: node.json(.plain)))
      }
      let export = try await server.rest("GET", "/.json?format=export&download=all.json")
      #expect(export.status == 200 && export.headers["transfer-encoding"] == "chunked")
      #expect(export.headers["content-disposition"] == "attachment; filename=\"all.json\"")
      #expect(try Node(json: Array(export.body.utf8)) == node)
      for query in ["", "?print=pretty"] {
        let plain = try await server.rest("GET", "/.json\(query)")
        #expect(try JSONValue(json: Array(plain.body.utf8)) == JSONValue(json: node.json(.plain)))
        #expect(plain.body.hasSuffix("\n") == !query.isEmpty)
      }
      let head = try await server.rest("HEAD", "/.json?format=export")
      #expect(head.status == 200 && head.body.isEmpty)
      #expect(try await server.rest("GET", "/k7/n.json").body == "7")
      #expect(try await server.rest("GET", "/none.json").headers["content-length"] == "4")
    }
  }

  /// Writes a value that is larger than one chunk of a response.
  private func fill(_ server: RealtimeTestServer) async throws {
    let database = try await server.engine.database("127")
    let text = String(repeating: "x", count: 100_000)
    for path in ["fat/a", "fat/b"] as [Path] {
      _ = try await database.set(path, to: .leaf(.string(text)), as: .nobody)
    }
  }

  @Test("the response to HEAD of a large value has no body, and the next request is answered")
  func head() async throws {
    try await RealtimeTestServer.run { server in
      try await fill(server)
      let client = try await RawClient.connect(server.port.port)
      let host = "Host: \(server.host)\r\n"
      try await client.send("HEAD /fat.json HTTP/1.1\r\n\(host)\r\n")
      let head = try await client.read(through: "\r\n\r\n")
      #expect(
        head.hasPrefix("HTTP/1.1 200 ") && !head.contains("transfer-encoding") && !head.contains("close"))
      try await client.send("GET /none.json HTTP/1.1\r\n\(host)\r\n")
      #expect(try await client.read(through: "\r\n\r\n").hasPrefix("HTTP/1.1 200 "))
      #expect(try await client.read(4) == Array("null".utf8))
      try await client.send("HEAD /fat.json HTTP/1.1\r\n\(host)Connection: close\r\n\r\n")
      #expect(
        String(decoding: await client.readToEnd(), as: UTF8.self).hasSuffix("\r\nconnection: close\r\n\r\n"))
    }
  }

  @Test("over HTTP/1.0 the end of the connection ends a response, also with keep-alive")
  func http10() async throws {
    try await RealtimeTestServer.run { server in
      try await fill(server)
      for (target, count) in [("/fat.json", 200_015), ("/fat/a.json", 100_002), ("/none.json", 4)] {
        let client = try await RawClient.connect(server.port.port)
        try await client.send(
          "GET \(target) HTTP/1.0\r\nHost: \(server.host)\r\nConnection: keep-alive\r\n\r\n")
        let answer = try RESTAnswer(String(decoding: await client.readToEnd(), as: UTF8.self))
        #expect(answer.status == 200 && answer.headers["connection"] == "close")
        #expect(answer.headers["transfer-encoding"] == nil && answer.body.utf8.count == count, "\(target)")
      }
    }
  }

  @Test(
    "streaming a body stores the same value as parsing the complete body, also with repeated names",
    arguments: [
      #"{"p":{"a":1,"a":null,".priority":5},"r":1}"#,
      #"{"p":{"a":1,"b":2,"a":null,".priority":5}}"#,
      #"{"p":{"q":{"a":1,"a":null,".priority":1},".priority":5},"r":1,".priority":7}"#,
      #"{"p":{"a":{".sv":{"increment":1}},"b":1,"b":null,".priority":5}}"#,
      #"{"p":{"b":1,"a":{".sv":{"increment":1}},"b":null,".priority":5}}"#,
      #"{"p":{"a":1,"a":null,".priority":{".sv":{"increment":2}}},"r":1}"#,
      #"{"p":{"a":1,"b":2,"a":null,".priority":{".sv":{"increment":2}}},"r":1}"#,
      #"{"p":{"a":1,"a":null},".priority":5}"#, #"{"a":1,"a":null}"#,
    ])
  func repeatedNames(text: String) async throws {
    try await RealtimeTestServer.run(limits: limits) { server in
      for (name, padding) in [("streamed", 5_000), ("whole", 0)] {
        #expect(try await server.rest("PUT", "/\(name)/x.json", body: #"{"old":1}"#).status == 200)
        #expect(try await server.rest("PUT", "/\(name)/.priority.json", body: "9").status == 200)
        let body = text + String(repeating: " ", count: padding)
        #expect(try await server.rest("PUT", "/\(name)/x.json", body: body).status == 200)
      }
      var expected = try await server.rest("GET", "/whole.json?format=export").body
      #expect(try await server.rest("GET", "/streamed.json?format=export").body == expected)
      // A priority that was wrongly stored at an empty location would appear once the location gets a value.
      for name in ["streamed", "whole"] {
        #expect(try await server.rest("PUT", "/\(name)/x/p/q/new.json", body: "1").status == 200)
      }
      expected = try await server.rest("GET", "/whole.json?format=export").body
      #expect(try await server.rest("GET", "/streamed.json?format=export").body == expected)
    }
  }

  @Test("a file uploaded by an HTML form is written like the body of a PUT")
  func form() async throws {
    try await RealtimeTestServer.run(limits: limits) { server in
      let type = "Content-Type: multipart/form-data; boundary=----f1"
      func form(_ text: String, end: String = "--\r\n") -> String {
        "------f1\r\nContent-Disposition: form-data; name=\"myFile\"; filename=\"a.json\"\r\n"
          + "Content-Type: application/json\r\n\r\n\(text)\r\n------f1\(end)"
      }
      let node = tree(200)
      for text in ["{\r\n\"x\":1}\r\n", text(node)] {
        for (path, read) in [("/u/", "/u.json"), ("/", "/.json")] {
          let answer = try await server.rest(
            "POST", "\(path).upload?ns=127&writeSizeLimit=unlimited", body: form(text), headers: [type])
          #expect(answer.status == 204 && answer.headers["access-control-allow-origin"] == "*")
          let stored = try await server.rest("GET", "\(read)?format=export").body
          let expected = try Node(json: Array(text.utf8))
          #expect(try Node(json: Array(stored.utf8)) == expected)
        }
      }
      let large = String(repeating: " ", count: 5_000) + "2"
      for body in [form("2", end: ""), form(large, end: "\r\n"), "2", large, form("{")] {
        #expect(try await server.rest("POST", "/.upload", body: body, headers: [type]).status == 400)
      }
      let plain = try await server.rest("POST", "/.upload", body: "2")
      #expect(plain.status == 400 && plain.body.contains("multipart/form-data"))
      #expect(try await server.rest("GET", "/k7/n.json").body == "7")
    }
  }

  @Test("parsing a form does not depend on the size of its chunks")
  func formInPieces() throws {
    let file = "\r\n-\r\n--b-\r\n{}\r\n--"
    let text = Array("--b0\r\nA: b\r\n\r\n\(file)\r\n--b0--\r\nmore".utf8)
    for size in 1...text.count {
      guard var form = FormFileReader(contentType: "multipart/form-data; boundary=\"b0\"") else {
        Issue.record("the content type was rejected")
        return
      }
      var rest = text[...]
      var taken: [UInt8] = []
      while !rest.isEmpty {
        taken += try form.read(Array(rest.prefix(size)))
        rest = rest.dropFirst(size)
      }
      try form.finish()
      #expect(taken == Array(file.utf8), "\(size)")
    }
  }

  @Test("a body above the write size limit is rejected unless the request has writeSizeLimit=unlimited")
  func limit() async throws {
    try await RealtimeTestServer.run(limits: limits) { server in
      let body = text(tree(1_500))
      let refused = try await server.rest("PUT", "/a.json", body: body)
      #expect(refused.status == 400 && refused.body.contains("Data to write exceeds the maximum size"))
      #expect(try await server.rest("GET", "/a.json").body == "null")
      let small = text(tree(600))
      #expect(try await server.rest("PUT", "/a.json?print=silent", body: small).status == 204)
      #expect(try await server.rest("PUT", "/a.json?print=silent", body: "5").status == 204)
      #expect(try await server.rest("GET", "/.json").body == #"{"a":5}"#)
    }
  }

  @Test(
    "a body that becomes invalid is rejected immediately with the error's position, and nothing is stored")
  func invalidBody() async throws {
    try await RealtimeTestServer.run(limits: limits) { server in
      _ = try await server.rest("PUT", "/a.json", body: "1")
      let body = "{\"ok\": \"" + String(repeating: "x", count: 5_000) + "\",\n \"b.d\": 1, \"more\": ["
      let answer = try await server.rest(
        "PUT", "/a.json", body: body + String(repeating: "1,", count: 40_000) + "1]}")
      #expect(answer.status == 400 && answer.body.contains("couldn't parse key beginning at 2:2."))
      #expect(try await server.rest("GET", "/.json").body == #"{"a":1}"#)
    }
  }

  @Test("an incomplete body leaves the existing value")
  func incompleteBody() async throws {
    try await RealtimeTestServer.run(limits: limits) { server in
      _ = try await server.rest("PUT", "/a.json", body: "1")
      let body = text(tree(500))
      let client = try await RawClient.connect(server.port.port)
      try await client.send(
        "PUT /a.json HTTP/1.1\r\nHost: \(server.host)\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body.dropLast(10))"
      )
      await client.close()
      #expect(try await server.rest("GET", "/.json").body == #"{"a":1}"#)
      #expect(try await server.rest("PUT", "/a.json?print=silent", body: body).status == 204)
      #expect(try await server.rest("GET", "/a/k499/n.json").body == "499")
    }
  }

  @Test(
    "during an import other clients write, and a pipelined request is answered after the import"
  )
  func concurrentWrites() async throws {
    try await RealtimeTestServer.run(limits: limits) { server in
      let body = text(tree(500))
      let client = try await RawClient.connect(server.port.port)
      let head =
        "PUT /a.json?print=silent HTTP/1.1\r\nHost: \(server.host)\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
      try await client.send(head + body.prefix(20_000))
      #expect(try await server.rest("PUT", "/b.json", body: "2").status == 200)
      #expect(try await server.rest("GET", "/a.json").body == "null")
      try await client.send(
        String(body.dropFirst(20_000))
          + "GET /a/k3/n.json HTTP/1.1\r\nHost: \(server.host)\r\nConnection: close\r\n\r\n")
      let answers = String(decoding: await client.readToEnd(), as: UTF8.self)
      #expect(answers.hasPrefix("HTTP/1.1 204 ") && answers.hasSuffix("\r\n\r\n3"))
    }
  }

  @Test("an export that its client does not read is aborted, and the database continues to serve reads")
  func unreadExport() async throws {
    var port = PortLimits()
    port.responseTimeout = .milliseconds(300)
    try await RealtimeTestServer.run(port: port) { server in
      let database = try await server.engine.database("127")
      let text = String(repeating: "x", count: 1 << 20)
      for index in 0..<24 {
        _ = try await database.set(Path("fat/\(index)"), to: .leaf(.string(text)), as: .nobody)
      }
      let client = try await RawClient.connect(server.port.port)
      try await client.channel.setOption(.autoRead, value: false).get()
      #expect(try await eventually { server.port.connectionCount == 1 })
      try await client.send("GET /.json?format=export HTTP/1.1\r\nHost: \(server.host)\r\n\r\n")
      #expect(try await eventually { server.port.connectionCount == 0 })
      try await client.channel.setOption(.autoRead, value: true).get()
      // The response ends without its last chunk, so the client sees that it is incomplete.
      #expect(!String(decoding: await client.readToEnd().suffix(5), as: UTF8.self).hasSuffix("0\r\n\r\n"))
      let after = try await server.rest("GET", "/fat/3.json")
      #expect(after.status == 200, "\(after.body.prefix(200))")
      #expect(after.body.utf8.count == (1 << 20) + 2)
    }
  }
}
