// Tests of serializability: thousands of concurrent transactions, whose reads must match a serial order. The transactions
// run on the engine in this process, over sockets, and while the server is killed.
//
// The environment variable HEARTH_SERIALIZABILITY is the number of rounds. Each round has new lists, because the cost of a
// transaction grows with the length of its lists. The environment variable HEARTH_SEED selects the requests. The order in
// which the requests of several clients interleave is not reproducible.

import Access
import EmbeddedStore
import FirestoreEngine
import FirestoreModel
import Foundation
import HearthServer
import NIOConcurrencyHelpers
import NIOCore
import Testing

@testable import EndpointFixture

/// The rounds of each test; one by default.
private let rounds =
  0..<UInt64(max(1, ProcessInfo.processInfo.environment["HEARTH_SERIALIZABILITY"].flatMap { Int($0) } ?? 1))

@Suite("Serializability", .serialized, .timeLimit(.minutes(15)))
struct SerializabilityTests {
  private static let seed =
    ProcessInfo.processInfo.environment["HEARTH_SEED"].flatMap { UInt64($0) } ?? 1
  private static let clients = 8

  private func expectNone(_ anomalies: [Anomaly]) {
    #expect(anomalies.isEmpty, "\(anomalies.map(\.description).joined(separator: "\n"))")
  }

  @Test("Transactions on the engine with a store on disk are serializable", arguments: [3, 12], rounds)
  func engineOnDisk(keys: Int, round: UInt64) async throws {
    let directory = FirestoreTestServer.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let store = try await EmbeddedStore.open(directory: directory)
    let engine = FirestoreEngine(
      store: store, policy: OpenPolicy(), options: .init(createsDatabases: true, lockWait: 300_000))
    let lists = EngineLists(engine: engine)
    let workload = ListWorkload(keys: keys)
    await workload.run(
      clients: Self.clients, transactions: 125, seed: (Self.seed &+ round) &* 100 &+ UInt64(keys)
    ) { _ in lists }
    expectNone(try await workload.check(lists))
    #expect(workload.commits == Self.clients * 125)
    await engine.shutDown()
    try await store.close()
  }

  @Test("Transactions over one connection for each client are serializable", arguments: rounds)
  func sockets(round: UInt64) async throws {
    let directory = FirestoreTestServer.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let server = try await FirestoreTestServer.start(.directory(directory))
    let port = try #require(server.server.firestorePort)
    let workload = ListWorkload(keys: 8)
    let stores = (0..<Self.clients).map { _ in SocketLists(port: port) }
    await workload.run(clients: Self.clients, transactions: 75, seed: (Self.seed &+ round) &* 100 &+ 1) {
      stores[$0]
    }
    expectNone(try await workload.check(stores[0]))
    #expect(workload.commits == Self.clients * 75)
    for store in stores { await store.close() }
    await server.stop()
  }

  @Test("Transactions are serializable while the server is killed and restarted", arguments: rounds)
  func kills(round: UInt64) async throws {
    let directory = FirestoreTestServer.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let port = try await KilledServer.freePort()
    let workload = ListWorkload(keys: 8)
    let stores = (0..<Self.clients).map { _ in SocketLists(port: port) }
    let isDone = NIOLockedValueBox(false)
    let workloadTask = Task {
      await workload.run(
        clients: Self.clients, transactions: .max, seed: (Self.seed &+ round) &* 100 &+ 2,
        isDone: { isDone.withLockedValue { $0 } }
      ) { stores[$0] }
    }
    for kill in 1...3 {
      let server = try KilledServer(directory: directory, firestorePort: port)
      let expectedCommits = workload.commits + 60
      let deadline = ContinuousClock.now + .seconds(120)
      while workload.commits < expectedCommits, ContinuousClock.now < deadline {
        try await Task.sleep(for: .milliseconds(5))
      }
      #expect(workload.commits >= expectedCommits, "kill \(kill)")
      await server.kill()
    }
    let last = try KilledServer(directory: directory, firestorePort: port)
    isDone.withLockedValue { $0 = true }
    await workloadTask.value
    let lists = SocketLists(port: port)
    var anomalies: [Anomaly]?
    let deadline = ContinuousClock.now + .seconds(60)
    while anomalies == nil, ContinuousClock.now < deadline {
      anomalies = try? await workload.check(lists)
      if anomalies == nil { try await Task.sleep(for: .milliseconds(50)) }
    }
    expectNone(try #require(anomalies))
    for store in stores + [lists] { await store.close() }
    await last.kill()
  }
}
