// Tests behaviour that Firebase's guides describe for lists and observers, with a real server. Also tests
// connections to servers that respond slowly or have several addresses.

import Dispatch
import FirebaseCore
import Foundation
import HearthServer
import NIOCore
import NIOPosix
import RealtimeModel
import RealtimeWire
import Testing

@testable import FirebaseDatabase

/// Resolves every name to two addresses. No server listens on the first one.
private final class TwoAddresses: Resolver, Sendable {
  func initiateAAAAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
    MultiThreadedEventLoopGroup.singleton.next()
      .makeCompletedFuture { [try SocketAddress(ipAddress: "::1", port: 1)] }
  }

  func initiateAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
    MultiThreadedEventLoopGroup.singleton.next()
      .makeCompletedFuture { [try SocketAddress(ipAddress: "127.0.0.1", port: port)] }
  }

  func cancelQueries() {}
}

@Suite("Realtime Database guides", .timeLimit(.minutes(10)))
struct GuideTests {
  @Test("the client connects to a host that has an unreachable and a reachable address")
  func twoAddresses() async throws {
    let server = try await TestServer.start()
    let events = Recorder<String>()
    let transport = Transport.open(
      to: DatabaseEndpoint(host: "two.localhost", port: server.port, isSecure: false, namespace: "demo-two"),
      host: nil, lastSession: nil, tls: nil, resolver: TwoAddresses(),
      events: TransportEvents(
        received: { message in
          if case .control(.hello) = message { events.record("hello") }
        }, closed: { events.record("closed \($0 ?? "")") }))
    #expect(try await events.next() == "hello")
    transport.close()
    await server.stop([])
  }

  @Test("a server that accepts a connection and never responds causes a timeout")
  func handshakeTimeout() async throws {
    let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .bind(host: "127.0.0.1", port: 0).get()
    let events = Recorder<String>()
    let transport = Transport.open(
      to: DatabaseEndpoint(
        host: "127.0.0.1", port: channel.localAddress?.port, isSecure: false, namespace: "demo-silent"),
      host: nil, lastSession: nil, tls: nil, timeout: .milliseconds(500),
      events: TransportEvents(received: { _ in }, closed: { events.record("closed \($0 ?? "")") }))
    #expect(Transport.handshakeTimeout == .seconds(30), "the default timeout")
    #expect(try await events.next() == "closed The server did not open a WebSocket")
    transport.close()
    try await channel.close()
  }

  @Test(
    "the client connects to an emulator at localhost and at the IPv6 loopback address, with or without brackets"
  )
  func emulatorNames() async throws {
    let server = try await TestServer.start()
    let client = try Client(port: 9, namespace: "demo-names")
    client.database.useEmulator(withHost: "localhost", port: server.port)
    // The short timeout makes the test fail quickly on a machine that does not resolve localhost.
    try await within(10, "a write to localhost") { [ref = client.ref] in
      _ = try await ref.child("a").setValue(1)
    }
    await server.stop([client])
    for host in ["::1", "[::1]"] {
      let client = try Client(port: 9, namespace: "demo-six")
      client.database.useEmulator(withHost: host, port: 9000)
      #expect(client.ref.url == "http://[::1]:9000")
      await client.close()
    }
  }

  @Test("auto ids order a list, including auto ids that were created offline")
  func autoIDs() async throws {
    let server = try await TestServer.start()
    let clients = try server.clients(2)
    let list = clients[0].ref.child("list")
    var keys: [String] = []
    for n in 0..<20 {
      if n == 10 { clients[0].database.goOffline() }
      let child = list.childByAutoId()
      child.put(["n": n])
      keys.append(child.key ?? "")
    }
    clients[0].database.goOnline()
    let written = keys
    #expect(written.sorted() == written && Set(written).count == 20)
    try await within { _ = try await list.child("zz").setValue(0) }
    let other = clients[1].ref.child("list")
    let read = try await within { try await other.queryOrderedByKey().queryLimited(toFirst: 20).getData() }
    #expect(read.children.compactMap { ($0 as? DataSnapshot)?.key } == written)
    await server.stop(clients)
  }

