// Tests of the lifetime of WebChannel sessions over sockets: their begin, end and limits, and the response
// headers.
//
// A session starts with a handshake request. Its back channel is a long response on which the server sends
// numbered arrays (its messages) and noops (arrays that keep the response alive).

import Foundation
import JSON
import NIOCore
import NIOHTTP1
import OrderedStore
import RealtimeModel
import Testing

@testable import EndpointFixture
@testable import FirestoreEndpoints
@testable import Ports

@Suite("WebChannel session lifetime", .timeLimit(.minutes(10)))
struct WebChannelSessionLifeTests {
  private typealias Client = WebChannelTestClient

  private func withPort(
    _ change: (inout WebChannelLimits) -> Void = { _ in }, _ body: (FirestoreTestPort) async throws -> Void
  ) async throws {
    var limits = WebChannelLimits()
    change(&limits)
    try await FirestoreTestPort.with(store: try MemoryStore(), webChannel: limits, body)
  }

  private func openSession(_ server: FirestoreTestPort) async throws -> WebChannelTestClient {
    try await Client.handshake(server.port.port, "Listen", [Client.listen(to: "a/b", 2)]).client
  }

  @Test("A request for an unknown session gets status 400 and \"Unknown SID\"")
  func unknownSession() async throws {
    try await withPort { server in
      var client = Client(port: server.port.port)
      client.sid = "nobody"
      for reply in [try await client.post([], from: 0), try await client.open(after: 0).complete()] {
        #expect(reply.status == 400)
        let range = try #require(reply.text.range(of: "Unknown SID"))
        #expect(range.lowerBound > reply.text.startIndex, "clients ignore the text at index 0")
      }
      // A session of the Listen stream is unknown to the Write stream.
      var other = try await openSession(server)
      other.stream = "Write"
      #expect(try await other.post([], from: 1).status == 400)
    }
  }

  @Test("A terminate request ends the session, and may be repeated", arguments: ["POST", "GET"])
  func terminate(_ method: String) async throws {
    try await withPort { server in
      let client = try await openSession(server)
      let back = try await client.open(after: 0)
      _ = try await back.arrays(until: "CURRENT")
      let query = "VER=8&SID=\(client.sid)&RID=102&TYPE=terminate"
      for _ in 0..<2 {
        let reply = try await BackChannel(try await client.request(method, query)).complete()
        #expect(reply.status == 200)
        #expect(reply.text.isEmpty)
      }
      while try await back.next() != nil {}
      #expect(try await client.post([], from: 1).status == 400)
      await back.close()
    }
  }

  @Test("Malformed requests are rejected and do not affect the session")
  func malformedRequests() async throws {
    try await withPort { server in
      let client = try await openSession(server)
      #expect(try await client.post("VER=9&RID=1", "count=0").status == 400)
      #expect(try await client.post("VER=8&RID=1", "count=zz").status == 400)
      #expect(try await client.post("VER=8&SID=\(client.sid)&RID=1&AID=99", "count=0").status == 400)
      #expect(try await BackChannel(try await client.request("PUT", "VER=8&RID=1")).complete().status == 405)
      // The session is still usable.
      #expect(try await client.post([], from: 1).status == 200)
    }
  }

