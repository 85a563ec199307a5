// Tests that closed connections are released.

import Access
import FirestoreEndpoints
import FirestoreEngine
import Logging
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import OrderedStore
import Ports
import Testing

@testable import EndpointFixture

@Suite("Closed connections", .timeLimit(.minutes(1)))
struct ClosedConnectionTests {
  private struct WeakChannel {
    weak var channel: (any Channel)?
  }

  @Test("The channel of a closed connection is released, over gRPC and HTTP/1.1")
  func release() async throws {
    let log = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    let engine = FirestoreEngine(
      store: try MemoryStore(), policy: OpenPolicy(), options: .init(createsDatabases: true))
    let channels = NIOLockedValueBox<[WeakChannel]>([])
    var protocols = PortProtocols.firestore(engine, authentication: .emulator, log: log)
    let (http1, http2) = (protocols.http1, try #require(protocols.http2))
    protocols.http1 = { channel in
      channels.withLockedValue { $0.append(WeakChannel(channel: channel)) }
      try http1(channel)
    }
    protocols.http2 = { channel in
      channels.withLockedValue { $0.append(WeakChannel(channel: channel)) }
      return try http2(channel)
    }
    let port = try await ListeningPort.bind(
      host: "127.0.0.1", port: 0, protocols: protocols, tls: nil, limits: PortLimits(),
      group: MultiThreadedEventLoopGroup.singleton, log: log)
    for _ in 0..<3 {
      let client = try await GRPCTestClient.connect(port: port.port)
      try await client.commit([.set("c/d", ["n": .int(1)])])
      await client.close()
      let reply = try await RESTClient.request(
        port.port, "GET", "/v1/projects/demo/databases/(default)/documents/c/d")
      #expect(reply.status == 200 || reply.status == 404)
    }
    #expect(
      try await eventually {
        channels.withLockedValue { $0.count == 6 && $0.allSatisfy { $0.channel == nil } }
      })
    await engine.shutDown()
    await port.drain(grace: .seconds(2))
  }
}
