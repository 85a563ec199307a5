// A Realtime Database test server is a port over an empty store in memory. Tests write and read the bytes of real
// sockets.

import Access
import Logging
import NIOCore
import NIOPosix
import OrderedStore
import Ports
import RealtimeEndpoints
import RealtimeModel
import SecurityRules

@testable import RealtimeEngine

/// The server of one test.
struct RealtimeTestServer {
  let port: ListeningPort
  let engine: RealtimeEngine
  let store: MemoryStore

  var host: String { "127.0.0.1:\(port.port)" }

  /// Starts a server, runs the test and stops the server.
  ///
  /// - Parameters:
  ///   - staging: the limits of the engine for large operations.
  ///   - observer: receives the decisions of all databases.
  static func run(
    limits: RealtimeEndpointLimits = .standard, port portLimits: PortLimits = PortLimits(),
    policy: any AccessPolicy<RealtimeAccess> = OpenPolicy(),
    authentication: RealtimeAuthentication = .emulator,
    now: @escaping @Sendable () -> Int64 = SystemTime.milliseconds,
    staging: StagingLimits = .standard, observer: (any DecisionObserver<RealtimeAccess>)? = nil,
    _ test: (RealtimeTestServer) async throws -> Void
  ) async throws {
    let store = try MemoryStore(StoreOptions())
    let engine = RealtimeEngine(
      store: store, policies: PolicyDirectory(default: policy, observer: { _ in observer }),
      rules: { RealtimeRulesPolicy.policy(of: $0) }, staging: staging, now: now)
    var log = Logger(label: "test")
    log.logLevel = .critical
    let endpoint = RealtimeEndpoint(
      engine: engine, authentication: authentication, defaultNamespace: "default-ns", limits: limits, log: log
    )
    let port = try await ListeningPort.bind(
      host: "127.0.0.1", port: 0, protocols: endpoint.protocols(portLimits), limits: portLimits,
      group: MultiThreadedEventLoopGroup.singleton, log: log)
    let server = RealtimeTestServer(port: port, engine: engine, store: store)
    let result: Result<Void, any Error>
    do {
      try await test(server)
      result = .success(())
    } catch {
      result = .failure(error)
    }
    await port.drain(grace: .seconds(1))
    await engine.shutdown()
    try await store.close()
    try result.get()
  }

  /// Publishes rules in a namespace. The default is the namespace of REST requests to 127.0.0.1, whose first
  /// label is `127`.
  func publish(rules: String, in namespace: String = "127") async throws {
    let database = try await engine.database(namespace)
    try await database.setRules(try RulesFile(Array(rules.utf8)), as: .administrator)
  }

  /// Sends one REST request on a new connection.
  func rest(
    _ method: String, _ target: String, body: String? = nil, headers: [String] = [], host: String? = nil
  ) async throws -> RESTAnswer {
    let client = try await RawClient.connect(port.port)
    var text = "\(method) \(target) HTTP/1.1\r\nHost: \(host ?? self.host)\r\nConnection: close\r\n"
    for header in headers { text += header + "\r\n" }
    if let body { text += "Content-Length: \(body.utf8.count)\r\n" }
    try await client.send(text + "\r\n" + (body ?? ""))
    return try RESTAnswer(String(decoding: await client.readToEnd(), as: UTF8.self))
  }
}

/// A parsed response.
struct RESTAnswer {
  var status: Int
  var headers: [String: String] = [:]
  var body: String

  init(_ text: String) throws {
    let parts = text.split(separator: "\r\n\r\n", maxSplits: 1, omittingEmptySubsequences: false)
    let lines = parts[0].split(separator: "\r\n")
    guard parts.count == 2, let first = lines.first, let status = Int(first.split(separator: " ")[1]) else {
      throw RawClient.Failure.closed
    }
    self.status = status
    for line in lines.dropFirst() {
      let sides = line.split(separator: ":", maxSplits: 1)
      headers[sides[0].lowercased()] = String(sides[1].drop { $0 == " " })
    }
    body = String(parts[1])
    if headers["transfer-encoding"] == "chunked" { body = try RESTAnswer.unchunked(parts[1].utf8) }
  }

