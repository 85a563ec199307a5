// Peers that send a great many tiny pieces: the other connections of their event loop have their turns in between, and
// nothing of what was sent is lost or overtaken.

import Endpoints
import Logging
import NIOCore
import NIOPosix
import OrderedStore
import RealtimeEngine
import RealtimeModel
import Testing

@Suite("Turns of an event loop", .timeLimit(.minutes(2)))
struct InboundTurnsTests {
  /// A Realtime Database port whose connections all share one event loop.
  private func withOneLoop(_ test: (Int, RealtimeEngine) async throws -> Void) async throws {
    let store = try MemoryStore(StoreOptions())
    let engine = RealtimeEngine(store: store, policy: EmulatorPolicy())
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

  /// So many bytes of a JSON string, each a chunk of its own.
  private func chunks(_ count: Int) -> [UInt8] {
    Array(
      ("1\r\n\"\r\n" + String(repeating: "1\r\nx\r\n", count: count) + "1\r\n\"\r\n0\r\n\r\n").utf8)
  }

  /// Has others ask for something until a peer is done; how often they were answered.
  private func answers(on port: Int, while peer: () async throws -> Void) async throws -> Int {
    let asking = Task {
      let other = try await RawClient.connect(port)
      var count = 0
      while !Task.isCancelled {
        try await other.send("GET /none.json?ns=demo HTTP/1.1\r\nHost: h\r\n\r\n")
        do {
          _ = try await other.read(through: "null")
        } catch {
          // The stream of what is received ends with the task.
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
    asking.cancel()
    let count = try await asking.value
    try result.get()
    return count
  }

  @Test("A body of one-byte chunks leaves the others their turns, and arrives")
  func chunkedBody() async throws {
    try await withOneLoop { port, engine in
      let count = 200_000
      let answers = try await answers(on: port) {
        let client = try await RawClient.connect(port)
        try await client.send(Self.head)
        try await client.send(chunks(count))
        let answer = String(decoding: await client.readToEnd(), as: UTF8.self)
        #expect(answer.hasPrefix("HTTP/1.1 200 OK"))
      }
      // The reads of sockets alone are some twenty.
      #expect(answers > 100, "\(answers) answers")
      let text = try await engine.database("demo").get("text", as: .anonymous)
      #expect(text == .leaf(.string(String(repeating: "x", count: count))))
    }
  }

  @Test("A message of one-byte frames leaves the others their turns, and arrives")
  func frames() async throws {
    try await withOneLoop { port, engine in
      let count = 100_000
      let answers = try await answers(on: port) {
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
        let answer = try await RawSocket.readFrame(client)
        #expect(
          String(decoding: answer.payload, as: UTF8.self) == #"{"t":"d","d":{"r":1,"b":{"s":"ok","d":""}}}"#)
        await client.close()
      }
      #expect(answers > 100, "\(answers) answers")
      let text = try await engine.database("demo").get("text", as: .anonymous)
      #expect(text == .leaf(.string(String(repeating: "x", count: count))))
    }
  }

  @Test("A peer that ends its direction behind its pieces is answered")
  func halfClosed() async throws {
    try await withOneLoop { port, engine in
      let client = try await RawClient.connect(port)
      try await client.send(Self.head)
      try await client.send(chunks(50_000))
      try await client.channel.close(mode: .output).get()
      let answer = String(decoding: await client.readToEnd(), as: UTF8.self)
      #expect(answer.hasPrefix("HTTP/1.1 200 OK"))
    }
  }

  @Test("Requests of a peer that closes at once are carried out")
  func closedBehind() async throws {
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
      let node = try await engine.database("demo").get("r", as: .anonymous)
      #expect(node.childCount == 200)
    }
  }

  @Test("A peer that floods is closed in the end, with whatever it floods")
  func drained() async throws {
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
