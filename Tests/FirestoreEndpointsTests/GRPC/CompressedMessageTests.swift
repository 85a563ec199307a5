// Tests gRPC calls with compressed messages: the forms that official clients send, decompression bombs, and
// damaged streams.

import FirestoreProtobuf
import GRPCFraming
import NIOCore
import NIOHPACK
import SwiftProtobuf
import Testing

@testable import EndpointFixture
@testable import Ports

@Suite("Compressed messages", .timeLimit(.minutes(5)))
struct CompressedMessageTests {
  private func framed(_ message: [UInt8], isCompressed: Bool = true) -> ByteBuffer {
    var buffer = ByteBuffer()
    buffer.writeInteger(UInt8(isCompressed ? 1 : 0))
    buffer.writeInteger(UInt32(message.count))
    buffer.writeBytes(message)
    return buffer
  }

  private func withEcho(
    _ limits: PortLimits = PortLimits(), _ body: (GRPCTestClient) async throws -> Void
  ) async throws {
    let echo = try await EchoPort.start(limits: limits)
    let client = try await echo.connect()
    let result: Result<Void, any Error>
    do { result = .success(try await body(client)) } catch { result = .failure(error) }
    await client.close()
    await echo.stop()
    try result.get()
  }

  private func open(
    _ client: GRPCTestClient, _ method: String = "Echo", _ encoding: String? = "gzip"
  ) async throws -> GRPCTestCall {
    try await client.open(
      method, service: EchoPort.service, metadata: encoding.map { [("grpc-encoding", $0)] } ?? [])
  }

  /// Returns the status of a call with one message.
  private func status(
    _ client: GRPCTestClient, _ message: [UInt8], isCompressed: Bool = true, _ encoding: String? = "gzip"
  ) async throws -> GRPCStatus {
    let call = try await open(client, "Echo", encoding)
    try? await call.send(raw: framed(message, isCompressed: isCompressed), endStream: true)
    return try await call.status()
  }

  private func expectEcho(_ call: GRPCTestCall, _ bytes: [UInt8]) async throws {
    guard case .metadata(let headers) = try await call.next() else { throw DeadlinePassed() }
    #expect(headers.first(name: "grpc-accept-encoding") == "gzip,deflate,identity")
    #expect(headers.first(name: "grpc-encoding") == nil)
    #expect(try await call.next() == .message(ByteBuffer(bytes: bytes)))
    #expect(try await call.status() == .ok)
  }

  @Test(
    "Small and large messages are decompressed, with gzip and with deflate",
    arguments: [("gzip", CompressionAlgorithm.gzip), ("deflate", .deflate)])
  func decompression(encoding: String, algorithm: CompressionAlgorithm) async throws {
    try await withEcho { client in
      let large = (0..<(3 << 20)).map { UInt8(truncatingIfNeeded: $0 / 3 &* 31) }
      let noise = (0..<300_000).map { _ in UInt8.random(in: 0...255) }
      for bytes in [[], [1, 2, 3], [UInt8](repeating: 0, count: 5 << 20), large, noise] {
        let call = try await open(client, "Echo", encoding)
        try await call.send(raw: framed(TestCompressor.compress(bytes, algorithm)), endStream: true)
        try await expectEcho(call, bytes)
        // A call whose headers name an encoding may still send an uncompressed message.
        let plain = try await open(client, "Echo", encoding)
        try await plain.send(raw: framed(bytes, isCompressed: false), endStream: true)
        try await expectEcho(plain, bytes)
      }
    }
  }

  @Test("A stream's messages arrive in order, compressed or not, small or large")
  func duplexStream() async throws {
    try await withEcho { client in
      let call = try await open(client, "Converse")
      var sent: [[UInt8]] = []
      var bytes = ByteBuffer()
      for index in 0..<40 {
        let message = [UInt8](repeating: UInt8(index), count: index % 3 == 0 ? 200_000 : index)
        sent.append(message)
        let isCompressed = index % 4 != 0
        bytes.writeImmutableBuffer(
          framed(isCompressed ? TestCompressor.compress(message) : message, isCompressed: isCompressed))
      }
      try await call.send(raw: bytes, endStream: true)
      var received: [[UInt8]] = []
      while true {
        switch try await call.next() {
        case .metadata: continue
        case .message(let message): received.append(Array(message.readableBytesView))
        case .end(let status, _):
          #expect(status == .ok)
          #expect(received == sent)
          return
        }
      }
    }
  }

