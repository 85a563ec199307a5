// Tests slow and oversized requests over HTTP/1.1. The client gets Firebase's error and its connection
// closes. Other clients are not affected.

import Access
import NIOCore
import OrderedStore
import RealtimeEngine
import RealtimeModel
import Testing

@testable import EndpointFixture
@testable import Ports
@testable import RealtimeEndpoints

@Suite("Limits of REST over HTTP/1.1", .timeLimit(.minutes(10)))
struct RESTLimitTests {
  private let tooBig = "Data to write exceeds the maximum size that can be modified with a single request."

  @Test("a body that stalls, or arrives byte by byte, gets 408")
  func slowBody() async throws {
    var port = PortLimits()
    port.requestBodyTimeout = .seconds(1)
    port.requestBodyRate = 1 << 20
    try await RealtimeTestServer.run(port: port) { server in
      let silent = try await RawClient.connect(server.port.port)
      try await silent.send("PUT /a.json HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n\"begun")
      let dripping = try await RawClient.connect(server.port.port)
      try await dripping.send("PUT /b.json HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
      let channel = dripping.channel
      let drops = Task {
        // Sends single bytes, far below the minimum rate.
        while !Task.isCancelled, (try? await channel.writeAndFlush(ByteBuffer(string: "1\r\nx\r\n"))) != nil {
          try? await Task.sleep(for: .milliseconds(20))
        }
      }
      #expect(try await server.rest("PUT", "/c.json", body: "1").status == 200)
      for client in [silent, dripping] {
        let answer = try RESTAnswer(String(decoding: await client.readToEnd(), as: UTF8.self))
        #expect(answer.status == 408 && answer.headers["connection"] == "close")
        #expect(answer.body == "{\n  \"error\" : \"The request did not arrive completely in time.\"\n}\n")
      }
      drops.cancel()
      #expect(try await server.rest("GET", "/a.json").body == "null")
    }
  }

  @Test("a body that arrives at the minimum rate may take longer than the deadline")
  func slowSteadyBody() async throws {
    var port = PortLimits()
    port.requestBodyTimeout = .milliseconds(200)
    port.requestBodyRate = 1000
    try await RealtimeTestServer.run(port: port) { server in
      let client = try await RawClient.connect(server.port.port)
      let text = String(repeating: "x", count: 60_000)
      try await client.send(
        "PUT /a.json HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: \(text.utf8.count + 2)\r\n\r\n\"\(text)"
      )
      // Waits until three other clients have timed out, which takes three times the deadline. At the minimum
      // rate of 1,000 B/s, a body of 60,000 bytes is allowed 60 s.
      for _ in 0..<3 {
        let silent = try await RawClient.connect(server.port.port)
        try await silent.send("PUT /b.json HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n\"")
        #expect(String(decoding: await silent.readToEnd(), as: UTF8.self).hasPrefix("HTTP/1.1 408 "))
      }
      try await client.send("\"")
      #expect(String(decoding: await client.readToEnd(), as: UTF8.self).hasPrefix("HTTP/1.1 200 "))
    }
  }

  @Test("a request with an incomplete head ends its connection, with 408 if it is the first request")
  func slowHead() async throws {
    var port = PortLimits()
    port.requestHeadTimeout = .seconds(2)
    try await RealtimeTestServer.run(port: port) { server in
      let first = try await RawClient.connect(server.port.port)
      try await first.send("GET /a.json HTTP/1.1\r\nHost: h\r\nX-A: ")
      let second = try await RawClient.connect(server.port.port)
      try await second.send("GET /a.json HTTP/1.1\r\nHost: h\r\n\r\nGET /a.json HTTP/1.1\r\nX-A: ")
      #expect(String(decoding: await first.readToEnd(), as: UTF8.self).hasPrefix("HTTP/1.1 408 "))
      #expect(String(decoding: await second.readToEnd(), as: UTF8.self).hasPrefix("HTTP/1.1 200 "))
    }
  }

  @Test("an oversized Content-Length is rejected before the body is sent")
  func oversizedContentLength() async throws {
    try await RealtimeTestServer.run { server in
      let client = try await RawClient.connect(server.port.port)
      try await client.send(
        "PUT /a.json HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 999999999999\r\n\r\n")
      let answer = try RESTAnswer(String(decoding: await client.readToEnd(), as: UTF8.self))
      #expect(answer.status == 400 && answer.body.contains(tooBig))
    }
  }

  @Test("a client receives the error for an oversized body while it is still sending")
  func oversizedBody() async throws {
    var limits = RealtimeEndpointLimits()
    limits.data.restWriteBytes = 100_000
    try await RealtimeTestServer.run(limits: limits) { server in
      let client = try await RawClient.connect(server.port.port)
      try await client.send("PUT /a.json HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
      let chunk = "4000\r\n" + String(repeating: "x", count: 0x4000) + "\r\n"
      let channel = client.channel
      let sending = Task {
        for _ in 0..<500 {
          guard (try? await channel.writeAndFlush(ByteBuffer(string: chunk))) != nil else { return }
        }
      }
      let answer = try RESTAnswer(String(decoding: await client.readToEnd(), as: UTF8.self))
      #expect(answer.status == 400 && answer.body.contains(tooBig))
      await sending.value
      #expect(try await server.rest("PUT", "/a.json", body: "1").status == 200)
    }
  }

  @Test("the limit on response size also applies to shallow reads")
  func shallow() async throws {
    var limits = RealtimeLimits()
    limits.responseBytes = 10_000
    let store = try MemoryStore()
    let engine = RealtimeEngine(store: store, policy: OpenPolicy(), limits: limits, cacheBytes: 0)
    let database = try await engine.database("demo")
    let name = String(repeating: "n", count: 100)
    for index in 0..<90 {
      let child = Node.object([(RealtimeModel.ChildKey(name), .leaf(.int(1)))])
      _ = try await database.set(Path("l/\(name)\(index)"), to: child, as: .nobody)
    }
    guard case .children(let keys) = try await database.getShallow("l", as: .nobody) else {
      Issue.record("no children")
      return
    }
    #expect(keys.count == 90)
    for index in 0..<10 {
      _ = try await database.set(Path("l/\(name)x\(index)"), to: .leaf(.int(1)), as: .nobody)
    }
    await #expect(throws: RealtimeError.tooBig) { _ = try await database.getShallow("l", as: .nobody) }
    await engine.shutdown()
    try await store.close()
  }

  @Test("the bytes of request bodies that a connection buffers are limited")
  func budget() async throws {
    var limits = RealtimeEndpointLimits()
    limits.connectionBodyBytes = 50_000
    try await RealtimeTestServer.run(limits: limits) { server in
      let text = "\"" + String(repeating: "x", count: 60_000) + "\""
      let answer = try await server.rest("PUT", "/a.json", body: text)
      #expect(answer.status == 503 && answer.body.contains("exceed the limit of 50000 bytes"))
      let client = try await RawClient.connect(server.port.port)
      // Bodies that are sent one after the other each have the complete budget.
      let small = "\"" + String(repeating: "x", count: 30_000) + "\""
      for _ in 0..<10 {
        try await client.send(
          "PUT /a.json?print=silent HTTP/1.1\r\nHost: h\r\nContent-Length: \(small.utf8.count)\r\n\r\n\(small)"
        )
        #expect(try await client.read(through: "\r\n\r\n").hasPrefix("HTTP/1.1 204 "))
      }
      await client.close()
    }
  }
}
