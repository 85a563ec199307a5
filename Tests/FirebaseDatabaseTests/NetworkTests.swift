// Tests the client on an unreliable network. A relay between client and server delays responses, breaks
// connections, and counts the bytes that a reconnecting client receives. In the tests, Alice is the client
// that connects through the relay, and Bob connects directly.

import FirebaseCore
import Foundation
import HearthServer
import RandomModels
import RealtimeModel
import ServerFixture
import Testing

@testable import FirebaseDatabase

/// A server, a client that connects through a relay, and a client that connects directly.
private struct RelayedNetwork {
  let server: TestServer
  let relay: Relay
  let alice: Client
  let bob: Client
  let connected: Recorder<String>

  static func make() async throws -> RelayedNetwork {
    let server = try await TestServer.start()
    let relay = try await Relay.start(to: server.port)
    let namespace = "net-\(UUID().uuidString.prefix(8).lowercased())"
    let alice = try Client(port: relay.port, namespace: namespace)
    let connected = alice.database.reference(withPath: ".info/connected").recordValues()
    _ = try await connected.first(within: 60, "the first connection") { $0 == "true" }
    return RelayedNetwork(
      server: server, relay: relay, alice: alice, bob: try Client(port: server.port, namespace: namespace),
      connected: connected)
  }

  /// Breaks Alice's connection and rejects new ones.
  func disconnect() async throws {
    relay.cut(refusing: true)
    _ = try await connected.first(within: 60, "the loss of the connection") { $0 == "false" }
  }

  /// Lets Alice reconnect, and waits until her listens have responses. The server handles the requests of a
  /// connection in order.
  ///
  /// - Parameter afterBackoff: whether to wait for the back-off before the next attempt. The back-off grows
  ///   with every disconnection, because these connections are too short to count as healthy. If false, the
  ///   client goes offline and online again, which connects immediately.
  func reconnect(afterBackoff: Bool = false) async throws {
    relay.accept()
    if !afterBackoff {
      alice.database.goOffline()
      alice.database.goOnline()
    }
    _ = try await connected.first(within: 60, "a connection") { $0 == "true" }
    try await alice.ref.child("marker").setValue(ServerValue.increment(1))
  }

  func stop() async {
    await alice.close()
    await relay.stop()
    await server.stop([bob])
  }
}

