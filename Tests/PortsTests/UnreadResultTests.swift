// Tests clients that do not read their results. The bytes that the server holds for them stay within its budget, and
// the server continues to serve other clients.

import FirestoreProtobuf
import Foundation
import GRPCFraming
import NIOConcurrencyHelpers
import NIOCore
import OrderedStore
import SwiftProtobuf
import Testing

@testable import EndpointFixture
@testable import Ports

@Suite("Results that clients do not read", .timeLimit(.minutes(5)))
struct UnreadResultTests {
  private static let limit = 32 << 20
  private static let text = Proto.Value.text(String(repeating: "x", count: 900_000))

  /// The address of the clients that do not read. The memory budget adds up the bytes of an address's
  /// connections to choose the connection that it closes.
  private func unreadingAddress(_ number: Int = 0) throws -> SocketAddress? {
    #if os(Linux)
      try SocketAddress(ipAddress: "127.0.0.\(number + 2)", port: 0)
    #else
      nil
    #endif
  }

  private func limits(minimumAge: TimeAmount = .zero) -> PortLimits {
    var limits = PortLimits()
    limits.memory = MemoryBudget(limit: Self.limit, minimumAge: minimumAge)
    return limits
  }

  /// Stores a collection with 2 MB of small documents, a collection with 3.6 MB of large documents, and a small document.
  private func fill(_ server: FirestoreTestPort) async throws {
    let small = Proto.Value.text(String(repeating: "x", count: 20_000))
    try await server.client.commit((0..<100).map { .set("many/\($0)", ["t": small]) })
    try await server.client.commit((0..<4).map { .set("large/\($0)", ["t": Self.text]) })
    try await server.client.commit([.set("c/small", ["n": .int(1)])])
  }

  /// Expects that small and large calls, a query and a listen succeed.
  private func expectService(_ server: FirestoreTestPort) async throws {
    let client = try await GRPCTestClient.connect(port: server.port.port)
    _ = try await client.get("c/small")
    _ = try await client.get("large/1")
    try await client.commit((0..<7).map { .set("written/\($0)", ["t": Self.text]) })
    #expect(try await client.query(.collection("many")).filter(\.hasDocument).count == 100)
    #expect(try await client.query(.collection("large")).filter(\.hasDocument).count == 4)
    let listen = try await client.open("Listen")
    try await listen.send(Self.listen(to: "many"))
    var count = 0
    while true {
      let response = try await listen.message(as: Proto.ListenResponse.self)
      if response.documentChange.hasDocument { count += 1 }
      if response.targetChange.targetChangeType == .current { break }
    }
    #expect(count == 100)
    await client.close()
  }

  /// Opens connections whose flow-control windows are closed, and requests a large document in each call.
  private func openUnreadUnary(
    _ server: FirestoreTestPort, connections: Int, calls: Int
  ) async throws -> [GRPCTestClient] {
    var clients: [GRPCTestClient] = []
    for _ in 0..<connections {
      let client = try await GRPCTestClient.connect(
        port: server.port.port, from: unreadingAddress(), window: 0)
      for _ in 0..<calls {
        let call = try await client.open("GetDocument")
        try? await call.send(
          Google_Firestore_V1_GetDocumentRequest.with {
            $0.name = "\(FirestoreTestServer.documents)/large/1"
          }, endStream: true)
      }
      clients.append(client)
    }
    return clients
  }

  private static func listen(to collection: String) -> Proto.Listen {
    Proto.Listen.with {
      $0.database = FirestoreTestServer.database
      $0.addTarget.targetID = 1
      $0.addTarget.query.parent = FirestoreTestServer.documents
      $0.addTarget.query.structuredQuery.from = [.with { $0.collectionID = collection }]
    }
  }

