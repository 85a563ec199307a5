// A Firestore test port runs over an engine that the test configures. It has settings that a complete server
// does not offer: the lock timeout, the access policy and the store.

import Access
import EmulatorSuite
import FirestoreEndpoints
import FirestoreEngine
import Logging
import NIOCore
import NIOPosix
import OrderedStore
import Ports

struct FirestoreTestPort {
  let engine: FirestoreEngine
  let port: ListeningPort
  let client: GRPCTestClient

  static func with(
    store: any OrderedStore, policy: any AccessPolicy<FirestoreAccess> = OpenPolicy(),
    lockWait: UInt64 = 2_000_000,
    limits: PortLimits = PortLimits(), webChannel: WebChannelLimits = WebChannelLimits(),
    _ body: (FirestoreTestPort) async throws -> Void
  ) async throws {
    let log = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    let engine = FirestoreEngine(
      store: store, policy: policy, options: .init(createsDatabases: true, lockWait: lockWait))
    let port = try await ListeningPort.bind(
      host: "127.0.0.1", port: 0,
      protocols: .firestore(
        engine, authentication: .emulator, limits: limits, webChannel: webChannel,
        handlers: [FirestoreEmulator(engine, log: log)], log: log),
      tls: nil, limits: limits, group: MultiThreadedEventLoopGroup.singleton, log: log)
    let testPort = FirestoreTestPort(
      engine: engine, port: port, client: try await GRPCTestClient.connect(port: port.port))
    let result: Result<Void, any Error>
    do { result = .success(try await body(testPort)) } catch { result = .failure(error) }
    await testPort.client.close()
    await engine.shutDown()
    await port.drain(grace: .seconds(2))
    try result.get()
  }
}
