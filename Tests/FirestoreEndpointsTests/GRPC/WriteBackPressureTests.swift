// Tests a client that sends writes faster than the server commits them: the server's queue is bounded in bytes, and
// every write commits.

import FirestoreProtobuf
import Foundation
import GRPCFraming
import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP2
import OrderedStore
import SwiftProtobuf
import Testing

@testable import EndpointFixture
@testable import FirestoreEndpoints
@testable import Ports

@Suite("Back-pressure on the Write stream", .timeLimit(.minutes(10)))
struct WriteBackPressureTests {
  private typealias Request = Google_Firestore_V1_WriteRequest
  private typealias Response = Google_Firestore_V1_WriteResponse

  @Test(
    "During a commit the server reads a bounded number of bytes, then commits everything")
  func boundedQueue() async throws {
    try await FirestoreTestPort.with(store: try MemoryStore(), lockWait: 50_000_000) { server in
      let client = server.client
      let transaction = try await client.lock("w/locked")
      // The stream's window is larger than all messages, so only the server's back-pressure limits the client.
      let call = try await client.open("Write")
      try await call.send(Request.with { $0.database = FirestoreTestServer.database })
      let _: Response = try await call.message()
      try await call.send(Request.with { $0.writes = [.set("w/locked", ["n": .int(1)])] })
      let size = 500_000
      let count = 14
      let accepted = NIOLockedValueBox(0)
      for index in 0..<count {
        var buffer = ByteBuffer()
        let text = Proto.Value.text(String(repeating: "x", count: size))
        let bytes: [UInt8] = try Request.with { $0.writes = [.set("w/d\(index)", ["t": text])] }
          .serializedBytes()
        buffer.writeGRPCMessage(bytes: bytes)
        call.channel.writeAndFlush(HTTP2Frame.FramePayload.data(.init(data: .byteBuffer(buffer))))
          .whenSuccess { accepted.withLockedValue { $0 += 1 } }
      }
      // When the server stops reading, it has read only a few messages.
      let last = try await standstill(of: { accepted.withLockedValue { $0 } }, below: count) {
        // Any response shows that the server still works. The error for a missing document is the smallest response.
        _ = try? await client.get("w/none")
      }
      // The server may read the queue's limit, the bytes of the flow-control window, and the messages that cross
      // the limit.
      #expect(
        last * size <= FirestoreRequestLimits.maximumPendingBytes + (256 << 10) + 2 * size, "\(last) messages"
      )
      #expect(last < count)
      try await client.release(transaction)
      for _ in 0...count {
        let response: Response = try await call.message()
        #expect(response.writeResults.count == 1)
      }
      try await call.halfClose()
      #expect(try await call.status() == .ok)
      #expect(try await client.get("w/d\(count - 1)").fields["t"]?.stringValue.utf8.count == size)
    }
  }

  @Test("Queued messages of all streams count against the limit of their connection")
  func boundedConnection() async throws {
    var limits = PortLimits()
    limits.http2.maximumBufferedRequestBytes = 3 << 20
    try await FirestoreTestPort.with(store: try MemoryStore(), lockWait: 50_000_000, limits: limits) {
      server in
      let other = try await GRPCTestClient.connect(port: server.port.port)
      let transaction = try await other.lock("w/locked")
      var calls: [GRPCTestCall] = []
      for stream in 0..<8 {
        let call = try await server.client.open("Write")
        try await call.send(Request.with { $0.database = FirestoreTestServer.database })
        let _: Response = try await call.message()
        let text = Proto.Value.text(String(repeating: "x", count: 700_000))
        // A rejected stream may end before all of its messages are sent.
        try? await call.send(
          Request.with { $0.writes = [.set("w/locked", ["n": .int(Int64(stream)), "t": text])] })
        calls.append(call)
      }
      try await other.release(transaction)
      var rejected = 0
      for call in calls {
        do {
          let _: Response = try await call.message()
          try await call.halfClose()
          #expect(try await call.status() == .ok)
        } catch let status as GRPCStatus {
          #expect(status.code == .resourceExhausted, "\(status)")
          rejected += 1
        }
      }
      #expect(rejected >= 3 && rejected <= 5, "\(rejected)")
      // The memory is released: the connection still works.
      let call = try await server.client.open("Write")
      try await call.send(Request.with { $0.database = FirestoreTestServer.database })
      let _: Response = try await call.message()
      for round in 0..<6 {
        let text = Proto.Value.text(String(repeating: "x", count: 1_000_000))
        try await call.send(Request.with { $0.writes = [.set("w/d\(round)", ["t": text])] })
        let _: Response = try await call.message()
      }
      await other.close()
    }
  }
}