  /// Opens calls for a collection on one connection whose flow-control windows are closed.
  private func openUnread(
    _ server: FirestoreTestPort, _ method: String, _ collection: String, count: Int, address: Int = 0
  ) async throws -> GRPCTestClient {
    let client = try await GRPCTestClient.connect(
      port: server.port.port, from: unreadingAddress(address), window: 0)
    for _ in 0..<count {
      let call = try await client.open(method)
      if method == "Listen" {
        try? await call.send(Self.listen(to: collection))
      } else {
        try? await call.send(Google_Firestore_V1_RunQueryRequest.collection(collection), endStream: true)
      }
    }
    return client
  }

  @Test(
    "A connection that does not read holds at most its share of the memory, and other clients are served",
    arguments: ["Listen", "RunQuery"])
  func oneConnection(method: String) async throws {
    let limits = limits(minimumAge: .hours(1))
    try await FirestoreTestPort.with(store: try MemoryStore(), limits: limits) { server in
      try await fill(server)
      let unread = try await openUnread(server, method, "large", count: 200)
      #expect(try await eventually { limits.memory.used > limits.memory.connectionShare / 2 })
      for _ in 0..<3 { try await expectService(server) }
      // Each of the 200 streams may hold 16 KiB, in addition to the connection's share for results.
      let streams = 200 * limits.http2.streamBytes
      #expect(limits.memory.used < 2 * limits.memory.connectionShare + streams, "\(limits.memory.used)")
      #expect(unread.channel.isActive)
      await unread.close()
      #expect(
        try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are still reserved")
    }
  }

  @Test(
    "Many connections that do not read: the connection that holds most is closed, and other clients are served",
    arguments: [("Listen", "large"), ("RunQuery", "large"), ("Listen", "many")])
  func manyConnections(method: String, collection: String) async throws {
    let limits = limits()
    try await FirestoreTestPort.with(store: try MemoryStore(), limits: limits) { server in
      try await fill(server)
      var unread: [GRPCTestClient] = []
      for _ in 0..<16 { unread.append(try await openUnread(server, method, collection, count: 40)) }
      for _ in 0..<3 {
        try await expectService(server)
        #expect(limits.memory.used <= Self.limit)
      }
      #expect(unread.contains { !$0.channel.isActive })
      for client in unread { await client.close() }
      #expect(
        try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are still reserved")
    }
  }

  @Test("REST queries that are not read: connections that hold most are closed, and other clients are served")
  func rest() async throws {
    let limits = limits()
    try await FirestoreTestPort.with(store: try MemoryStore(), limits: limits) { server in
      try await fill(server)
      let body = #"{"structuredQuery":{"from":[{"collectionId":"large"}]}}"#
      var unread: [RawClient] = []
      for _ in 0..<24 {
        let client = try await RawClient.connect(server.port.port, from: unreadingAddress())
        try await client.channel.setOption(.autoRead, value: false).get()
        try await client.send(
          "POST /v1/\(FirestoreTestServer.documents):runQuery HTTP/1.1\r\nHost: h\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
        )
        unread.append(client)
      }
      for _ in 0..<3 {
        try await expectService(server)
        #expect(limits.memory.used <= Self.limit)
      }
      for client in unread { await client.close() }
      #expect(
        try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are still reserved")
    }
  }

  @Test("Unary responses that are not read do not prevent calls of other clients")
  func unary() async throws {
    let limits = limits()
    try await FirestoreTestPort.with(store: try MemoryStore(), limits: limits) { server in
      try await fill(server)
      let unread = try await openUnreadUnary(server, connections: 40, calls: 4)
      for _ in 0..<3 { try await expectService(server) }
      for client in unread { await client.close() }
      #expect(
        try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are still reserved")
    }
  }

