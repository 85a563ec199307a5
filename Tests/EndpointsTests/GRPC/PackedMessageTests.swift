// gRPC calls whose messages come compressed: what genuine clients send once compression is switched on, and what bombs and
// broken streams do.

import FirestoreProtobuf
import GRPCFraming
import NIOCore
import NIOHPACK
import SwiftProtobuf
import Testing

@testable import Endpoints

@Suite("Compressed messages", .timeLimit(.minutes(5)))
struct PackedMessageTests {
  private func framed(_ message: [UInt8], isPacked: Bool = true) -> ByteBuffer {
    var buffer = ByteBuffer()
    buffer.writeInteger(UInt8(isPacked ? 1 : 0))
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

  /// What a call with one message answers.
  private func status(
    _ client: GRPCTestClient, _ message: [UInt8], isPacked: Bool = true, _ encoding: String? = "gzip"
  ) async throws -> GRPCStatus {
    let call = try await open(client, "Echo", encoding)
    try? await call.send(raw: framed(message, isPacked: isPacked), endStream: true)
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
    "A compressed message is unpacked, be it small, or large in either form",
    arguments: [("gzip", CompressionAlgorithm.gzip), ("deflate", .deflate)])
  func unpacked(encoding: String, packing: CompressionAlgorithm) async throws {
    try await withEcho { client in
      let large = (0..<(3 << 20)).map { UInt8(truncatingIfNeeded: $0 / 3 &* 31) }
      let noise = (0..<300_000).map { _ in UInt8.random(in: 0...255) }
      for bytes in [[], [1, 2, 3], [UInt8](repeating: 0, count: 5 << 20), large, noise] {
        let call = try await open(client, "Echo", encoding)
        try await call.send(raw: framed(Packer.pack(bytes, packing)), endStream: true)
        try await expectEcho(call, bytes)
        // A message that was not worth it comes as it is.
        let plain = try await open(client, "Echo", encoding)
        try await plain.send(raw: framed(bytes, isPacked: false), endStream: true)
        try await expectEcho(plain, bytes)
      }
    }
  }

  @Test("A conversation's messages come in order, compressed or not, large or small")
  func conversation() async throws {
    try await withEcho { client in
      let call = try await open(client, "Converse")
      var sent: [[UInt8]] = []
      var bytes = ByteBuffer()
      for index in 0..<40 {
        let message = [UInt8](repeating: UInt8(index), count: index % 3 == 0 ? 200_000 : index)
        sent.append(message)
        let isPacked = index % 4 != 0
        bytes.writeImmutableBuffer(
          framed(isPacked ? Packer.pack(message) : message, isPacked: isPacked))
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

  @Test("A message that stands for too much is refused as the service says, and its connection goes on")
  func bomb() async throws {
    var limits = PortLimits()
    limits.http2.maximumMessageSize = 4 << 20
    try await withEcho(limits) { client in
      let fits = [UInt8](repeating: 0, count: 4 << 20)
      #expect(try await status(client, Packer.pack(fits)) == .ok)
      for bomb in [
        Packer.bomb((4 << 20) + 1), Packer.bomb(256 << 20), Packer.pack(fits) + Packer.bomb(1),
      ] {
        let refused = try await status(client, bomb)
        #expect(refused == GRPCStatus(.invalidArgument, "Too many bytes"))
      }
      #expect(try await status(client, [1], isPacked: false, nil) == .ok)
    }
  }

  @Test("What many messages stand for is held against their connection")
  func budget() async throws {
    var limits = PortLimits()
    limits.http2.maximumBufferedRequestBytes = 8 << 20
    try await withEcho(limits) { client in
      var calls: [GRPCTestCall] = []
      for _ in 0..<4 {
        let call = try await open(client, "Hang")
        try await call.send(raw: framed(Packer.bomb(3 << 20)), endStream: true)
        calls.append(call)
      }
      for call in calls[2...] { #expect(try await call.status().code == .resourceExhausted) }
      #expect(!calls[0].hasNews && !calls[1].hasNews)
      #expect(try await status(client, Packer.pack([1])) == .ok)
    }
  }

  @Test("The only message of a request is kept as it came until the request is whole")
  func unfinished() async throws {
    var limits = PortLimits()
    limits.memory = MemoryBudget(limit: 64 << 20)
    try await withEcho(limits) { client in
      var calls: [GRPCTestCall] = []
      for _ in 0..<4 {
        let call = try await open(client)
        try await call.send(raw: framed(Packer.bomb(6 << 20)))
        calls.append(call)
      }
      // As large a message, behind those.
      #expect(try await status(client, Packer.bomb(6 << 20)) == .ok)
      #expect(try await eventually { limits.memory.used < 1 << 20 }, "\(limits.memory.used)")
      for call in calls {
        #expect(!call.hasNews)
        try await call.halfClose()
        #expect(try await call.status() == .ok)
      }
      // One that is too many is refused when it comes.
      let call = try await open(client)
      try await call.send(raw: framed(Packer.pack([1])))
      try? await call.send(raw: framed(Packer.pack([2])))
      #expect(try await call.status().code == .internal)
      // Without any, there is nothing to unpack.
      let none = try await open(client)
      try await none.halfClose()
      #expect(try await none.status().code == .internal)
    }
  }

  @Test("A call that ends before its message is unpacked holds it no longer, be it reset or out of time")
  func givenUpEarly() async throws {
    var limits = PortLimits()
    limits.memory = MemoryBudget(limit: 64 << 20)
    let noise = Packer.pack((0..<(2 << 20)).map { _ in UInt8.random(in: 0...255) })
    try await withEcho(limits) { client in
      try await BusyThreads.whileUnpacking { busy in
        // The first is handed to the threads, which are busy; others wait on the connection.
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
        let gone = try await GRPCTestClient.connect(port: try #require(client.channel.remoteAddress?.port))
        let lost = try await open(gone, "Echo")
        try await lost.send(raw: framed(noise), endStream: true)
        #expect(try await eventually { limits.memory.used > 1_900_000 })
        await gone.close()
        #expect(try await eventually { limits.memory.used < 1 << 20 })
        busy.free()
        #expect(try await status(client, noise) == .ok)
      }
    }
  }

  @Test("A request that arrived whole in time is not late, however long its message waits to be unpacked")
  func notLate() async throws {
    var limits = PortLimits()
    limits.http2.requestTimeout = .milliseconds(200)
    let noise = Packer.pack((0..<50_000).map { _ in UInt8.random(in: 0...255) })
    try await withEcho(limits) { client in
      try await BusyThreads.whileUnpacking { busy in
        let call = try await open(client)
        try await call.send(raw: framed(noise))
        try await call.halfClose()
        let unfinished = try await open(client)
        try await unfinished.send(raw: framed(noise))
        #expect(try await unfinished.status().code == .deadlineExceeded)
        #expect(!call.hasNews)
        busy.free()
        #expect(try await call.status() == .ok)
      }
    }
  }

  @Test("What cannot be unpacked is INTERNAL, and its connection goes on")
  func damaged() async throws {
    try await withEcho { client in
      let whole = Packer.pack(Array("some text".utf8))
      let large = Packer.pack((0..<100_000).map { _ in UInt8.random(in: 0...255) })
      let noise = (0..<1_000).map { _ in UInt8.random(in: 0...255) }
      for message in [
        [], noise, Array(whole.dropLast()), whole + [0], whole + noise, Array(large.dropLast()), large + [0],
      ] {
        let refused = try await status(client, message)
        #expect(refused.code == .internal, "\(refused)")
      }
      #expect(try await status(client, whole + whole) == .ok, "one gzip may follow another")
      #expect(try await status(client, whole) == .ok)
    }
  }

  @Test(
    "A compressed message without a named encoding is INTERNAL, an unknown encoding UNIMPLEMENTED with what is accepted"
  )
  func encodings() async throws {
    try await withEcho { client in
      let packed = Packer.pack([1])
      #expect(try await status(client, packed, nil).code == .internal)
      #expect(try await status(client, packed, "identity").code == .internal)
      let call = try await open(client, "Echo", "snappy")
      guard case .end(let refused, let headers) = try await call.next() else { throw DeadlinePassed() }
      #expect(refused.code == .unimplemented)
      #expect(headers.first(name: "grpc-accept-encoding") == "gzip,deflate,identity")
      #expect(try await status(client, packed) == .ok)
    }
  }

  @Test("A call that ends while its message is unpacked leaves nothing behind")
  func givenUp() async throws {
    try await withEcho { client in
      for _ in 0..<20 {
        let call = try await open(client)
        try await call.send(raw: framed(Packer.bomb(16 << 20)), endStream: true)
        try? await call.reset()
      }
      #expect(try await status(client, Packer.pack([1])) == .ok)
    }
  }

  @Test("A compressed Commit and a compressed query are served as others are")
  func firestore() async throws {
    try await FirestoreTestServer.with { client in
      func call(_ method: String, _ request: some Message) async throws -> GRPCTestCall {
        let call = try await client.open(method, metadata: [("grpc-encoding", "gzip")])
        let bytes: [UInt8] = try request.serializedBytes()
        try await call.send(raw: framed(Packer.pack(bytes)), endStream: true)
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
