// Tests that a connection with much input leaves its event loop to other connections, and that its input arrives
// complete and in order.

import Access
import Logging
import NIOCore
import NIOPosix
import OrderedStore
import RealtimeEngine
import RealtimeModel
import Testing

@testable import EndpointFixture
@testable import Ports
@testable import RealtimeEndpoints

@Suite("Fairness between the connections of an event loop", .timeLimit(.minutes(2)))
struct InputFairnessTests {
  /// A Realtime Database port whose connections all share one event loop.
  private func withOneLoop(_ test: (Int, RealtimeEngine) async throws -> Void) async throws {
    let store = try MemoryStore(StoreOptions())
    let engine = RealtimeEngine(store: store, policy: OpenPolicy())
    var log = Logger(label: "test")
    log.logLevel = .critical
    let endpoint = RealtimeEndpoint(
      engine: engine, authentication: .emulator, defaultNamespace: "demo", log: log)
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let port = try await ListeningPort.bind(
      host: "127.0.0.1", port: 0, protocols: endpoint.protocols(), group: group, log: log)
    let result: Result<Void, any Error>
    do {
      try await test(port.port, engine)
      result = .success(())
    } catch { result = .failure(error) }
    await port.drain(grace: .seconds(1))
    await engine.shutdown()
    try await store.close()
    try await group.shutdownGracefully()
    try result.get()
  }

  private static let head =
    "PUT /text.json?ns=demo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"

  /// A JSON string of `count` bytes, one byte per chunk.
  private func chunks(_ count: Int) -> [UInt8] {
    Array(
      ("1\r\n\"\r\n" + String(repeating: "1\r\nx\r\n", count: count) + "1\r\n\"\r\n0\r\n\r\n").utf8)
  }

  /// The number of responses that another connection gets while `peer` runs.
  private func responses(on port: Int, while peer: () async throws -> Void) async throws -> Int {
    let reader = Task {
      let other = try await RawClient.connect(port)
      var count = 0
      while !Task.isCancelled {
        try await other.send("GET /none.json?ns=demo HTTP/1.1\r\nHost: h\r\n\r\n")
        do {
          _ = try await other.read(through: "null")
        } catch {
          // The stream of received bytes ends with the task.
          if Task.isCancelled { break }
          throw error
        }
        count += 1
      }
      await other.close()
      return count
    }
    let result: Result<Void, any Error>
    do {
      try await peer()
      result = .success(())
    } catch { result = .failure(error) }
    reader.cancel()
    let count = try await reader.value
    try result.get()
    return count
  }

  @Test("While a body of one-byte chunks is parsed, other connections are served after every read")
  func chunkedBody() async throws {
    try await withOneLoop { port, engine in
      let count = 200_000
      let responses = try await responses(on: port) {
        let client = try await RawClient.connect(port)
        try await client.send(Self.head)
        try await client.send(chunks(count))
        let response = String(decoding: await client.readToEnd(), as: UTF8.self)
        #expect(response.hasPrefix("HTTP/1.1 200 OK"))
      }
      // 1.2 MB arrive in 74 reads of 16 KiB. The other connection may be served after each of them.
      #expect(responses > 30, "\(responses) responses")
      let text = try await engine.database("demo").get("text", as: .nobody)
      #expect(text == .leaf(.string(String(repeating: "x", count: count))))
    }
  }

  @Test("While a message of one-byte frames is parsed, other connections are served after every read")
  func frames() async throws {
    try await withOneLoop { port, engine in
      let count = 100_000
      let responses = try await responses(on: port) {
        let client = try await RawClient.connect(port)
        try await client.send(
          "GET /.ws?v=5&ns=demo HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n")
        _ = try await client.read(through: "\r\n\r\n")
        _ = try await RawSocket.readFrame(client)
        let message = #"{"t":"d","d":{"r":1,"a":"p","b":{"p":"/text","d":""#
        var bytes = RawSocket.frame(1, Array(message.utf8), fin: false)
        let frame = RawSocket.frame(0, Array("x".utf8), fin: false)
        for _ in 0..<count { bytes += frame }
        bytes += RawSocket.frame(0, Array(#""}}}"#.utf8))
        try await client.send(bytes)
        let response = try await RawSocket.readFrame(client)
        #expect(
          String(decoding: response.payload, as: UTF8.self) == #"{"t":"d","d":{"r":1,"b":{"s":"ok","d":""}}}"#
        )
        await client.close()
      }
      // 700 KB arrive in 43 reads of 16 KiB. The other connection may be served after each of them.
      #expect(responses > 15, "\(responses) responses")
      let text = try await engine.database("demo").get("text", as: .nobody)
      #expect(text == .leaf(.string(String(repeating: "x", count: count))))
    }
  }

  @Test("A peer that half-closes after its chunks gets a response")
  func halfClosed() async throws {
    try await withOneLoop { port, engine in
      let client = try await RawClient.connect(port)
      try await client.send(Self.head)
      try await client.send(chunks(50_000))
      try await client.channel.close(mode: .output).get()
      let response = String(decoding: await client.readToEnd(), as: UTF8.self)
      #expect(response.hasPrefix("HTTP/1.1 200 OK"))
    }
  }

  @Test("Requests of a peer that half-closes immediately are executed")
  func requestsBeforeClose() async throws {
    try await withOneLoop { port, engine in
      let client = try await RawClient.connect(port)
      var requests = ""
      for index in 0..<200 {
        requests +=
          "PUT /r/\(index).json?ns=demo&print=silent HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n1"
      }
      try await client.send(requests)
      try await client.channel.close(mode: .output).get()
      _ = await client.readToEnd()
      let node = try await engine.database("demo").get("r", as: .nobody)
      #expect(node.childCount == 200)
    }
  }

  @Test("Other connections are served while a connection with unread input closes")
  func unreadInput() async throws {
    try await withOneLoop { port, _ in
      let client = try await RawClient.connect(port)
      try await client.send(Self.head)
      try await client.send(Array(repeating: Array("1\r\nx\r\n".utf8), count: 100_000).flatMap { $0 })
      await client.close()
      let other = try await RawClient.connect(port)
      try await other.send("GET /none.json?ns=demo HTTP/1.1\r\nHost: h\r\n\r\n")
      _ = try await other.read(through: "null")
      await other.close()
    }
  }
}