  @Test("a moved child causes a move event with its new predecessor and a change event")
  func moves() async throws {
    let server = try await TestServer.start()
    let clients = try server.clients(2)
    let list = clients[0].ref.child("scores")
    try await within { _ = try await list.setValue(["a": 1, "b": 2, "c": 3]) }
    let moveEvents = Recorder<String>()
    let query = clients[1].ref.child("scores").queryOrderedByValue()
    query.observe(
      .childMoved, andPreviousSiblingKeyWith: { moveEvents.record("\($0.key) after \($1 ?? "-")") })
    let values = Recorder<String>()
    query.observe(.value) { snapshot in
      values.record(snapshot.children.compactMap { ($0 as? DataSnapshot)?.key }.joined())
    }
    _ = try await values.first { $0 == "abc" }
    try await within { _ = try await list.child("a").setValue(9) }
    #expect(try await moveEvents.next() == "a after c")
    _ = try await values.first { $0 == "bca" }
    try await within { _ = try await list.updateChildValues(["c": 0, "b": 1]) }
    _ = try await values.first { $0 == "cba" }
    await server.stop(clients)
  }

  @Test("removing by handle removes one observer; removing all observers keeps observers of children")
  func removal() async throws {
    let server = try await TestServer.start()
    let clients = try server.clients(2)
    let location = clients[0].ref.child("place")
    let (one, two, query, below) = (
      Recorder<String>(), Recorder<String>(), Recorder<String>(), Recorder<String>()
    )
    let handle = location.observe(.value) { one.record(canonicalJSON($0.value)) }
    location.observe(.value) { two.record(canonicalJSON($0.value)) }
    location.queryLimited(toFirst: 1).observe(.value) { query.record(canonicalJSON($0.value)) }
    location.child("a").observe(.value) { below.record(canonicalJSON($0.value)) }
    for recorder in [one, two, query, below] { _ = try await recorder.first { $0 == "null" } }
    location.removeObserver(withHandle: handle)
    let writer = clients[1].ref.child("place/a")
    try await within { _ = try await writer.setValue(1) }
    _ = try await two.first { $0 == #"{"a":1}"# }
    _ = try await query.first { $0 == #"{"a":1}"# }
    location.removeAllObservers()
    try await within { _ = try await writer.setValue(2) }
    _ = try await below.first { $0 == "2" }
    clients[0].queue.sync {}
    #expect(
      one.recorded == ["null"] && two.recorded.last == #"{"a":1}"# && query.recorded.last == #"{"a":1}"#)
    await server.stop(clients)
  }

  @Test("deleting the app ends its async sequences and fails pending requests")
  func deletion() async throws {
    let client = try Client.offline()
    let ends = Recorder<String>()
    let began = Recorder<String>()
    let location = client.ref.child("a")
    location.put(1)
    Task {
      do {
        for try await snapshot in location.values() { began.record(canonicalJSON(snapshot.value)) }
        ends.record("sequence")
      } catch { ends.record("\(error)") }
    }
    _ = try await began.first { $0 == "1" }
    Task {
      began.record("writing")
      do { try await location.child("b").setValue(2) } catch {
        ends.record("write \((error as NSError).code)")
      }
    }
    Task {
      began.record("transacting")
      do {
        _ = try await location.child("c").runTransactionBlock { data in
          data.value = 1
          return TransactionResult.success(withValue: data)
        }
      } catch { ends.record("transaction") }
    }
    _ = try await began.first { $0.contains("b") }
    await client.close()
    var seen: Set<String> = []
    while seen.count < 3 { seen.insert(try await ends.next()) }
    #expect(seen.contains("sequence") && seen.contains("transaction"))
  }
}