  @Test("A decompression bomb is rejected with the service's size error, and its connection continues")
  func bomb() async throws {
    var limits = PortLimits()
    limits.http2.maximumMessageSize = 4 << 20
    try await withEcho(limits) { client in
      let largest = [UInt8](repeating: 0, count: 4 << 20)
      #expect(try await status(client, TestCompressor.compress(largest)) == .ok)
      for bomb in [
        TestCompressor.bomb((4 << 20) + 1), TestCompressor.bomb(256 << 20),
        TestCompressor.compress(largest) + TestCompressor.bomb(1),
      ] {
        let rejected = try await status(client, bomb)
        #expect(rejected == GRPCStatus(.invalidArgument, "Too many bytes"))
      }
      #expect(try await status(client, [1], isCompressed: false, nil) == .ok)
    }
  }

  @Test("The decompressed sizes of many messages count against the memory limit of their connection")
  func budget() async throws {
    var limits = PortLimits()
    limits.http2.maximumBufferedRequestBytes = 8 << 20
    try await withEcho(limits) { client in
      var calls: [GRPCTestCall] = []
      for _ in 0..<4 {
        let call = try await open(client, "Hang")
        try await call.send(raw: framed(TestCompressor.bomb(3 << 20)), endStream: true)
        calls.append(call)
      }
      for call in calls[2...] { #expect(try await call.status().code == .resourceExhausted) }
      #expect(!calls[0].hasUnreadEvents && !calls[1].hasUnreadEvents)
      #expect(try await status(client, TestCompressor.compress([1])) == .ok)
    }
  }

  @Test("The only message of a request stays compressed until the request is complete")
  func incompleteRequest() async throws {
    var limits = PortLimits()
    limits.memory = MemoryBudget(limit: 64 << 20)
    try await withEcho(limits) { client in
      var calls: [GRPCTestCall] = []
      for _ in 0..<4 {
        let call = try await open(client)
        try await call.send(raw: framed(TestCompressor.bomb(6 << 20)))
        calls.append(call)
      }
      // The messages of the four incomplete requests are not decompressed. A complete request with such a message
      // succeeds.
      #expect(try await status(client, TestCompressor.bomb(6 << 20)) == .ok)
      #expect(try await eventually { limits.memory.used < 1 << 20 }, "\(limits.memory.used)")
      for call in calls {
        #expect(!call.hasUnreadEvents)
        try await call.halfClose()
        #expect(try await call.status() == .ok)
      }
      // A second message is rejected when it arrives.
      let call = try await open(client)
      try await call.send(raw: framed(TestCompressor.compress([1])))
      try? await call.send(raw: framed(TestCompressor.compress([2])))
      #expect(try await call.status().code == .internal)
      // A request without a message is rejected.
      let none = try await open(client)
      try await none.halfClose()
      #expect(try await none.status().code == .internal)
    }
  }

  @Test("A call that is reset or expires before decompression releases its message")
  func endBeforeDecompression() async throws {
    var limits = PortLimits()
    limits.memory = MemoryBudget(limit: 64 << 20)
    let noise = TestCompressor.compress((0..<(2 << 20)).map { _ in UInt8.random(in: 0...255) })
    try await withEcho(limits) { client in
      try await BusyThreads.withBusyDecompression { busy in
        // The decompression threads are blocked, so the messages wait. The reset of a call must release its message.
        for method in ["Echo", "Converse", "Echo"] {
          let call = try await open(client, method)
          try await call.send(raw: framed(noise), endStream: true)
          #expect(try await eventually { limits.memory.used > 1_900_000 })
          try await call.reset()
          #expect(try await eventually { limits.memory.used < 1 << 20 })
        }
        let late = try await client.open(
          "Echo", service: EchoPort.service, metadata: [("grpc-encoding", "gzip")],
          timeout: GRPCTimeout(nanoseconds: 300_000_000))
        try? await late.send(raw: framed(noise), endStream: true)
        #expect(try await late.status().code == .deadlineExceeded)
        #expect(try await eventually { limits.memory.used < 1 << 20 })
        let other = try await GRPCTestClient.connect(port: try #require(client.channel.remoteAddress?.port))
        let abandoned = try await open(other, "Echo")
        try await abandoned.send(raw: framed(noise), endStream: true)
        #expect(try await eventually { limits.memory.used > 1_900_000 })
        await other.close()
        #expect(try await eventually { limits.memory.used < 1 << 20 })
        busy.free()
        #expect(try await status(client, noise) == .ok)
      }
    }
  }

  @Test("A request that arrives in time does not expire while its message waits for decompression")
  func timeoutDuringDecompression() async throws {
    var limits = PortLimits()
    limits.http2.requestTimeout = .milliseconds(200)
    let noise = TestCompressor.compress((0..<50_000).map { _ in UInt8.random(in: 0...255) })
    try await withEcho(limits) { client in
      try await BusyThreads.withBusyDecompression { busy in
        let call = try await open(client)
        try await call.send(raw: framed(noise))
        try await call.halfClose()
        let unfinished = try await open(client)
        try await unfinished.send(raw: framed(noise))
        #expect(try await unfinished.status().code == .deadlineExceeded)
        #expect(!call.hasUnreadEvents)
        busy.free()
        #expect(try await call.status() == .ok)
      }
    }
  }

  @Test("A message that cannot be decompressed is INTERNAL, and its connection continues")
  func damagedMessages() async throws {
    try await withEcho { client in
      let complete = TestCompressor.compress(Array("some text".utf8))
      let large = TestCompressor.compress((0..<100_000).map { _ in UInt8.random(in: 0...255) })
      let noise = (0..<1_000).map { _ in UInt8.random(in: 0...255) }
      for message in [
        [], noise, Array(complete.dropLast()), complete + [0], complete + noise, Array(large.dropLast()),
        large + [0],
      ] {
        let rejected = try await status(client, message)
        #expect(rejected.code == .internal, "\(rejected)")
      }
      #expect(try await status(client, complete + complete) == .ok, "several gzip streams are one message")
      #expect(try await status(client, complete) == .ok)
    }
  }

  @Test(
    "A compressed message whose call names no encoding is INTERNAL; a call with an unknown encoding is UNIMPLEMENTED"
  )
  func encodings() async throws {
    try await withEcho { client in
      let compressed = TestCompressor.compress([1])
      #expect(try await status(client, compressed, nil).code == .internal)
      #expect(try await status(client, compressed, "identity").code == .internal)
      let call = try await open(client, "Echo", "snappy")
      guard case .end(let rejected, let headers) = try await call.next() else { throw DeadlinePassed() }
      #expect(rejected.code == .unimplemented)
      #expect(headers.first(name: "grpc-accept-encoding") == "gzip,deflate,identity")
      #expect(try await status(client, compressed) == .ok)
    }
  }

  @Test("A call that ends during decompression does not affect later calls")
  func endDuringDecompression() async throws {
    try await withEcho { client in
      for _ in 0..<20 {
        let call = try await open(client)
        try await call.send(raw: framed(TestCompressor.bomb(16 << 20)), endStream: true)
        try? await call.reset()
      }
      #expect(try await status(client, TestCompressor.compress([1])) == .ok)
    }
  }

  @Test("A compressed Commit and a compressed query succeed")
  func firestore() async throws {
    try await FirestoreTestServer.with { client in
      func call(_ method: String, _ request: some Message) async throws -> GRPCTestCall {
        let call = try await client.open(method, metadata: [("grpc-encoding", "gzip")])
        let bytes: [UInt8] = try request.serializedBytes()
        try await call.send(raw: framed(TestCompressor.compress(bytes)), endStream: true)
        return call
      }
      let text = String(repeating: "x", count: 500_000)
      let commit = Google_Firestore_V1_CommitRequest.with {
        $0.database = FirestoreTestServer.database
        $0.writes = [.set("c/d", ["t": .text(text)])]
      }
      #expect(try await call("Commit", commit).status() == .ok)
      let found: Google_Firestore_V1_RunQueryResponse = try await call(
        "RunQuery", Google_Firestore_V1_RunQueryRequest.collection("c")
      ).message()
      #expect(found.document.fields["t"] == .text(text))
    }
  }
}