@Suite("Client on an unreliable network", .timeLimit(.minutes(10)))
struct NetworkTests {
  @Test("observers see a write before the server's response, and its completion follows the response")
  func localFirst() async throws {
    let network = try await RelayedNetwork.make()
    let ref = network.alice.ref.child("x")
    let seen = ref.recordValues()
    #expect(try await seen.next() == "null")
    try await network.alice.ref.child("marker").setValue(1)
    network.relay.hold()
    let completed = Recorder<String>()
    ref.setValue(1) { error, _ in completed.record(error?.localizedDescription ?? "stored") }
    #expect(try await seen.next() == "1")
    let other = network.bob.ref.child("x").recordValues()
    #expect(
      try await other.first { $0 == "1" } == "1",
      "the server has stored the value, and the relay delays its response")
    #expect(completed.recorded.isEmpty)
    network.relay.release()
    #expect(try await completed.next() == "stored")
    #expect(seen.recorded == ["null", "1"])
    await network.stop()
  }

  @Test("after a reconnection an observer receives only the changes")
  func changesWhileDisconnected() async throws {
    let network = try await RelayedNetwork.make()
    let list = network.bob.ref.child("list")
    try await list.setValue(["a": 1, "b": 2, "c": 3])
    let seen = network.alice.ref.child("list").recordEvents()
    _ = try await seen.first { $0.type == .value && $0.value.contains("3") }
    let before = seen.recorded.count
    try await network.disconnect()
    try await list.updateChildValues(["a": NSNull(), "b": 5, "d": 4])
    try await network.reconnect(afterBackoff: true)
    _ = try await seen.first(within: 60) { $0.value.contains(#""d":4"#) }
    #expect(
      Array(seen.recorded.dropFirst(before)) == [
        RecordedEvent(.childRemoved, "a", "1"), RecordedEvent(.childAdded, "d", "4", after: "c"),
        RecordedEvent(.childChanged, "b", "5"),
        RecordedEvent(.value, "list", #"{"b":5,"c":3,"d":4}"#),
      ])
    await network.stop()
  }

  @Test("offline writes reach the server once and in order")
  func writesWhileDisconnected() async throws {
    let network = try await RelayedNetwork.make()
    try await network.alice.ref.child("marker").setValue(1)
    try await network.disconnect()
    let ref = network.alice.ref.child("log")
    ref.put(["n": 0])
    for n in 1...5 { ref.merge(["n": n, "k\(n)": n]) }
    ref.child("count").put(ServerValue.increment(2))
    ref.child("k3").remove()
    #expect(try await ref.recordValues().next().contains(#""k5":5"#))
    try await network.reconnect(afterBackoff: true)
    let stored = try await network.bob.ref.child("log").getData()
    #expect(canonicalJSON(stored.value) == #"{"count":2,"k1":1,"k2":2,"k4":4,"k5":5,"n":5}"#)
    await network.stop()
  }

  @Test(
    "a disconnection fails a transaction in flight, and an unsent transaction is sent later")
  func transactions() async throws {
    let network = try await RelayedNetwork.make()
    let sent = network.alice.ref.child("sent")
    _ = try await sent.recordValues().next()
    try await network.alice.ref.child("marker").setValue(1)
    network.relay.hold()
    let outcomes = Recorder<String>()
    func run(_ ref: DatabaseReference, _ name: String) {
      ref.runTransactionBlock({ data in
        data.value = (data.value as? Int ?? 0) + 1
        return .success(withValue: data)
      }) { error, isCommitted, snapshot in
        outcomes.record("\(name) \(isCommitted) \(error == nil) \(canonicalJSON(snapshot?.value))")
      }
    }
    run(sent, "sent")
    _ = try await network.bob.ref.child("sent").recordValues().first { $0 == "1" }
    try await network.disconnect()
    network.relay.release()
    #expect(try await outcomes.next() == "sent false false null")
    run(network.alice.ref.child("waiting"), "waiting")
    try await network.reconnect()
    #expect(try await outcomes.next() == "waiting true true 1")
    #expect(try await sent.getData().value as? Int == 1, "the server committed the transaction")
    await network.stop()
  }

  @Test("when a connection is lost, onDisconnect writes run on the server and in the client's cache")
  func onDisconnectAfterLoss() async throws {
    let network = try await RelayedNetwork.make()
    let state = network.alice.ref.child("state")
    let values = state.recordValues()
    let other = network.bob.ref.child("state").recordValues()
    try await state.setValue(["on": true])
    try await state.onDisconnectUpdateChildValues(["on": false, "left": 1])
    try await network.disconnect()
    let expected = #"{"left":1,"on":false}"#
    #expect(try await other.first(within: 60) { $0 == expected } == expected)
    #expect(try await values.first { $0 == expected } == expected)
    try await network.reconnect()
    try await state.setValue(["on": true])
    try await network.disconnect()
    try await network.reconnect()
    #expect(
      try await network.bob.ref.child("state").getData().childSnapshot(forPath: "on").value as? Bool == true,
      "onDisconnect writes apply to only one connection")
    await network.stop()
  }

  @Test(
    "an event with an estimated server value is followed by a second event only if the real value differs")
  func estimatedValues() async throws {
    let network = try await RelayedNetwork.make()
    let local = network.alice.ref.child("n")
    try await network.bob.ref.child("n").setValue(1)
    let seen = local.recordValues()
    #expect(try await seen.first { $0 == "1" } == "1")
    try await local.setValue(ServerValue.increment(1))
    #expect(seen.recorded.suffix(2) == ["1", "2"])
    network.relay.hold()
    try await network.bob.ref.child("n").setValue(ServerValue.increment(10))
    local.put(ServerValue.increment(1))
    #expect(try await seen.first { $0 == "3" } == "3")
    network.relay.release()
    #expect(try await seen.first { $0 == "13" } == "13")
    try await network.alice.ref.child("marker").setValue(1)
    #expect(seen.recorded.suffix(4) == ["1", "2", "3", "13"])
    await network.stop()
  }

  @Test("transactions that were pending while offline run in order and are stored by one write")
  func batches() async throws {
    let network = try await RelayedNetwork.make()
    try await network.alice.ref.child("marker").setValue(1)
    let remote = network.bob.ref.child("t").recordValues()
    #expect(try await remote.next() == "null")
    try await network.disconnect()
    let outcomes = Recorder<String>()
    func run(_ path: String, _ change: @escaping @Sendable (Any?) -> Any) {
      network.alice.ref.child(path).runTransactionBlock({ data in
        data.value = change(data.value)
        return .success(withValue: data)
      }) { error, isCommitted, _ in outcomes.record("\(path) \(isCommitted) \(error == nil)") }
    }
    run("t") { _ in ["x": 1] }
    run("t/y") { _ in 2 }
    run("t") { value in
      var value = value as? [String: Int] ?? [:]
      value["sum"] = value.values.reduce(0, +)
      return value
    }
    try await network.reconnect()
    #expect(try await outcomes.next(3) == ["t true true", "t/y true true", "t true true"])
    #expect(try await remote.next() == #"{"sum":3,"x":1,"y":2}"#, "one write for three transactions")
    await network.stop()
  }

  @Test("resuming a large listen transfers only the changed ranges, and nothing if the value is unchanged")
  func resumeCost() async throws {
    let network = try await RelayedNetwork.make()
    let list = network.bob.ref.child("list")
    var items: [String: Any] = [:]
    for n in 0..<2_000 { items["item\(n)"] = ["text": "This is item number \(n) of the list", "n": n] }
    try await list.setValue(items)
    let seen = network.alice.ref.child("list").recordValues()
    _ = try await seen.first(within: 60, "the list") { $0.contains("item1999") }
    let initial = network.relay.takeTraffic().toClients
    #expect(initial > 100_000)
    let before = seen.recorded.count

    try await network.disconnect()
    network.relay.takeTraffic()
    try await network.reconnect()
    let unchanged = network.relay.takeTraffic().toClients
    #expect(unchanged < 2_000, "\(unchanged) bytes")
    #expect(seen.recorded.count == before)

    try await network.disconnect()
    try await list.child("item777/text").setValue("changed")
    try await list.child("item3").removeValue()
    network.relay.takeTraffic()
    try await network.reconnect()
    let changed = network.relay.takeTraffic().toClients
    #expect(changed < initial / 5, "\(changed) of \(initial) bytes")
    let last = try #require(seen.recorded.last)
    #expect(last.contains("changed") && !last.contains(#""item3":"#))
    #expect(last == canonicalJSON(try await list.getData().value))

    // Changes the priority of the list. In the order of the compound hash the priority follows every key of
    // the list.
    try await network.disconnect()
    try await list.setPriority(7)
    try await network.reconnect()
    let snapshot = try await within {
      await network.alice.ref.child("list").observeSingleEventAndPreviousSiblingKey(of: .value).0
    }
    #expect(snapshot.priority as? Int == 7)
    await network.stop()
  }

  @Test(
    "after a reconnection the client has the server's value, whatever changed while it was disconnected",
    arguments: 0..<4)
  func resumesAnyChange(seed: Int) async throws {
    let network = try await RelayedNetwork.make()
    var random = RandomNodes(seed: UInt64(seed) &+ 40)
    /// Generates a value that is large enough to resume by ranges.
    func large() -> Node {
      let children = (0..<40).map { n in
        (ChildKey(n.isMultiple(of: 2) ? "\(n)" : "k\(n)-\(random.key())"), random.node(depth: 3))
      }
      return .object(children + [("long", .leaf(.string(String(repeating: "x", count: 1_100))))])
    }
    let remote = network.bob.ref.child("tree")
    let local = network.alice.ref.child("tree")
    try await remote.setValue(ValueWriter.exported(large()))
    local.observe(.value, with: { _ in })
    for round in 0..<6 {
      try await network.disconnect()
      for _ in 0..<random.below(4) {
        let path = random.path()
        let location = path.isRoot ? remote : remote.child(path.description)
        switch random.below(4) {
        case 0: try await location.setPriority(random.below(2) == 0 ? nil : random.below(5))
        case 1: try await location.removeValue()
        default: try await location.setValue(ValueWriter.exported(random.node(depth: 2)))
        }
      }
      if random.below(6) == 0 { try await remote.setValue(ValueWriter.exported(large())) }
      try await network.reconnect()
      let stored = try await remote.getData()
      let seen = try await local.getData()
      #expect(seen.node == stored.node, "seed \(seed) round \(round)")
    }
    await network.stop()
  }
}
