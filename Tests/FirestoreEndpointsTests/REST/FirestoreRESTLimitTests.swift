// Tests the limits of Firestore's REST interface: large or slow requests, unread responses, and clients that disconnect.

import FirestoreProtobuf
import GRPCFraming
import JSON
import NIOCore
import NIOHTTP1
import OrderedStore
import RealtimeModel
import SwiftProtobuf
import Testing

@testable import EndpointFixture
@testable import Ports

@Suite("Limits of Firestore's REST interface", .timeLimit(.minutes(10)))
struct FirestoreRESTLimitTests {
  private let docs = "/v1/" + FirestoreTestServer.documents

  private func withPort(
    lockWait: UInt64 = 20_000_000, _ change: (inout PortLimits) -> Void = { _ in },
    _ body: (FirestoreTestPort) async throws -> Void
  ) async throws {
    var limits = PortLimits()
    change(&limits)
    try await FirestoreTestPort.with(
      store: try MemoryStore(StoreOptions()), lockWait: lockWait, limits: limits, body)
  }

  private func fill(_ port: FirestoreTestPort, _ count: Int) async throws {
    let text = String(repeating: "x", count: 700_000)
    for index in 0..<count { try await port.client.commit([.set("fat/\(index)", ["t": .text(text)])]) }
  }

  private let query = "{\"structuredQuery\":{\"from\":[{\"collectionId\":\"fat\"}]}}"

  @Test("a long response is streamed completely")
  func longResponse() async throws {
    try await withPort { port in
      try await fill(port, 10)
      let reply = try await RESTClient.request(port.port.port, "POST", "\(docs):runQuery", body: query)
      #expect(reply.status == 200 && reply.headers["transfer-encoding"] == "chunked")
      // The last message may contain no document.
      let found = reply.json.array?.compactMap { $0["document"]["name"].string }
      #expect(found?.count == 10)
      let page = try await RESTClient.request(port.port.port, "GET", "\(docs)/fat?pageSize=100")
      #expect(page.status == 200 && page.json["nextPageToken"].string != nil)
    }
  }

  @Test(
    "a client that does not read its response is disconnected",
    arguments: [3, 40])
  func unreadResponse(count: Int) async throws {
    try await withPort {
      $0.responseTimeout = .milliseconds(300)
    } _: { port in
      try await fill(port, count)
      let unreading = try await RawClient.connect(port.port.port)
      try await unreading.channel.setOption(.autoRead, value: false).get()
      #expect(try await eventually { port.port.connectionCount == 2 })
      // The server regards bytes in the kernel's buffers as read, so the test requests several responses to fill these.
      let request =
        "POST \(docs):runQuery HTTP/1.1\r\nHost: h\r\nContent-Length: \(query.utf8.count)\r\n\r\n\(query)"
      try await unreading.send(String(repeating: request, count: 10))
      #expect(try await eventually { port.port.connectionCount == 1 })
      #expect(try await RESTClient.request(port.port.port, "GET", "\(docs)/a/b").status == 404)
      await unreading.close()
    }
  }

  @Test("over HTTP/2, calls wait while the client leaves earlier responses unread")
  func callsWaitForUnreadResponses() async throws {
    try await withPort {
      $0.http2.maximumQueuedResponseBytes = 1 << 20
    } _: { port in
      try await fill(port, 3)
      let client = try await HTTP2Client.open(port.port.port)
      let first = try await client.request(.POST, "\(docs):runQuery", end: false)
      try await first.stream.setOption(.autoRead, value: false).get()
      try await first.send(query, end: true)
      // The server serves calls until it notices that the first response is unread. Then the server queues the next call.
      var held: HTTP2Client.Exchange?
      while held == nil {
        let call = try await client.request(.GET, "\(docs)/a/b")
        let responseCount = try await standstill(of: { call.parts.isEmpty ? 0 : 1 }, below: 1) {
          // Any response shows that the server still works. The error for a missing document is the smallest response.
          _ = try? await port.client.get("a/b")
        }
        if responseCount == 0 { held = call }
      }
      try await first.stream.setOption(.autoRead, value: true).get()
      first.stream.read()
      #expect(try await first.response().status == "200")
      #expect(try await held?.response().status == "404")
      await client.close()
    }
  }

