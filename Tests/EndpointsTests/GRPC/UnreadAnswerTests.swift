// A client that asks for many large answers and does not take them: what waits for it in the server is bounded, what it
// asked for comes once it reads, and others are served.

import FirestoreProtobuf
import Foundation
import GRPCFraming
import NIOCore
import NIOHTTP2
import OrderedStore
import SwiftProtobuf
import Testing

@testable import Endpoints

@Suite("Answers that are not read", .timeLimit(.minutes(10)))
struct UnreadAnswerTests {
  private static let size = 500_000

  private func with(
    _ limits: PortLimits = PortLimits(), _ body: (FirestoreTestPort) async throws -> Void
  ) async throws {
    try await FirestoreTestPort.with(store: try MemoryStore(), limits: limits) { running in
      let text = Proto.Value.text(String(repeating: "x", count: Self.size))
      try await running.client.commit([.set("w/large", ["t": text])])
      try await body(running)
    }
  }

  /// Asks for the large document so many times at once, each on a stream of its own.
  private func ask(_ count: Int, _ client: GRPCTestClient) async throws -> [GRPCTestCall] {
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

  @Test("with its window shut, a client makes the server hold a bounded number of answers; then all come")
  func bounded() async throws {
    var limits = PortLimits()
    limits.http2.maximumQueuedAnswerBytes = 8 << 20
    try await with(limits) { running in
      let shut = try await GRPCTestClient.connect(port: running.port.port, window: 0)
      let calls = try await ask(60, shut)
      // The head of an answer passes any window.
      func begun() -> Int { calls.count { $0.hasNews } }
      #expect(try await eventually { begun() > 0 })
      let held = try await standstill(of: begun, below: calls.count) {
        // There is no such document, and that is an answer too.
        _ = try? await running.client.get("w/none")
      }
      #expect(held > 0)
      #expect(held * Self.size <= limits.http2.maximumQueuedAnswerBytes, "\(held) answers are queued")
      // Another connection is served meanwhile, and so is the reset of a call that waits.
      #expect(try await running.client.get("w/large").fields["t"]?.stringValue.utf8.count == Self.size)
      try await calls[59].reset()
      // The window opens: the frame is read although answers wait, and the calls that waited start.
      try await shut.channel.writeAndFlush(
        HTTP2Frame(
          streamID: .rootStream,
          payload: .settings(.settings([HTTP2Setting(parameter: .initialWindowSize, value: 2 << 20)]))))
      for call in calls.dropLast() {
        #expect(try await call.status() == .ok)
      }
      await shut.close()
    }
  }

  @Test("with room for all, all are begun though the window is shut: what the bound is measured by")
  func roomForAll() async throws {
    var limits = PortLimits()
    limits.http2.maximumQueuedAnswerBytes = 128 << 20
    try await with(limits) { running in
      let shut = try await GRPCTestClient.connect(port: running.port.port, window: 0)
      for call in try await ask(60, shut) {
        // The head of an answer passes any window.
        guard case .metadata = try await call.next() else { throw DeadlinePassed() }
      }
      await shut.close()
    }
  }

  @Test("a connection whose answers nobody takes is closed, with the calls that wait")
  func deadline() async throws {
    var limits = PortLimits()
    limits.http2.maximumQueuedAnswerBytes = 2 << 20
    limits.http2.unreadAnswerTimeout = .seconds(2)
    try await with(limits) { running in
      let shut = try await GRPCTestClient.connect(port: running.port.port, window: 0)
      for call in try await ask(10, shut) {
        #expect(try await call.status().code == .unavailable)
      }
      try await shut.channel.closeFuture.get()
      #expect(try await running.client.get("w/large").fields["t"]?.stringValue.utf8.count == Self.size)
    }
  }

  @Test("a client that reads gets 200 large answers at once, far more than may be queued")
  func reading() async throws {
    try await with { running in
      for call in try await ask(200, running.client) {
        guard case .metadata = try await call.next(),
          case .message(let bytes) = try await call.next()
        else { throw DeadlinePassed() }
        #expect(bytes.readableBytes > Self.size)
        #expect(try await call.status() == .ok)
      }
    }
  }
}
