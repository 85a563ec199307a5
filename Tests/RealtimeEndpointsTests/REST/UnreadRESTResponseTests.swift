// Tests clients that do not read their responses, and clients that half-close before they are answered.

import Access
import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import RealtimeEngine
import RealtimeModel
import Testing

@testable import EndpointFixture
@testable import Ports
@testable import RealtimeEndpoints

/// Counts reads of a large value.
private final class CountingPolicy: AccessPolicy {
  typealias Product = RealtimeAccess
  let reads = NIOLockedValueBox(0)

  func decide(
    _ caller: Principal, _ operation: RealtimeAccess.Operation, view: any TreeView
  ) -> RealtimeDecision {
    if case .read("fat", _) = operation { reads.withLockedValue { $0 += 1 } }
    return .allowed
  }
}

@Suite("Unread REST responses", .timeLimit(.minutes(10)))
struct UnreadRESTResponseTests {
  private func fill(_ server: RealtimeTestServer, _ bytes: Int) async throws {
    let database = try await server.engine.database("default-ns")
    // Writes several strings, since each is limited to ten megabytes.
    let piece = min(bytes, 8 << 20)
    let text = String(repeating: "x", count: piece)
    guard bytes > piece else {
      _ = try await database.set("fat", to: .leaf(.string(text)), as: .nobody)
      return
    }
    for path in ["fat/0", "fat/1", "fat/2", "fat/3"] as [Path] {
      _ = try await database.set(path, to: .leaf(.string(text)), as: .nobody)
    }
  }

  @Test("a pipelined request waits until the previous response is flushed, and all are answered in the end")
  func pipelined() async throws {
    let policy = CountingPolicy()
    try await RealtimeTestServer.run(policy: policy) { server in
      try await fill(server, 4 << 20)
      let count = 24
      let client = try await RawClient.connect(server.port.port)
      try await client.channel.setOption(.autoRead, value: false).get()
      let get = "GET /fat.json HTTP/1.1\r\nHost: h\r\n"
      try await client.send(
        String(repeating: get + "\r\n", count: count - 1) + get + "Connection: close\r\n\r\n")
      // The kernel's buffers hold some megabytes of responses. After that the server stops reading values.
      #expect(try await eventually { policy.reads.withLockedValue { $0 } > 0 })
      let other = try await RawClient.connect(server.port.port)
      let last = try await standstill(of: { policy.reads.withLockedValue { $0 } }) {
        try await other.send("GET /small.json HTTP/1.1\r\nHost: h\r\n\r\n")
        _ = try await other.read(through: "\r\n\r\nnull")
      }
      await other.close()
      try await client.channel.setOption(.autoRead, value: true).get()
      client.channel.read()
      let bytes = await client.readToEnd().count
      #expect(bytes > count * (4 << 20) && bytes < count * ((4 << 20) + 1000), "\(bytes)")
      // The server may call the policy more than once for a response.
      let all = policy.reads.withLockedValue { $0 }
      #expect(last * 3 < all * 2, "\(last) of \(all) were read for a client that does not read")
    }
  }

  @Test("a client that reads nothing of its response is disconnected, and other clients are served")
  func deadline() async throws {
    var port = PortLimits()
    port.responseTimeout = .milliseconds(500)
    try await RealtimeTestServer.run(port: port) { server in
      try await fill(server, 32 << 20)
      let other = try await RawClient.connect(server.port.port)
      let client = try await RawClient.connect(server.port.port)
      try await client.channel.setOption(.autoRead, value: false).get()
      #expect(try await eventually { server.port.connectionCount == 2 })
      try await client.send("GET /fat.json HTTP/1.1\r\nHost: h\r\n\r\n")
      #expect(try await eventually { server.port.connectionCount == 1 })
      try await other.send("PUT /a.json HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n1")
      #expect(try await other.read(through: "\r\n\r\n").hasPrefix("HTTP/1.1 200 "))
      // The port still accepts connections.
      #expect(try await server.rest("GET", "/a.json?ns=default-ns").body == "1")
      await client.close()
      await other.close()
    }
  }

