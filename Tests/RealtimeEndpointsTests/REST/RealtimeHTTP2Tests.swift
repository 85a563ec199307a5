// Tests the Realtime Database's REST interface over HTTP/2: many streams on one connection, and slow clients.

import Access
import NIOCore
import NIOHTTP1
import RealtimeEngine
import RealtimeModel
import Testing

@testable import EndpointFixture
@testable import Ports
@testable import RealtimeEndpoints

@Suite("Realtime Database over HTTP/2", .timeLimit(.minutes(10)))
struct RealtimeHTTP2Tests {
  @Test("many requests and event streams share a connection")
  func requests() async throws {
    try await RealtimeTestServer.run { server in
      let client = try await HTTP2Client.open(server.port.port)
      let events = try await client.request(.GET, "/a.json", headers: ["accept": "text/event-stream"])
      #expect(try await events.next() == "200")
      #expect(try await events.next() == "event: put\ndata: {\"path\":\"/\",\"data\":null}\n\n")
      for index in 0..<5 {
        let written = try await client.request(.PUT, "/a.json", body: "\(index)").response()
        #expect(written.status == "200" && written.body == "\(index)")
        #expect(try await events.next() == "event: put\ndata: {\"path\":\"/\",\"data\":\(index)}\n\n")
      }
      #expect(try await client.request(.GET, "/.ws?v=5").next() == "400")
      await client.close()
    }
  }

  @Test(
    "the request bodies of a connection share a budget; a request beyond it is rejected, all others are served"
  )
  func bodyBudget() async throws {
    var limits = RealtimeEndpointLimits()
    limits.connectionBodyBytes = 100_000
    try await RealtimeTestServer.run(limits: limits) { server in
      let client = try await HTTP2Client.open(server.port.port)
      let text = String(repeating: "x", count: 30_000)
      var waiting: [HTTP2Client.Exchange] = []
      for index in 0..<3 {
        waiting.append(try await client.request(.PUT, "/\(index).json", body: "\"\(text)", end: false))
      }
      let refused = try await client.request(.PUT, "/3.json", body: "\"\(text)", end: false).response()
      #expect(refused.status == "503")
      #expect(refused.body.contains("on this connection exceed the limit of 100000 bytes"), "\(refused.body)")
      // Another connection has a separate budget.
      let other = try await HTTP2Client.open(server.port.port)
      #expect(try await other.request(.PUT, "/4.json", body: "\"\(text)\"").response().status == "200")
      for exchange in waiting {
        try await exchange.send("\"", end: true)
        #expect(try await exchange.response().status == "200")
      }
      // Answered requests release their share.
      #expect(try await client.request(.PUT, "/3.json", body: "\"\(text)\"").response().status == "200")
      #expect(try await server.rest("GET", "/3.json?ns=default-ns").body.count == 30_002)
      await client.close()
      await other.close()
    }
  }

  @Test("a request whose body stalls gets an error after the deadline, and blocks no other stream")
  func slowBody() async throws {
    var port = PortLimits()
    port.requestBodyTimeout = .seconds(3)
    try await RealtimeTestServer.run(port: port) { server in
      let client = try await HTTP2Client.open(server.port.port)
      let slow = try await client.request(.PUT, "/slow.json", body: "\"begun", end: false)
      let silent = try await client.request(.PUT, "/silent.json", end: false)
      #expect(try await client.request(.PUT, "/a.json", body: "1").response().status == "200")
      for exchange in [slow, silent] {
        let answer = try await exchange.response()
        #expect(answer.status == "408")
        #expect(answer.body.contains("did not arrive completely in time"), "\(answer.body)")
      }
      #expect(try await client.request(.GET, "/slow.json").response().body == "null")
      await client.close()
    }
  }

  @Test("an event stream whose client stops reading is reset, and no other stream waits for it")
  func slowReader() async throws {
    var limits = RealtimeEndpointLimits()
    limits.data.queuedOutputBytes = 1_000_000
    try await RealtimeTestServer.run(limits: limits) { server in
      let client = try await HTTP2Client.open(server.port.port)
      let accept: HTTPHeaders = ["accept": "text/event-stream"]
      let slow = try await client.request(.GET, "/a.json", headers: accept)
      #expect(try await slow.next() == "200")
      _ = try await slow.next()
      try await slow.stream.setOption(.autoRead, value: false).get()
      let quick = try await client.request(.GET, "/a.json", headers: accept)
      #expect(try await quick.next() == "200")
      _ = try await quick.next()
      let database = try await server.engine.database("default-ns")
      let text = String(repeating: "x", count: 50_000)
      for index in 0..<100 {
        _ = try await database.set(
          Path("a/\(index)"), to: .leaf(.string("\(index)\(text)")), as: .nobody)
        var event = ""
        while !event.hasSuffix("\n\n") { event += try await quick.next() }
        #expect(event.hasPrefix("event: put\ndata: {\"path\":\"/\(index)\",\"data\":\"\(index)x"))
      }
      // The slow client reads the bytes up to the reset: at most its flow-control windows and its budget.
      try await slow.stream.setOption(.autoRead, value: true).get()
      slow.stream.read()
      var bytes = 0
      while case let part = try await slow.next(), part != "reset", part != "end" { bytes += part.utf8.count }
      #expect(bytes < 3_000_000, "\(bytes)")
      await client.close()
    }
  }

  @Test("draining the port ends event streams at once")
  func draining() async throws {
    try await RealtimeTestServer.run { server in
      let client = try await HTTP2Client.open(server.port.port)
      let events = try await client.request(.GET, "/a.json", headers: ["accept": "text/event-stream"])
      #expect(try await events.next() == "200")
      _ = try await events.next()
      let started = ContinuousClock.now
      async let drained: Void = server.port.drain(grace: .seconds(50))
      #expect(try await events.next() == "end")
      await drained
      #expect(ContinuousClock.now - started < .seconds(40))
    }
  }
}