  @Test("Responses have the CORS, caching and session headers that browsers need")
  func browserHeaders() async throws {
    try await withPort { server in
      let (client, reply) = try await Client.handshake(
        server.port.port, "Listen", [], query: "&X-HTTP-Session-Id=gsessionid")
      #expect(reply.headers["access-control-allow-origin"] == "http://localhost:5000")
      #expect(reply.headers["access-control-allow-credentials"] == "true")
      #expect(
        reply.headers["access-control-expose-headers"]
          == "x-client-wire-protocol, x-http-session-id, x-http-initial-response")
      #expect(reply.headers["x-content-type-options"] == "nosniff")
      #expect(reply.headers["cache-control"] == "private, max-age=0")
      let session = try #require(reply.headers["x-http-session-id"])
      let query = "VER=8&SID=\(client.sid)&RID=101"
      #expect(try await client.post("gsessionid=\(session)&" + query, "count=0").status == 200)
      #expect(try await client.post(query, "count=0").status == 200)
      let plain = try await Client.handshake(server.port.port, "Listen", []).reply
      #expect(plain.headers["x-http-session-id"] == nil)
      let back = try await client.open(after: 0)
      #expect(try await back.start().headers["access-control-expose-headers"] != nil)
      await back.close()
      var unknown = client
      unknown.sid = "nobody"
      #expect(try await unknown.post([], from: 0).headers["access-control-allow-origin"] != nil)
    }
  }

  @Test("A session works over HTTP/2, and a stream reset disconnects the back channel")
  func overHTTP2() async throws {
    try await withPort { server in
      let client = try await HTTP2Client.open(server.port.port)
      let path = "/google.firestore.v1.Firestore/Listen/channel"
      let exchange = try await client.request(
        .POST, path + "?VER=8&RID=1&CVER=22", body: Client.body([Client.listen(to: "a/b", 2)], from: 0))
      let (status, body) = try await exchange.response()
      #expect(status == "200")
      let sid = ReceivedArray.all(ByteBuffer(string: body)).first?.payload.array?[1].string ?? ""
      let back = try await client.request(.GET, path + "?VER=8&RID=rpc&SID=\(sid)&AID=0&CI=0")
      #expect(try await back.next() == "200")
      var text = ""
      while !text.contains("CURRENT") { text += try await back.next() }
      // A reset of the HTTP/2 stream disconnects the back channel.
      back.stream.close(promise: nil)
      let again = try await client.request(.GET, path + "?VER=8&RID=rpc&SID=\(sid)&AID=0&CI=0")
      #expect(try await again.next() == "200")
      var replayed = ""
      while !replayed.contains("CURRENT") { replayed += try await again.next() }
      await client.close()
    }
  }

  @Test("The request with which old clients test for buffering proxies gets its response in two parts")
  func proxyTest() async throws {
    try await withPort({ $0.proxyTestPause = .milliseconds(50) }) { server in
      let client = Client(port: server.port.port, stream: "Listen")
      func test(_ query: String) async throws -> ChannelReply {
        let connection = try await RawConnection.connect(port: client.port)
        try await connection.send(
          "GET /google.firestore.v1.Firestore/Listen/channel/test?\(query) HTTP/1.1\r\nHost: x\r\n\r\n")
        return try await BackChannel(connection).complete()
      }
      let prefixes = try JSONValue(json: try await test("VER=8&MODE=init").text)
      #expect(prefixes.array?.count == 2)
      #expect(try await test("VER=8&TYPE=xmlhttp").text == "111112")
      #expect(try await test("VER=8").status == 400)
    }
  }

  @Test("A back channel sends noops until its lifetime ends")
  func keepAliveAndLifetime() async throws {
    try await withPort({
      $0.keepAlive = .milliseconds(200)
      $0.maximumBackChannelLifetime = .seconds(4)
    }) { server in
      let client = try await Client.handshake(server.port.port, "Listen", []).client
      let back = try await client.open(after: 0)
      var arrays: [ReceivedArray] = []
      while let array = try await back.next() { arrays.append(array) }
      #expect(arrays.count >= 3)
      #expect(arrays.allSatisfy { $0.payload == .array([.string("noop")]) })
      #expect(arrays.map(\.id) == Array(1...arrays.count))
      await back.close()
    }
  }

  @Test("Over HTTP/1.1 a back channel releases its connection early, and the stream continues")
  func connectionHold() async throws {
    try await withPort({ $0.maximumConnectionHold = .milliseconds(300) }) { server in
      let client = try await openSession(server)
      var last = 0
      let back = try await client.open(after: 0)
      while let array = try await back.next() { last = array.id }
      await back.close()
      #expect(last > 0)
      let next = try await client.open(after: last)
      #expect(try await next.next()?.id == last + 1)
      await next.close()
    }
  }

  @Test("Back channels that ended do not shorten the lifetime of a later one")
  func connectionHoldAfterOthers() async throws {
    try await withPort({
      $0.maximumConnectionHold = .seconds(2)
      $0.maximumLastConnectionHold = .milliseconds(100)
    }) { server in
      for _ in 0..<6 {
        let client = try await openSession(server)
        let back = try await client.open(after: 0)
        _ = try await back.arrays(until: "CURRENT")
        #expect(try await client.open(after: 1_000).complete().status == 400)
        _ = try await client.post("VER=8&SID=\(client.sid)&RID=102&TYPE=terminate", "")
        while try await back.next() != nil {}
        await back.close()
      }
      let client = try await openSession(server)
      let start = ContinuousClock.now
      _ = try await client.open(after: 0).complete()
      #expect(ContinuousClock.now - start >= .seconds(1))
    }
  }

  @Test("Of seven back channels over HTTP/1.1, five keep their connections for the full time")
  func longConnectionHolds() async throws {
    try await withPort({ limits in
      limits.maximumConnectionHold = .seconds(1)
      limits.maximumLastConnectionHold = .milliseconds(100)
    }) { server in
      let count = try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 0..<7 {
          let client = try await openSession(server)
          group.addTask {
            var (count, last) = (0, 0)
            let end = ContinuousClock.now + .seconds(3)
            while ContinuousClock.now < end {
              let reply = try await client.open(after: last).complete()
              last = reply.arrays.last?.id ?? last
              count += 1
            }
            return count
          }
        }
        return try await group.reduce(0, +)
      }
      // In at most four seconds: five back channels of one second, two of 0.1 s. Seven of 0.1 s would be 210 in three seconds.
      #expect(count <= 5 * 4 + 2 * 40)
    }
  }

  @Test("A client that polls receives all arrays, then noops")
  func polling() async throws {
    try await withPort { server in
      let client = try await openSession(server)
      let first = try await client.open(after: 0, polling: 20_000).complete()
      #expect(first.arrays.first?.text.contains("ADD") == true)
      var last = first.arrays.last?.id ?? 0
      // Polls until all arrays have arrived and a poll returns a noop.
      var text = ""
      while text != "[\"noop\"]" {
        let next = try await client.open(after: last, polling: 100).complete()
        let array = try #require(next.arrays.last)
        #expect(array.id > last)
        last = array.id
        text = String(decoding: array.payload.json(), as: UTF8.self)
      }
    }
  }

  /// Clients that use `fetch` fail if a connection is lost before the response head.
  @Test("A polling request gets its response head immediately")
  func pollingSendsHeadImmediately() async throws {
    try await withPort { server in
      let client = try await Client.handshake(server.port.port, "Listen", []).client
      let back = try await client.open(after: 0, polling: 20_000)
      #expect(try await back.start().status == 200)
      _ = try await client.post([Client.listen(to: "a/b", 2)], from: 0)
      #expect(try await back.nextMessage()?.text.contains("ADD") == true)
      while try await back.next() != nil {}
      await back.close()
    }
  }

  @Test("An idle session expires, and a new session can be opened in its place")
  func sessionsExpire() async throws {
    // The timeout is long enough for a busy machine to open the back channel.
    try await withPort({
      $0.idleTimeout = .seconds(4)
      $0.maximumSessions = 1
    }) { server in
      let client = try await openSession(server)
      let back = try await client.open(after: 0)
      _ = try await back.arrays(until: "CURRENT")
      #expect(try await client.post([], from: 1).status == 200)
      await back.close()
      // A request would keep the session alive, so the test detects its expiry by opening another session.
      #expect(
        try await eventually { try await Client.handshake(client.port, "Listen", []).reply.status == 200 })
      #expect(try await client.post([], from: 1).status == 400)
    }
  }

  @Test("A handshake above the session limit is rejected with status 503")
  func sessionLimit() async throws {
    try await withPort({ $0.maximumSessions = 2 }) { server in
      let first = try await openSession(server)
      _ = try await openSession(server)
      let rejected = try await Client.handshake(server.port.port, "Listen", []).reply
      #expect(rejected.status == 503)
      #expect(rejected.text.contains("2 sessions"))
      _ = try await BackChannel(
        try await first.request("POST", "SID=\(first.sid)&RID=9&TYPE=terminate")
      ).complete()
      #expect(
        try await eventually {
          try await Client.handshake(server.port.port, "Listen", []).reply.status == 200
        })
    }
  }

  /// When the memory of all sessions together exceeds the limit, the server ends a session without a back channel.
  @Test("Memory pressure ends an idle session")
  func memoryLimit() async throws {
    try await withPort({ $0.maximumHeldBytes = 100_000 }) { server in
      try await server.client.commit([.set("a/b", ["t": .text(String(repeating: "x", count: 60_000))])])
      let clients = [try await openSession(server), try await openSession(server)]
      let deadline = NIODeadline.now() + .seconds(60)
      var endedCount = 0
      while endedCount == 0, .now() < deadline {
        for client in clients where try await client.post([], from: 1).status == 400 { endedCount += 1 }
      }
      #expect(endedCount == 1)
    }
  }

  @Test("A slow reader stays within its byte limits and receives everything")
  func slowReadersAreBounded() async throws {
    try await withPort({
      $0.maximumUnacknowledgedBytes = 200_000
      $0.maximumBackChannelBytes = 100_000
    }) { server in
      let text = String(repeating: "x", count: 20_000)
      for n in 0..<50 { try await server.client.commit([.set("big/\(n)", ["t": .text(text)])]) }
      let query =
        "{\"database\":\"\(Client.database)\",\"addTarget\":{\"query\":{\"parent\":\"\(Client.database)/documents\",\"structuredQuery\":{\"from\":[{\"collectionId\":\"big\"}]}},\"targetId\":2}}"
      let client = try await Client.handshake(server.port.port, "Listen", [query]).client
      var (last, documents, requests, isCurrent) = (0, 0, 0, false)
      while !isCurrent {
        let back = try await client.open(after: last)
        requests += 1
        var bytes = 0
        while let array = try await back.next() {
          last = array.id
          let size = array.text.utf8.count
          bytes += size
          if array.text.contains("documentChange") { documents += 1 }
          if array.text.contains("CURRENT") { isCurrent = true }
          if isCurrent { break }
        }
        await back.close()
        #expect(bytes < 600_000)
      }
      #expect(documents == 50)
      #expect(requests > 1)
    }
  }

  @Test("Draining the server ends streams with UNAVAILABLE")
  func drainingEndsStreams() async throws {
    try await withPort { server in
      let client = try await openSession(server)
      let back = try await client.open(after: 0)
      _ = try await back.arrays(until: "CURRENT")
      async let drained: Void = server.port.drain(grace: .seconds(5))
      let error = try await back.arrays(until: "error").last?.payload.array?.first?["error"]
      #expect(error?["status"] == .string("UNAVAILABLE"))
      while try await back.next() != nil {}
      await drained
    }
  }
}
