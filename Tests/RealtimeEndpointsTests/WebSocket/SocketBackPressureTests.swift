// Tests back-pressure: the server stops reading from a connection whose pending requests exceed a number or a
// size. Unread responses are limited too.

import Access
import Locking
import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import OrderedStore
import RealtimeEngine
import RealtimeModel
import Testing

@testable import EndpointFixture
@testable import Ports
@testable import RealtimeEndpoints

/// A policy that blocks writes until the test opens it, so that requests accumulate as with a slow disk.
final class GatePolicy: AccessPolicy {
  typealias Product = RealtimeAccess
  private let isOpen = Guarded(false)

  func open() {
    isOpen.withLock { $0 = true }
    isOpen.broadcast()
  }

  func decide(
    _ caller: Principal, _ operation: RealtimeAccess.Operation, view: any TreeView
  ) -> RealtimeDecision {
    if operation.changesData { isOpen.wait { $0 ? () : nil } }
    return .allowed
  }
}

@Suite("Back-pressure on the Realtime Database's sockets", .timeLimit(.minutes(10)))
struct SocketBackPressureTests {
  /// Sends messages without waiting for responses, and counts those that the socket accepted.
  private func sendWithoutWaiting(_ socket: RawSocket, _ messages: [String]) -> NIOLockedValueBox<Int> {
    let sent = NIOLockedValueBox(0)
    for message in messages {
      let text = #"{"t":"d","d":\#(message)}"#
      // The frame's mask is zero, so that the client need not mask megabytes.
      var frame = ByteBuffer(bytes: [0x81, 0xFF])
      frame.writeInteger(UInt64(text.utf8.count))
      frame.writeInteger(UInt32(0))
      frame.writeString(text)
      socket.client.channel.writeAndFlush(frame).whenSuccess {
        sent.withLockedValue { $0 += 1 }
      }
    }
    return sent
  }

  /// Waits until a count no longer changes. Returns whether it is then below a bound.
  private func stopsGrowing(_ count: NIOLockedValueBox<Int>, below: Int, _ server: RealtimeTestServer)
    async throws
    -> Bool
  {
    let other = try await RawSocket.open(server)
    let request = #"{"r":1,"a":"s","b":{}}"#
    return try await standstill(of: { count.withLockedValue { $0 } }, below: below) {
      try await other.play([request], expect: [#"{"r":1,"b":{"s":"ok","d":""}}"#])
    } < below
  }

  @Test("the server stops reading a connection with large pending requests, and answers all in the end")
  func bytes() async throws {
    let gate = GatePolicy()
    var limits = RealtimeEndpointLimits()
    limits.outstandingRequestBytes = 1 << 20
    try await RealtimeTestServer.run(limits: limits, policy: gate) { server in
      let socket = try await RawSocket.open(server)
      let other = try await RawSocket.open(server)
      // The test sends far more than the kernel's buffers on both sides hold.
      let text = String(repeating: "x", count: 1 << 20)
      let count = 48
      let sent = sendWithoutWaiting(
        socket, (1...count).map { #"{"r":\#($0),"a":"p","b":{"p":"/x/\#($0)","d":"\#(text)"}}"# })
      let isLimited = try await stopsGrowing(sent, below: count, server)
      #expect(isLimited, "the server read all \(count) MiB before it answered")
      // While the server does not read this connection, it reads and answers other connections.
      try await other.play([#"{"r":1,"a":"s","b":{}}"#], expect: [#"{"r":1,"b":{"s":"ok","d":""}}"#])
      gate.open()
      for number in 1...count {
        #expect(try await socket.next() == #"{"r":\#(number),"b":{"s":"ok","d":""}}"#)
      }
      #expect(sent.withLockedValue { $0 } == count)
    }
  }

  @Test(
    "requests that the endpoint answers itself count as pending while they wait behind the engine's responses"
  )
  func ownAnswers() async throws {
    let gate = GatePolicy()
    var limits = RealtimeEndpointLimits()
    limits.outstandingRequests = 16
    try await RealtimeTestServer.run(limits: limits, policy: gate) { server in
      let socket = try await RawSocket.open(server)
      let padding = String(repeating: "x", count: 1 << 20)
      try await socket.send(#"{"r":0,"a":"p","b":{"p":"/x","d":1}}"#)
      let count = 48
      let sent = sendWithoutWaiting(
        socket, (1...count).map { #"{"r":\#($0),"a":"s","b":{"c":{"x":"\#(padding)"}}}"# })
      #expect(
        try await stopsGrowing(sent, below: count, server), "the server read everything before it answered")
      gate.open()
      for number in 0...count {
        #expect(try await socket.next() == #"{"r":\#(number),"b":{"s":"ok","d":""}}"#)
      }
    }
  }

  @Test("a response larger than the output limit reaches a client that reads, over every transport")
  func largeResponse() async throws {
    var limits = RealtimeEndpointLimits()
    limits.data.queuedOutputBytes = 100_000
    try await RealtimeTestServer.run(limits: limits) { server in
      let text = String(repeating: "x", count: 8 << 20)
      let database = try await server.engine.database("demo")
      _ = try await database.set("a", to: .leaf(.string(text)), as: .nobody)
      let socket = try await RawSocket.open(server)
      try await socket.send(#"{"r":1,"a":"g","b":{"p":"/a","q":{}}}"#)
      #expect(try await socket.next() == #"{"r":1,"b":{"s":"ok","d":"\#(text)"}}"#)
      try await socket.send(#"{"r":2,"a":"q","b":{"p":"/a","h":""}}"#)
      #expect(try await socket.next() == #"{"a":"d","b":{"p":"a","d":"\#(text)"}}"#)
      #expect(try await socket.next() == #"{"r":2,"b":{"s":"ok","d":{}}}"#)

      let client = try await HTTP2Client.open(server.port.port)
      #expect(try await client.request(.GET, "/a.json?ns=demo").response().body.count == text.count + 2)
      let events = try await client.request(.GET, "/a.json?ns=demo", headers: ["accept": "text/event-stream"])
      var bytes = -3
      while bytes < text.utf8.count { bytes += try await events.next().utf8.count }
      await client.close()
    }
  }
}
