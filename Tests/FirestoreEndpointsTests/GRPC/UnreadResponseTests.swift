// Tests a client that requests many large responses and does not read them. The server's memory is bounded,
// the responses arrive when the client reads, and other clients are served.

import FirestoreProtobuf
import Foundation
import GRPCFraming
import NIOCore
import NIOHTTP2
import OrderedStore
import SwiftProtobuf
import Testing

@testable import EndpointFixture
@testable import Ports

@Suite("Unread responses", .timeLimit(.minutes(10)))
struct UnreadResponseTests {
  private static let size = 500_000

  private func withServer(
    _ limits: PortLimits = PortLimits(), _ body: (FirestoreTestPort) async throws -> Void
  ) async throws {
    try await FirestoreTestPort.with(store: try MemoryStore(), limits: limits) { server in
      let text = Proto.Value.text(String(repeating: "x", count: Self.size))
      try await server.client.commit([.set("w/large", ["t": text])])
      try await body(server)
    }
  }

  /// Requests the large document `count` times concurrently, each on a separate stream.
  private func startReads(_ count: Int, _ client: GRPCTestClient) async throws -> [GRPCTestCall] {
    var calls: [GRPCTestCall] = []
    for _ in 0..<count {
      let call = try await client.open("GetDocument")
      try await call.send(
        Google_Firestore_V1_GetDocumentRequest.with {
          $0.name = "\(FirestoreTestServer.documents)/w/large"
        }, endStream: true)
      calls.append(call)
    }
    return calls
  }

  @Test(
    "While a client's window is closed, the server holds few responses; when the window opens, all responses arrive"
  )
  func boundedQueue() async throws {
    var limits = PortLimits()
    limits.http2.maximumQueuedResponseBytes = 8 << 20
    try await withServer(limits) { server in
      let blockedClient = try await GRPCTestClient.connect(port: server.port.port, window: 0)
      let calls = try await startReads(60, blockedClient)
      // The headers of a response do not depend on the window.
      func begun() -> Int { calls.count { $0.hasUnreadEvents } }
      #expect(try await eventually { begun() > 0 })
      let held = try await standstill(of: begun, below: calls.count) {
        // Any response shows that the server still works. The error for a missing document is the smallest response.
        _ = try? await server.client.get("w/none")
      }
      #expect(held > 0)
      #expect(held * Self.size <= limits.http2.maximumQueuedResponseBytes, "\(held) responses are queued")
      // While the window is closed, the server serves another connection, and a call that waits can be reset.
      #expect(try await server.client.get("w/large").fields["t"]?.stringValue.utf8.count == Self.size)
      try await calls[59].reset()
      // The window opens: the server reads the frame although responses wait, and the waiting calls start.
      try await blockedClient.channel.writeAndFlush(
        HTTP2Frame(
          streamID: .rootStream,
          payload: .settings(.settings([HTTP2Setting(parameter: .initialWindowSize, value: 2 << 20)]))))
      for call in calls.dropLast() {
        #expect(try await call.status() == .ok)
      }
      await blockedClient.close()
    }
  }

  @Test("If the limit exceeds all responses, every call starts although the window is closed")
  func raisedLimit() async throws {
    var limits = PortLimits()
    limits.http2.maximumQueuedResponseBytes = 128 << 20
    try await withServer(limits) { server in
      let blockedClient = try await GRPCTestClient.connect(port: server.port.port, window: 0)
      for call in try await startReads(60, blockedClient) {
        // The headers of a response do not depend on the window.
        guard case .metadata = try await call.next() else { throw DeadlinePassed() }
      }
      await blockedClient.close()
    }
  }

  @Test("A connection with unread responses is closed after a timeout, which also ends its waiting calls")
  func timeout() async throws {
    var limits = PortLimits()
    limits.http2.maximumQueuedResponseBytes = 2 << 20
    limits.http2.unreadResponseTimeout = .seconds(2)
    try await withServer(limits) { server in
      let blockedClient = try await GRPCTestClient.connect(port: server.port.port, window: 0)
      for call in try await startReads(10, blockedClient) {
        #expect(try await call.status().code == .unavailable)
      }
      try await blockedClient.channel.closeFuture.get()
      #expect(try await server.client.get("w/large").fields["t"]?.stringValue.utf8.count == Self.size)
    }
  }

  @Test("A client that reads gets 200 concurrent large responses, far more than the queue's limit")
  func activeReader() async throws {
    try await withServer { server in
      for call in try await startReads(200, server.client) {
        guard case .metadata = try await call.next(),
          case .message(let bytes) = try await call.next()
        else { throw DeadlinePassed() }
        #expect(bytes.readableBytes > Self.size)
        #expect(try await call.status() == .ok)
      }
    }
  }
}
