// Tests event streams: REST reads that stay open and send every change as a server-sent event.

import NIOCore
import RealtimeEngine
import RealtimeModel
import Testing

@testable import EndpointFixture
@testable import Ports
@testable import RealtimeEndpoints

@Suite("Event streams of the Realtime Database", .timeLimit(.minutes(10)))
struct EventStreamTests {
  /// An open stream.
  private struct Stream {
    let client: RawClient
    let head: String

    static func open(_ server: RealtimeTestServer, _ target: String) async throws -> Stream {
      let client = try await RawClient.connect(server.port.port)
      try await client.send(
        "GET \(target) HTTP/1.1\r\nHost: \(server.host)\r\nAccept: text/event-stream\r\n\r\n")
      return Stream(client: client, head: try await client.read(through: "\r\n\r\n"))
    }

    /// Reads the next event and removes the chunked transfer encoding.
    func next() async throws -> String {
      let size = try await client.read(through: "\r\n")
      // Swift treats CR LF as one character, so dropping the last character removes both.
      let count = try #require(Int(size.dropLast(), radix: 16))
      let event = String(decoding: try await client.read(count), as: UTF8.self)
      _ = try await client.read(2)
      return event
    }
  }

  private func put(_ path: String, _ data: String) -> String {
    "event: put\ndata: {\"path\":\"\(path)\",\"data\":\(data)}\n\n"
  }

  @Test("a stream starts with the complete value, followed by every change with its relative path")
  func events() async throws {
    try await RealtimeTestServer.run { server in
      #expect(try await server.rest("PUT", "/a/b.json", body: #"{"x":[1,2]}"#).status == 200)
      let stream = try await Stream.open(server, "/a/b.json")
      #expect(stream.head.hasPrefix("HTTP/1.1 200 "))
      #expect(stream.head.lowercased().contains("content-type: text/event-stream; charset=utf-8\r\n"))
      #expect(try await stream.next() == put("/", #"{"x":[1,2]}"#))
      _ = try await server.rest("PUT", "/a/b/y/z.json", body: #""line\nfeed""#)
      #expect(try await stream.next() == put("/y/z", #""line\nfeed""#))
      _ = try await server.rest("PATCH", "/a/b.json", body: #"{"x":null,"w/v":1}"#)
      let patch = try await stream.next()
      #expect(
        patch.hasPrefix("event: patch\ndata: {\"path\":\"/\",\"data\":{") && patch.contains("\"w/v\":1"),
        "\(patch)")
      _ = try await server.rest("DELETE", "/a.json")
      #expect(try await stream.next() == put("/", "null"))
      await stream.client.close()
    }
  }

  @Test("the stream of a priority shows the priority and its changes")
  func priority() async throws {
    try await RealtimeTestServer.run { server in
      _ = try await server.rest("PUT", "/p.json", body: #"{".priority":5,"a":1}"#)
      let stream = try await Stream.open(server, "/p/.priority.json")
      #expect(try await stream.next() == put("/", "5"))
      _ = try await server.rest("PUT", "/p/a.json", body: "2")
      _ = try await server.rest("PUT", "/p/.priority.json", body: "6")
      #expect(try await stream.next() == put("/", "6"))
      _ = try await server.rest("PUT", "/p.json", body: #"{".priority":"x","a":1}"#)
      #expect(try await stream.next() == put("/", #""x""#))
      _ = try await server.rest("DELETE", "/p.json")
      #expect(try await stream.next() == put("/", "null"))
      let none = try await Stream.open(server, "/none/.priority.json")
      #expect(try await none.next() == put("/", "null"))
    }
  }

  @Test("the stream of an empty location starts with null")
  func empty() async throws {
    try await RealtimeTestServer.run { server in
      let stream = try await Stream.open(server, "/nothing.json")
      #expect(try await stream.next() == put("/", "null"))
    }
  }

  @Test("the stream of a query receives changes of the query's result")
  func query() async throws {
    try await RealtimeTestServer.run { server in
      _ = try await server.rest("PUT", "/log.json", body: #"{"k1":1,"k2":2,"k3":3}"#)
      let stream = try await Stream.open(server, "/log.json?orderBy=%22$key%22&limitToLast=2")
      #expect(try await stream.next() == put("/", #"{"k2":2,"k3":3}"#))
      _ = try await server.rest("PUT", "/log/k4.json", body: "4")
      #expect(
        try await stream.next() == "event: patch\ndata: {\"path\":\"/\",\"data\":{\"k2\":null,\"k4\":4}}\n\n")
      _ = try await server.rest("PUT", "/log/k1.json", body: "9")
      _ = try await server.rest("PUT", "/log/k3.json", body: "8")
      #expect(try await stream.next() == put("/k3", "8"))
    }
  }

  @Test("streams with different formats on the same location receive each change in their own format")
  func formats() async throws {
    try await RealtimeTestServer.run { server in
      let plain = try await Stream.open(server, "/a.json")
      let export = try await Stream.open(server, "/a.json?format=export")
      let parent = try await Stream.open(server, "/.json")
      for stream in [plain, export, parent] { #expect(try await stream.next() == put("/", "null")) }
      _ = try await server.rest("PUT", "/a.json", body: #"{".value":1,".priority":2}"#)
      #expect(try await plain.next() == put("/", "1"))
      #expect(try await export.next() == put("/", #"{".value":1,".priority":2}"#))
      #expect(try await parent.next() == put("/a", "1"))
      _ = try await server.rest("PUT", "/a/.priority.json", body: "3")
      #expect(try await export.next() == put("/.priority", "3"))
      _ = try await server.rest("PUT", "/a.json", body: "5")
      #expect(try await plain.next() == put("/", "5"))
    }
  }

  @Test("an idle stream sends keep-alive events")
  func keepAlive() async throws {
    var limits = RealtimeEndpointLimits()
    limits.eventStreamKeepAlive = .milliseconds(30)
    try await RealtimeTestServer.run(limits: limits) { server in
      let stream = try await Stream.open(server, "/a.json")
      #expect(try await stream.next() == put("/", "null"))
      for _ in 0..<3 { #expect(try await stream.next() == "event: keep-alive\ndata: null\n\n") }
    }
  }

  @Test("a stream's listen ends when its client disconnects, and draining the port ends streams")
  func ends() async throws {
    try await RealtimeTestServer.run { server in
      let disconnecting = try await Stream.open(server, "/a.json")
      let stream = try await Stream.open(server, "/a.json")
      _ = try await stream.next()
      await disconnecting.client.close()
      _ = try await server.rest("PUT", "/a.json", body: "1")
      #expect(try await stream.next() == put("/", "1"))
      async let drained: Void = server.port.drain(grace: .seconds(5))
      _ = await stream.client.readToEnd()
      await drained
      #expect(server.port.connectionCount == 0)
    }
  }
}
