// Messages above what a message may have: refused as any request is that is too large, whatever their size, with nothing of
// them kept; on a stream in their turn, behind the answers to what came before.

import FirestoreProtobuf
import Foundation
import GRPCFraming
import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP2
import OrderedStore
import SwiftProtobuf
import Testing

@testable import Endpoints

@Suite("Messages above the limit", .timeLimit(.minutes(10)))
struct LargeMessageTests {
  private typealias Request = Google_Firestore_V1_WriteRequest
  private typealias Response = Google_Firestore_V1_WriteResponse

  private static let words = "Request payload size exceeds the limit: 10485760 bytes."

  /// A message of zeros, or of bytes that stand for them.
  struct Large: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var bytes: ByteBuffer
    /// What the refusal says of the size, if that is known.
    var size: String

    init(of count: Int) {
      testDescription = "\(count) bytes"
      bytes = ByteBuffer()
      bytes.writeGRPCPrefix(length: UInt32(count))
      bytes.writeRepeatingByte(0, count: count)
      size = " (The request has \(count) bytes.)"
    }

    /// - Parameter tail: how many bytes come behind the compressed ones.
    init(packed count: Int, tail: Int = 0) {
      testDescription = "\(count) bytes, compressed" + (tail > 0 ? ", and \(tail)" : "")
      let packed = Packer.bomb(count)
      bytes = ByteBuffer()
      bytes.writeInteger(UInt8(1))
      bytes.writeInteger(UInt32(packed.count + tail))
      bytes.writeBytes(packed)
      bytes.writeRepeatingByte(0, count: tail)
      // Of a message that is read, and of one that is not even unpacked.
      size = count <= 17 << 20 ? " (The request has \(count) bytes.)" : ""
      if tail > 0 { size = " (The request has \(packed.count + tail) bytes.)" }
    }
  }

  static let sizes = [
    Large(of: (10 << 20) + 1), Large(of: (17 << 20) + 1), Large(of: 40 << 20), Large(packed: (10 << 20) + 1),
    Large(packed: (17 << 20) + 1), Large(packed: 256 << 20), Large(packed: 1, tail: 18 << 20),
  ]

  private let packing = [("grpc-encoding", "gzip")]

  private func handshake(_ client: GRPCTestClient) async throws -> GRPCTestCall {
    let call = try await client.open("Write", metadata: packing)
    try await call.send(Request.with { $0.database = FirestoreTestServer.database })
    let _: Response = try await call.message()
    return call
  }

  private func expectRefusal(
    _ status: GRPCStatus, of large: Large, _ location: SourceLocation = #_sourceLocation
  ) {
    #expect(
      status == GRPCStatus(.invalidArgument, Self.words + large.size), "\(large.testDescription)",
      sourceLocation: location)
  }

  @Test("are INVALID_ARGUMENT for a call with one request, with the words that REST has", arguments: sizes)
  func calls(large: Large) async throws {
    try await FirestoreTestServer.serving { server in
      for method in ["Commit", "RunQuery", "GetDocument"] {
        let call = try await server.client.open(method, metadata: packing)
        // The answer may be there before all has gone out.
        try? await call.send(raw: large.bytes, endStream: true)
        expectRefusal(try await call.status(), of: large)
      }
      try await server.client.commit([.set("c/d", [:])])
    }
  }

  @Test("end a Write stream in their turn, and what comes behind them is read and dropped", arguments: sizes)
  func writes(large: Large) async throws {
    var limits = PortLimits()
    limits.memory = MemoryBudget(limit: 1 << 30)
    try await FirestoreTestPort.with(store: try MemoryStore(), lockWait: 50_000_000, limits: limits) {
      running in
      let client = running.client
      let transaction = try await lock("w/locked", client)
      let call = try await handshake(client)
      try await call.send(Request.with { $0.writes = [.set("w/locked", ["n": .int(1)])] })
      // All of it is taken in, though its turn has not come.
      try await call.send(raw: large.bytes)
      try await call.send(Request.with { $0.writes = [.set("w/later", [:])] })
      if large.bytes.readableBytes > 17 << 20 {
        try await call.send(raw: ByteBuffer(repeating: 0, count: 8 << 20))
        #expect(limits.memory.used < 1 << 20)
      }
      let other = try await handshake(client)
      let text = Proto.Value.text(String(repeating: "x", count: 700_000))
      try await other.send(
        Request.with { $0.writes = [.set("w/other", ["t": text]), .set("w/another", ["t": text])] })
      let _: Response = try await other.message()
      #expect(!call.hasNews)
      try await release(transaction, client)
      let first: Response = try await call.message()
      #expect(first.writeResults.count == 1)
      expectRefusal(try await call.status(), of: large)
      #expect(try await client.get("w/locked").fields["n"] == .int(1))
      await #expect(throws: GRPCStatus.self) { try await client.get("w/later") }
    }
  }

  @Test("end a Listen stream", arguments: sizes)
  func listens(large: Large) async throws {
    try await FirestoreTestServer.with { client in
      let call = try await client.open("Listen", metadata: packing)
      try? await call.send(raw: large.bytes)
      expectRefusal(try await call.status(), of: large)
      try await client.commit([.set("c/d", [:])])
    }
  }

  @Test("of which many come on one connection take nothing from its window")
  func window() async throws {
    let echo = try await EchoPort.start()
    let client = try await FrameConnection.open(port: echo.port.port)
    // A client that fills each stream's window whatever it is answered: all that is sent is given back in the end.
    let (streams, pieces, bytes) = (20, 16, 16 << 10)
    var sent = 0
    for index in 0..<streams {
      let (stream, method) = (2 * index + 1, index.isMultiple(of: 2) ? "Echo" : "Converse")
      var first = [UInt8](repeating: 0, count: bytes)
      first.replaceSubrange(0..<5, with: [0, 2, 0, 0, 0])
      try await client.send(try client.head(stream, FrameConnection.call(method)))
      for piece in 0..<pieces {
        let payload = piece == 0 ? first : [UInt8](repeating: 0, count: bytes)
        try await client.send(FrameConnection.frame(0, 0, stream, payload))
        sent += bytes
      }
      #expect(try await client.status(of: stream) == 3)
      #expect(sent - client.given < 1 << 20, "\(stream)")
    }
    try await client.request(101, FrameConnection.call("Echo"), [1])
    #expect(try await client.status(of: 101) == 0)
    #expect(sent - client.given <= 512 << 10, "\(sent) \(client.given)")
    await client.close()
    await echo.stop()
  }

  // MARK: What holds a Write stream up

  private func lock(_ path: String, _ client: GRPCTestClient) async throws -> Data {
    var read = Google_Firestore_V1_BatchGetDocumentsRequest()
    read.database = FirestoreTestServer.database
    read.documents = ["\(FirestoreTestServer.documents)/\(path)"]
    read.newTransaction.readWrite = .init()
    let answers: [Google_Firestore_V1_BatchGetDocumentsResponse] = try await client.stream(
      "BatchGetDocuments", read)
    return try #require(answers.first).transaction
  }

  private func release(_ transaction: Data, _ client: GRPCTestClient) async throws {
    var rollback = Google_Firestore_V1_RollbackRequest()
    rollback.database = FirestoreTestServer.database
    rollback.transaction = transaction
    let _: Google_Protobuf_Empty = try await client.unary("Rollback", rollback)
  }
}