  @Test("over HTTP/2 the number of running calls with large responses is limited, and all complete")
  func concurrentLargeResponses() async throws {
    try await withPort {
      $0.http2.maximumLargeReads = 2
    } _: { port in
      try await fill(port, 1)
      let client = try await HTTP2Client.open(port.port.port)
      var calls: [HTTP2Client.Exchange] = []
      for _ in 0..<20 { calls.append(try await client.request(.GET, "\(docs)/fat/0?mask.fieldPaths=none")) }
      // A cancelled call frees its capacity.
      for call in calls.prefix(5) { try? await call.stream.close().get() }
      for call in calls.dropFirst(5) { #expect(try await call.response().status == "200") }
      await client.close()
    }
  }

  @Test("a disconnect cancels the client's waiting call")
  func cancellation() async throws {
    // The lock timeout exceeds every wait of the test.
    try await withPort(lockWait: 600_000_000) { port in
      let client = port.client
      try await client.commit([.set("l/d", ["n": .int(1)])])
      let begun: Google_Firestore_V1_BeginTransactionResponse = try await client.unary(
        "BeginTransaction",
        Google_Firestore_V1_BeginTransactionRequest.with { $0.database = FirestoreTestServer.database })
      let read: Proto.Document = try await client.unary(
        "GetDocument",
        Google_Firestore_V1_GetDocumentRequest.with {
          $0.name = FirestoreTestServer.documents + "/l/d"
          $0.transaction = begun.transaction
        })
      #expect(read.fields["n"] == .int(1))
      let caller = try await RawConnection.connect(port: port.port.port)
      #expect(try await eventually { port.port.connectionCount == 2 })
      try await caller.send("DELETE \(docs)/l/d HTTP/1.1\r\nHost: h\r\n\r\n")
      let responseCount = try await standstill(of: { caller.hasUnreadEvents ? 1 : 0 }, below: 1) {
        _ = try? await client.get("l/none")
      }
      #expect(responseCount == 0, "the call waits for the lock")
      // The stream is reset, not half-closed: after a half-close the call would still get its response.
      try await caller.reset()
      #expect(try await eventually { port.port.connectionCount == 1 })
      let _: Google_Protobuf_Empty = try await client.unary(
        "Rollback",
        Google_Firestore_V1_RollbackRequest.with {
          $0.database = FirestoreTestServer.database
          $0.transaction = begun.transaction
        })
      try await client.commit([.set("l/other", [:])])
      #expect(try await client.get("l/d").fields["n"] == .int(1))
    }
  }

  @Test("an incomplete body gets 408, and a body that is too large 400, as over gRPC")
  func bodies() async throws {
    try await withPort {
      $0.requestBodyTimeout = .milliseconds(300)
      $0.maximumRequestBody = 50_000
    } _: { port in
      let slow = try await RawClient.connect(port.port.port)
      try await slow.send("POST \(docs):commit HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n{")
      let timedOut = try RESTClient.parse(String(decoding: await slow.readToEnd(), as: UTF8.self))
      #expect(timedOut.status == 408 && timedOut.error["status"] == .string("DEADLINE_EXCEEDED"))
      #expect(timedOut.error["code"] == .int(408))

      let large = try await RawClient.connect(port.port.port)
      try await large.send(
        "POST \(docs):commit HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 99999999999\r\n\r\n"
      )
      let refused = try RESTClient.parse(String(decoding: await large.readToEnd(), as: UTF8.self))
      #expect(refused.status == 400)
      #expect(
        refused.error["message"]
          == .string(
            "Request payload size exceeds the limit: 50000 bytes. (The request has 99999999999 bytes.)"))

      // The size of a truncated body is unknown.
      let chunked = try await RawClient.connect(port.port.port)
      let chunk = "C351\r\n" + String(repeating: " ", count: 50_001) + "\r\n"
      try await chunked.send(
        "POST \(docs):commit HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk)
      let truncated = try RESTClient.parse(String(decoding: await chunked.readToEnd(), as: UTF8.self))
      #expect(truncated.status == 400)
      #expect(truncated.error["message"] == .string("Request payload size exceeds the limit: 50000 bytes."))
    }
  }

  @Test("a request above the limit gets the same error over gRPC, REST and WebChannel")
  func sameErrorText() async throws {
    try await withPort { port in
      let size = (10 << 20) + 1
      let expectedText =
        "Request payload size exceeds the limit: 10485760 bytes. (The request has \(size) bytes.)"
      let call = try await port.client.open("Commit")
      var message = ByteBuffer()
      message.writeGRPCPrefix(length: UInt32(size))
      message.writeRepeatingByte(0, count: size)
      try? await call.send(raw: message, endStream: true)
      #expect(try await call.status() == GRPCStatus(.invalidArgument, expectedText))

      let plain = try await RawClient.connect(port.port.port)
      try await plain.send(
        "POST \(docs):commit HTTP/1.1\r\nHost: h\r\nContent-Length: \(size)\r\n\r\n")
      let reply = try RESTClient.parse(String(decoding: await plain.readToEnd(), as: UTF8.self))
      #expect(reply.status == 400 && reply.error["message"] == .string(expectedText))

      // Over WebChannel, a message is above the limit first, and then the body of a POST.
      let (client, _) = try await WebChannelTestClient.handshake(
        port.port.port, "Write", ["{\"database\":\"\(WebChannelTestClient.database)\"}"],
        headers: "Authorization:Bearer owner\r\n")
      let text = String(repeating: "x", count: 10 << 20)
      _ = try await client.post(
        [WebChannelTestClient.set("c/d", "{\"t\":{\"stringValue\":\"\(text)\"}}")], from: 1)
      let back = try await client.open(after: 0)
      let error = try await back.arrays(until: "error").last?.payload.array?.first?["error"]
      let errorText = try #require(error?["message"]?.string)
      #expect(error?["status"] == .string("INVALID_ARGUMENT"))
      #expect(
        errorText.hasPrefix("Request payload size exceeds the limit: 10485760 bytes. (The request has 10"),
        "\(errorText)")
      await back.close()

      let large = try await RawClient.connect(port.port.port)
      try await large.send(
        "POST /google.firestore.v1.Firestore/Write/channel?VER=8 HTTP/1.1\r\nHost: h\r\n"
          + "Content-Length: 33554433\r\n\r\n")
      let refused = try RESTClient.parse(String(decoding: await large.readToEnd(), as: UTF8.self))
      #expect(
        refused.error["message"]
          == .string(
            "Request payload size exceeds the limit: 33554432 bytes. (The request has 33554433 bytes.)"))
    }
  }

  @Test("the request bodies of one connection together stay within the limit")
  func connectionBodyLimit() async throws {
    try await withPort {
      $0.http2.maximumBufferedRequestBytes = 50_000
    } _: { port in
      let client = try await HTTP2Client.open(port.port.port)
      let half = String(repeating: " ", count: 30_000)
      let first = try await client.request(.POST, "\(docs):commit", body: half, end: false)
      let second = try await client.request(.POST, "\(docs):commit", body: half, end: false)
      let refused = try await second.next()
      #expect(refused == "429")
      try await first.send("{}", end: true)
      #expect(try await first.response() == ("200", "{}\n"))
      await client.close()
    }
  }
}