  @Test(
    "Unread unary responses leave memory for other clients even while their connections are too young to be closed"
  )
  func youngUnary() async throws {
    let limits = limits(minimumAge: .hours(1))
    try await FirestoreTestPort.with(store: try MemoryStore(), limits: limits) { server in
      try await fill(server)
      let unread = try await openUnreadUnary(server, connections: 8, calls: 8)
      #expect(try await eventually { limits.memory.used > Self.limit / 3 * 2 })
      let client = try await GRPCTestClient.connect(port: server.port.port)
      for _ in 0..<5 {
        _ = try await client.get("c/small")
        _ = try await client.get("large/1")
        try await client.commit((0..<6).map { .set("written/\($0)", ["t": Self.text]) })
      }
      for client in unread { #expect(client.channel.isActive) }
      for client in unread { await client.close() }
      await client.close()
      #expect(
        try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are still reserved")
    }
  }

  @Test(
    "Unread streams leave memory for other clients even while their connections are too young to be closed",
    arguments: [1, 8])
  func youngStreams(addresses: Int) async throws {
    let limits = limits(minimumAge: .hours(1))
    try await FirestoreTestPort.with(store: try MemoryStore(), limits: limits) { server in
      try await fill(server)
      var unread: [GRPCTestClient] = []
      for number in 0..<8 {
        unread.append(
          try await openUnread(server, "Listen", "many", count: 400, address: number % addresses))
      }
      #expect(try await eventually { limits.memory.used > Self.limit / 3 * 2 })
      // With this budget, four streams of a connection may use the last quarter.
      #expect(limits.memory.connectionStreamBytes == 4 * limits.http2.streamBytes)
      let clients = try await [
        GRPCTestClient.connect(port: server.port.port), GRPCTestClient.connect(port: server.port.port),
      ]
      for round in 0..<5 {
        try await withThrowingTaskGroup(of: Void.self) { group in
          for (number, client) in clients.enumerated() {
            group.addTask { _ = try await client.get("large/1") }
            for _ in 0..<2 { group.addTask { _ = try await client.get("c/small") } }
            group.addTask { try await client.commit([.set("written/\(round) \(number)", ["t": Self.text])]) }
          }
          try await group.waitForAll()
        }
      }
      for client in unread { #expect(client.channel.isActive) }
      for client in unread { await client.close() }
      for client in clients { await client.close() }
      #expect(
        try await eventually { limits.memory.used == 0 }, "\(limits.memory.used) bytes are still reserved")
    }
  }

  @Test("A connection whose client reads nothing is closed after the timeout, although it answers PING")
  func timeout() async throws {
    var limits = limits(minimumAge: .hours(1))
    limits.http2.unreadResponseTimeout = .milliseconds(500)
    try await FirestoreTestPort.with(store: try MemoryStore(), limits: limits) { [limits] server in
      try await fill(server)
      let unread = try await openUnread(server, "Listen", "many", count: 1)
      // The reset of a call whose response was not read is not progress.
      while unread.channel.isActive {
        guard let call = try? await unread.open("GetDocument") else { break }
        try? await call.send(
          Google_Firestore_V1_GetDocumentRequest.with {
            $0.name = "\(FirestoreTestServer.documents)/large/1"
          }, endStream: true)
        try await Task.sleep(for: .milliseconds(100))
        try? await call.reset()
      }
      try await unread.channel.closeFuture.get()
      #expect(try await eventually { limits.memory.used == 0 })
      let reading = try await GRPCTestClient.connect(port: server.port.port)
      #expect(try await reading.query(.collection("many")).filter(\.hasDocument).count == 100)
      #expect(reading.channel.isActive)
      await reading.close()
    }
  }

  /// Makes memory holders, and records the order in which they are closed.
  private final class ClosedHolders: Sendable {
    private let names = NIOLockedValueBox<[String]>([])

    func holder(_ budget: MemoryBudget, _ name: String, at address: String) -> MemoryHolder {
      MemoryHolder(budget, address: address) { [names] in names.withLockedValue { $0.append(name) } }
    }

    var all: [String] { names.withLockedValue { $0 } }
  }

  @Test("The heaviest connection of the heaviest address is closed first, and its bytes are free immediately")
  func order() {
    let budget = MemoryBudget(limit: 100, minimumAge: .zero)
    let closedHolders = ClosedHolders()
    let single = closedHolders.holder(budget, "single", at: "a")
    let many = (0..<4).map { closedHolders.holder(budget, "many \($0)", at: "b") }
    #expect(single.reserve(30))
    for (index, holder) in many.enumerated() { #expect(holder.reserve(10 + 5 * index)) }
    let honest = closedHolders.holder(budget, "honest", at: "c")
    #expect(honest.reserve(10))
    #expect(closedHolders.all == ["many 3"] && budget.used == 85)
    #expect(!many[3].reserve(1))
    many[3].release(25)
    #expect(budget.used == 85)
    #expect(honest.reserve(20))
    #expect(closedHolders.all == ["many 3", "many 2"] && budget.used == 85)
  }

  @Test("If the requesting connection itself holds most, its request is rejected and no connection is closed")
  func requesterHoldsMost() {
    let budget = MemoryBudget(limit: 100, minimumAge: .zero)
    let closedHolders = ClosedHolders()
    let small = closedHolders.holder(budget, "small", at: "a")
    let large = closedHolders.holder(budget, "large", at: "b")
    #expect(small.reserve(20) && large.reserve(75))
    #expect(!large.reserve(10))
    #expect(closedHolders.all.isEmpty && budget.used == 95)
    #expect(small.reserve(10))
    #expect(closedHolders.all == ["large"] && budget.used == 30)
  }

  @Test("A connection that has held its bytes for less than the minimum age is not closed")
  func recentlyReserved() {
    let budget = MemoryBudget(limit: 100, minimumAge: .hours(1))
    let closedHolders = ClosedHolders()
    let large = closedHolders.holder(budget, "large", at: "a")
    let small = closedHolders.holder(budget, "small", at: "b")
    #expect(large.reserve(90))
    #expect(!small.reserve(20))
    #expect(closedHolders.all.isEmpty)
  }

  @Test(
    "Growth does not make a connection young, a release does; old bytes count for five seconds"
  )
  func age() {
    let budget = MemoryBudget(limit: 1_000)
    let closedHolders = ClosedHolders()
    var holders = MemoryHolders()
    let start = NIODeadline.now()
    func close(_ missing: Int, for holder: MemoryHolder, after milliseconds: Int64) -> [String] {
      let closing = holders.close(
        toFree: missing, for: holder, 1, minimumAge: .milliseconds(500),
        at: start + .milliseconds(milliseconds))
      let before = closedHolders.all.count
      for close in closing ?? [] { close() }
      return Array(closedHolders.all[before...])
    }
    let asking = closedHolders.holder(budget, "asking", at: "z")
    let reading = closedHolders.holder(budget, "reading", at: "a")
    let growing = closedHolders.holder(budget, "growing", at: "a")
    holders.add(50, to: reading, at: start)
    holders.add(30, to: growing, at: start)
    holders.remove(15, from: reading, at: start + .milliseconds(900))
    holders.add(15, to: reading, at: start + .milliseconds(900))
    holders.add(10, to: growing, at: start + .milliseconds(900))
    #expect(close(1, for: asking, after: 1_000) == ["growing"])
    #expect(close(1, for: asking, after: 1_000) == [])
    #expect(close(1, for: asking, after: 1_500) == ["reading"])
    // A connection whose few bytes are an hour old receives many more.
    let listening = closedHolders.holder(budget, "listening", at: "b")
    holders.add(10, to: listening, at: start - .hours(1))
    holders.add(190, to: listening, at: start + .milliseconds(1_500))
    #expect(close(1, for: asking, after: 1_500) == [])
    #expect(holders.bytes == 200)
  }

  @Test("A holder that the server cannot close does not protect others from being closed")
  func unclosable() {
    let budget = MemoryBudget(limit: 100, minimumAge: .zero)
    let closedHolders = ClosedHolders()
    let unclosable = MemoryHolder(budget, address: "", closing: nil)
    let large = closedHolders.holder(budget, "large", at: "a")
    let small = closedHolders.holder(budget, "small", at: "b")
    #expect(unclosable.reserve(60) && large.reserve(38))
    #expect(small.reserve(5))
    #expect(closedHolders.all == ["large"] && budget.used == 65)
  }
}
