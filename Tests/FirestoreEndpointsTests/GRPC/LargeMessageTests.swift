// Tests messages above the size limit. The server rejects a message of any such size with the usual error, and does not
// keep the message's bytes. On a stream the error follows the responses to earlier messages.

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
@testable import Ports

@Suite("Messages above the limit", .timeLimit(.minutes(10)))
struct LargeMessageTests {
  private typealias Request = Google_Firestore_V1_WriteRequest
  private typealias Response = Google_Firestore_V1_WriteResponse

  private static let errorText = "Request payload size exceeds the limit: 10485760 bytes."

  /// A large message of zeros, or its compressed form.
  struct LargeMessage: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var bytes: ByteBuffer
    /// The part of the error message that reports the size; empty if the size is unknown.
    var size: String

    init(of count: Int) {
      testDescription = "\(count) bytes"
      bytes = ByteBuffer()
      bytes.writeGRPCPrefix(length: UInt32(count))
      bytes.writeRepeatingByte(0, count: count)
      size = " (The request has \(count) bytes.)"
    }

    /// - Parameter tail: the number of bytes after the compressed bytes.
    init(compressed count: Int, tail: Int = 0) {
      testDescription = "\(count) bytes, compressed" + (tail > 0 ? ", and \(tail)" : "")
      let compressed = TestCompressor.bomb(count)
      bytes = ByteBuffer()
      bytes.writeInteger(UInt8(1))
      bytes.writeInteger(UInt32(compressed.count + tail))
      bytes.writeBytes(compressed)
      bytes.writeRepeatingByte(0, count: tail)
      // The size is known up to 17 MiB; a larger message is rejected before its decompression ends.
      size = count <= 17 << 20 ? " (The request has \(count) bytes.)" : ""
      if tail > 0 { size = " (The request has \(compressed.count + tail) bytes.)" }
    }
  }

  static let sizes = [
    LargeMessage(of: (10 << 20) + 1), LargeMessage(of: (17 << 20) + 1), LargeMessage(of: 40 << 20),
    LargeMessage(compressed: (10 << 20) + 1),
    LargeMessage(compressed: (17 << 20) + 1), LargeMessage(compressed: 256 << 20),
    LargeMessage(compressed: 1, tail: 18 << 20),
  ]

  private let gzipMetadata = [("grpc-encoding", "gzip")]

  private func openWriteStream(_ client: GRPCTestClient) async throws -> GRPCTestCall {
    let call = try await client.open("Write", metadata: gzipMetadata)
    try await call.send(Request.with { $0.database = FirestoreTestServer.database })
    let _: Response = try await call.message()
    return call
  }

  private func expectRejection(
    _ status: GRPCStatus, of large: LargeMessage, _ location: SourceLocation = #_sourceLocation
  ) {
    #expect(
      status == GRPCStatus(.invalidArgument, Self.errorText + large.size), "\(large.testDescription)",
      sourceLocation: location)
  }

  @Test("A call with a request above the limit is INVALID_ARGUMENT, as over REST", arguments: sizes)
  func calls(large: LargeMessage) async throws {
    try await FirestoreTestServer.serving { server in
      for method in ["Commit", "RunQuery", "GetDocument"] {
        let call = try await server.client.open(method, metadata: gzipMetadata)
        // The response may arrive before the request is sent completely.
        try? await call.send(raw: large.bytes, endStream: true)
        expectRejection(try await call.status(), of: large)
      }
      try await server.client.commit([.set("c/d", [:])])
    }
  }

  @Test(
    "A large message ends a Write stream after earlier messages are answered; later messages are dropped",
    arguments: sizes)
  func writes(large: LargeMessage) async throws {
    var limits = PortLimits()
    limits.memory = MemoryBudget(limit: 1 << 30)
    try await FirestoreTestPort.with(store: try MemoryStore(), lockWait: 50_000_000, limits: limits) {
      server in
      let client = server.client
      let transaction = try await client.lock("w/locked")
      let call = try await openWriteStream(client)
      try await call.send(Request.with { $0.writes = [.set("w/locked", ["n": .int(1)])] })
      // An earlier message waits for a lock. During this wait the server receives the entire large message.
      try await call.send(raw: large.bytes)
      try await call.send(Request.with { $0.writes = [.set("w/later", [:])] })
      if large.bytes.readableBytes > 17 << 20 {
        try await call.send(raw: ByteBuffer(repeating: 0, count: 8 << 20))
        #expect(limits.memory.used < 1 << 20)
      }
      let other = try await openWriteStream(client)
      let text = Proto.Value.text(String(repeating: "x", count: 700_000))
      try await other.send(
        Request.with { $0.writes = [.set("w/other", ["t": text]), .set("w/another", ["t": text])] })
      let _: Response = try await other.message()
      #expect(!call.hasUnreadEvents)
      try await client.release(transaction)
      let first: Response = try await call.message()
      #expect(first.writeResults.count == 1)
      expectRejection(try await call.status(), of: large)
      #expect(try await client.get("w/locked").fields["n"] == .int(1))
      await #expect(throws: GRPCStatus.self) { try await client.get("w/later") }
    }
  }

  @Test("A large message ends a Listen stream", arguments: sizes)
  func listens(large: LargeMessage) async throws {
    try await FirestoreTestServer.with { client in
      let call = try await client.open("Listen", metadata: gzipMetadata)
      try? await call.send(raw: large.bytes)
      expectRejection(try await call.status(), of: large)
      try await client.commit([.set("c/d", [:])])
    }
  }

  @Test("Many large messages on one connection do not reduce its flow-control window")
  func flowControlWindow() async throws {
    let echo = try await EchoPort.start()
    let client = try await FrameConnection.open(port: echo.port.port)
    // The client fills each stream's window and ignores the responses. The server must return all of the
    // window.
    let (streams, chunkCount, bytes) = (20, 16, 16 << 10)
    var sent = 0
    for index in 0..<streams {
      let (stream, method) = (2 * index + 1, index.isMultiple(of: 2) ? "Echo" : "Converse")
      var first = [UInt8](repeating: 0, count: bytes)
      first.replaceSubrange(0..<5, with: [0, 2, 0, 0, 0])
      try await client.send(try client.headersFrame(stream, FrameConnection.callFields(method)))
      for chunk in 0..<chunkCount {
        let payload = chunk == 0 ? first : [UInt8](repeating: 0, count: bytes)
        try await client.send(FrameConnection.frame(0, 0, stream, payload))
        sent += bytes
      }
      #expect(try await client.status(of: stream) == 3)
      #expect(sent - client.windowUpdateBytes < 1 << 20, "\(stream)")
    }
    try await client.request(101, FrameConnection.callFields("Echo"), [1])
    #expect(try await client.status(of: 101) == 0)
    #expect(sent - client.windowUpdateBytes <= 512 << 10, "\(sent) \(client.windowUpdateBytes)")
    await client.close()
    await echo.stop()
  }
}
