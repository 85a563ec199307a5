// Whole databases over REST: bodies that are written while they arrive, answers that are written while they are read.

import Endpoints
import NIOCore
import OrderedStore
import RealtimeEngine
import RealtimeModel
import Testing

@Suite("Imports and exports over REST", .timeLimit(.minutes(10)))
struct RESTStreamTests {
  /// Limits with which small bodies take the way of large ones.
  private var limits: RealtimeEndpointLimits {
    var limits = RealtimeEndpointLimits()
    limits.arrivingBodyBytes = 1_000
    limits.data.restWriteBytes = 250_000
    return limits
  }

  private func tree(_ count: Int) -> Node {
    let text = String(repeating: "xyz", count: 60)
    return .object(
      (0..<count).map { index -> (RealtimeModel.Key, Node) in
        let leaf = Node.leaf(.string("\(index)\(text)"), priority: index % 9 == 0 ? .number(2) : nil)
        let value = Node.object([("v", leaf), ("n", .leaf(.int(Int64(index))))])
        return (RealtimeModel.Key("k\(index)"), value)
      })
  }

  private func text(_ node: Node) -> String { String(decoding: node.json(.export), as: UTF8.self) }

  @Test("a whole database goes in and comes out, by length and in chunks", arguments: [false, true])
  func wholeDatabase(isChunked: Bool) async throws {
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

  @Test("what is larger than one write may be says that it is an import, or is refused")
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

  @Test("a body that turns out wrong is answered at once, with the place, and nothing of it stays")
  func wrong() async throws {
    try await RealtimeTestServer.run(limits: limits) { server in
      _ = try await server.rest("PUT", "/a.json", body: "1")
      let body = "{\"ok\": \"" + String(repeating: "x", count: 5_000) + "\",\n \"b.d\": 1, \"more\": ["
      let answer = try await server.rest(
        "PUT", "/a.json", body: body + String(repeating: "1,", count: 40_000) + "1]}")
      #expect(answer.status == 400 && answer.body.contains("couldn't parse key beginning at 2:2."))
      #expect(try await server.rest("GET", "/.json").body == #"{"a":1}"#)
    }
  }

  @Test("a body that breaks off leaves what was there")
  func brokenOff() async throws {
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

  @Test("listeners are told an import, others write meanwhile, requests behind it are answered after it")
  func beside() async throws {
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

  @Test("who does not read an export is given up, and the state it held is released")
  func unread() async throws {
    var port = PortLimits()
    port.answerTimeout = .milliseconds(300)
    try await RealtimeTestServer.run(port: port) { server in
      let database = try await server.engine.database("127")
      let text = String(repeating: "x", count: 1 << 20)
      for index in 0..<24 {
        _ = try await database.set(Path("fat/\(index)"), to: .leaf(.string(text)), as: .anonymous)
      }
      let client = try await RawClient.connect(server.port.port)
      try await client.channel.setOption(.autoRead, value: false).get()
      #expect(try await eventually { server.port.connectionCount == 1 })
      try await client.send("GET /.json?format=export HTTP/1.1\r\nHost: \(server.host)\r\n\r\n")
      #expect(try await eventually { server.port.connectionCount == 0 })
      try await client.channel.setOption(.autoRead, value: true).get()
      // It ends, and not with the end of the answer.
      #expect(!String(decoding: await client.readToEnd().suffix(5), as: UTF8.self).hasSuffix("0\r\n\r\n"))
      let after = try await server.rest("GET", "/fat/3.json")
      #expect(after.status == 200, "\(after.body.prefix(200))")
      #expect(after.body.utf8.count == (1 << 20) + 2)
    }
  }
}