  @Test(
    "over HTTP/2, a connection with too many unread bytes gets errors for new requests until its client reads"
  )
  func budgetOfHTTP2() async throws {
    var limits = RealtimeEndpointLimits()
    limits.connectionResponseBytes = 1 << 20
    try await RealtimeTestServer.run(limits: limits) { server in
      try await fill(server, 2 << 20)
      let client = try await HTTP2Client.open(server.port.port)
      // Turns off reading before the request ends, so that the unread response exhausts the window of its
      // stream.
      let first = try await client.request(.GET, "/fat.json", end: false)
      try await first.stream.setOption(.autoRead, value: false).get()
      try await first.send("", end: true)
      var refused = ("", "")
      #expect(
        try await eventually {
          refused = try await client.request(.GET, "/small.json").response()
          return refused.0 == "503"
        })
      #expect(refused.1.contains("wait to be read on this connection exceed the limit of 1048576 bytes"))
      try await first.stream.setOption(.autoRead, value: true).get()
      first.stream.read()
      let answer = try await first.response()
      #expect(answer.status == "200" && answer.body.utf8.count == (2 << 20) + 2)
      #expect(try await client.request(.GET, "/small.json").response().status == "200")
      await client.close()
    }
  }

  @Test("over HTTP/2 an unread stream is reset, and its connection continues")
  func deadlineOfHTTP2() async throws {
    var limits = RealtimeEndpointLimits()
    limits.connectionResponseBytes = 1 << 20
    var port = PortLimits()
    port.responseTimeout = .seconds(3)
    try await RealtimeTestServer.run(limits: limits, port: port) { server in
      try await fill(server, 2 << 20)
      let client = try await HTTP2Client.open(server.port.port)
      let first = try await client.request(.GET, "/fat.json", end: false)
      try await first.stream.setOption(.autoRead, value: false).get()
      try await first.send("", end: true)
      // Requests fail while unread bytes exceed the budget. After the deadline the server resets the unread
      // stream, and they succeed.
      for expected in ["503", "200"] {
        #expect(
          try await eventually { try await client.request(.GET, "/small.json").response().status == expected }
        )
      }
      await client.close()
    }
  }

  @Test(
    "after a half-close all requests are answered, and then the connection closes", arguments: [1, 2, 20])
  func halfClosed(count: Int) async throws {
    try await RealtimeTestServer.run { server in
      let client = try await RawClient.connect(server.port.port)
      let put = "PUT /a.json HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n7"
      try await client.send(String(repeating: put, count: count))
      try await client.channel.close(mode: .output).get()
      let text = String(decoding: await client.readToEnd(), as: UTF8.self)
      #expect(text.occurrences(of: "HTTP/1.1 200 ") == count, "\(text)")
      #expect(try await eventually { server.port.connectionCount == 0 })
    }
  }

  @Test(
    "a client that half-closes is disconnected if it has no request, an incomplete request, or an open stream",
    arguments: [
      ("", nil), ("GET /a.json HTTP/1.1\r\nHo", nil),
      ("PUT /a.json HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n7", nil),
      ("GET /a.json HTTP/1.1\r\nHost: h\r\nAccept: text/event-stream\r\n\r\n", "event: put"),
      (
        "GET /.ws?v=5&ns=demo HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
          + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
        #""t":"h""#
      ),
    ] as [(String, String?)], [false, true])
  func halfClosedWithoutRequests(_ exchange: (request: String, beginning: String?), later: Bool) async throws
  {
    try await RealtimeTestServer.run { server in
      let client = try await RawClient.connect(server.port.port)
      try await client.send("GET /b.json HTTP/1.1\r\nHost: h\r\n\r\n")
      #expect(try await client.read(through: "\r\n\r\nnull").hasPrefix("HTTP/1.1 200 "))
      if !exchange.request.isEmpty { try await client.send(exchange.request) }
      // Half-closes either immediately, or after the response has begun and another client was answered.
      if later {
        if let beginning = exchange.beginning { _ = try await client.read(through: beginning) }
        #expect(try await server.rest("GET", "/a.json?ns=default-ns").body == "null")
      }
      try await client.channel.close(mode: .output).get()
      _ = await client.readToEnd()
      #expect(try await eventually { server.port.connectionCount == 0 })
      #expect(try await server.rest("GET", "/a.json?ns=default-ns").body == "null")
    }
  }
}

extension String {
  /// The number of occurrences of another string.
  fileprivate func occurrences(of text: String) -> Int {
    split(separator: text, omittingEmptySubsequences: false).count - 1
  }
}