  /// Decodes a chunked body. Throws if the last chunk is missing.
  private static func unchunked(_ bytes: Substring.UTF8View) throws -> String {
    var rest = Array(bytes)[...]
    var body: [UInt8] = []
    while true {
      guard let line = rest.firstIndex(of: 0x0D),
        let count = Int(String(decoding: rest[..<line], as: UTF8.self), radix: 16),
        rest.count >= line - rest.startIndex + count + 4
      else { throw RawClient.Failure.closed }
      if count == 0 { return String(decoding: body, as: UTF8.self) }
      body += rest.dropFirst(line - rest.startIndex + 2).prefix(count)
      rest = rest.dropFirst(line - rest.startIndex + count + 4)
    }
  }
}

/// A TCP connection that sends and receives bytes.
final class RawClient {
  enum Failure: Error {
    case closed
  }

  private final class Collector: ChannelInboundHandler, Sendable {
    typealias InboundIn = ByteBuffer
    let continuation: AsyncStream<[UInt8]>.Continuation

    init(_ continuation: AsyncStream<[UInt8]>.Continuation) { self.continuation = continuation }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      continuation.yield(Array(unwrapInboundIn(data).readableBytesView))
    }

    func channelInactive(context: ChannelHandlerContext) { continuation.finish() }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
  }

  let channel: any Channel
  private var chunks: AsyncStream<[UInt8]>.Iterator
  private(set) var received: [UInt8] = []

  private init(_ channel: any Channel, _ chunks: AsyncStream<[UInt8]>) {
    self.channel = channel
    self.chunks = chunks.makeAsyncIterator()
  }

  /// - Parameter local: the address of this end of the connection.
  static func connect(_ port: Int, from local: SocketAddress? = nil) async throws -> RawClient {
    let (stream, continuation) = AsyncStream<[UInt8]>.makeStream()
    var bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
    if let local { bootstrap = bootstrap.bind(to: local) }
    let channel =
      try await bootstrap
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(Collector(continuation))
        }
      }
      .connect(host: "127.0.0.1", port: port).get()
    return RawClient(channel, stream)
  }

  func send(_ text: String) async throws { try await send(Array(text.utf8)) }

  func send(_ bytes: [UInt8]) async throws {
    try await channel.writeAndFlush(ByteBuffer(bytes: bytes)).get()
  }

  func close() async { try? await channel.close().get() }

  /// Waits for more bytes. Returns false at the end of the connection. If nothing arrives within a minute, closes the
  /// connection, so that a server that does not end it fails the test.
  private func readMore() async -> Bool {
    let deadline = channel.eventLoop.scheduleTask(in: .seconds(60)) { [channel] in
      channel.close(promise: nil)
    }
    defer { deadline.cancel() }
    var iterator = chunks
    let chunk = await iterator.next(isolation: #isolation)
    chunks = iterator
    guard let chunk else { return false }
    received += chunk
    return true
  }

  /// Reads exactly `count` bytes.
  func read(_ count: Int) async throws -> [UInt8] {
    while received.count < count {
      guard await readMore() else { throw Failure.closed }
    }
    defer { received.removeFirst(count) }
    return Array(received[..<count])
  }

  /// Reads until `end` arrives, and returns everything up to and including it.
  func read(through end: String) async throws -> String {
    let end = Array(end.utf8)
    var from = 0
    while true {
      if received.count >= end.count {
        for start in from...(received.count - end.count)
        where received[start..<(start + end.count)].elementsEqual(end) {
          return String(decoding: try await read(start + end.count), as: UTF8.self)
        }
        from = received.count - end.count
      }
      guard await readMore() else { throw Failure.closed }
    }
  }

  /// Reads until the server closes the connection.
  func readToEnd() async -> [UInt8] {
    while await readMore() {}
    return received
  }
}
