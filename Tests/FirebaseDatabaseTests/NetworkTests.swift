// The client on a bad network: a relay before the server holds answers back and breaks connections, and counts what a
// client that comes back is sent.

import FirebaseCore
import Foundation
import HearthServer
import RandomModels
import RealtimeModel
import ServerFixture
import Testing

@testable import FirebaseDatabase

/// A server, a client that reaches it through a relay, and one that reaches it directly.
private struct Setting {
  let server: TestServer
  let relay: Relay
  let alice: Client
  let bob: Client
  let connected: Recorder<String>

  static func make() async throws -> Setting {
    let server = try await TestServer.start()
    let relay = try await Relay.start(to: server.port)
    let namespace = "net-\(UUID().uuidString.prefix(8).lowercased())"
    let alice = try Client(port: relay.port, namespace: namespace)
    let connected = alice.database.reference(withPath: ".info/connected").recordValues()
    _ = try await connected.first(within: 60, "the first connection") { $0 == "true" }
    return Setting(
      server: server, relay: relay, alice: alice, bob: try Client(port: server.port, namespace: namespace),
      connected: connected)
  }

  /// Breaks Alice's connection and keeps it broken.
  func cut() async throws {
    relay.cut(refusing: true)
    _ = try await connected.first(within: 60, "the loss of the connection") { $0 == "false" }
  }

  /// Lets Alice come back, and waits until her listens are answered: a connection's requests are served in order.
  ///
  /// - Parameter byItself: whether to sit out the wait before her next attempt. It grows with every cut, since none of
  ///   these connections lives long enough to count as healthy; going online begins with an attempt.
  func resume(byItself: Bool = false) async throws {
    relay.accept()
    if !byItself {
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

@Suite("Client on a bad network", .timeLimit(.minutes(10)))
struct NetworkTests {
  @Test("observers see a write before the server's answer, its completion follows the answer")
  func localFirst() async throws {
    let setting = try await Setting.make()
    let ref = setting.alice.ref.child("x")
    let seen = ref.recordValues()
    #expect(try await seen.next() == "null")
    try await setting.alice.ref.child("marker").setValue(1)
    setting.relay.hold()
    let completed = Recorder<String>()
    ref.setValue(1) { error, _ in completed.record(error?.localizedDescription ?? "stored") }
    #expect(try await seen.next() == "1")
    let other = setting.bob.ref.child("x").recordValues()
    #expect(try await other.first { $0 == "1" } == "1", "the server has it, although it could not say so")
    #expect(completed.recorded.isEmpty)
    setting.relay.release()
    #expect(try await completed.next() == "stored")
    #expect(seen.recorded == ["null", "1"])
    await setting.stop()
  }

  @Test("after the connection broke, an observer is told what changed meanwhile and nothing else")
  func changesMeanwhile() async throws {
    let setting = try await Setting.make()
    let list = setting.bob.ref.child("list")
    try await list.setValue(["a": 1, "b": 2, "c": 3])
    let seen = setting.alice.ref.child("list").recordAll()
    _ = try await seen.first { $0.type == .value && $0.value.contains("3") }
    let before = seen.recorded.count
    try await setting.cut()
    try await list.updateChildValues(["a": NSNull(), "b": 5, "d": 4])
    try await setting.resume(byItself: true)
    _ = try await seen.first(within: 60) { $0.value.contains(#""d":4"#) }
    #expect(
      Array(seen.recorded.dropFirst(before)) == [
        Seen(.childRemoved, "a", "1"), Seen(.childAdded, "d", "4", after: "c"), Seen(.childChanged, "b", "5"),
        Seen(.value, "list", #"{"b":5,"c":3,"d":4}"#),
      ])
    await setting.stop()
  }

  @Test("what was written without a connection reaches the server once and in order when it is back")
  func writesMeanwhile() async throws {
    let setting = try await Setting.make()
    try await setting.alice.ref.child("marker").setValue(1)
    try await setting.cut()
    let ref = setting.alice.ref.child("log")
    ref.put(["n": 0])
    for n in 1...5 { ref.merge(["n": n, "k\(n)": n]) }
    ref.child("count").put(ServerValue.increment(2))
    ref.child("k3").drop()
    #expect(try await ref.recordValues().next().contains(#""k5":5"#))
    try await setting.resume(byItself: true)
    let stored = try await setting.bob.ref.child("log").getData()
    #expect(text(stored.value) == #"{"count":2,"k1":1,"k2":2,"k4":4,"k5":5,"n":5}"#)
    await setting.stop()
  }

  @Test(
    "a transaction that was under way when the connection broke ends with an error, one that was not goes on")
  func transactions() async throws {
    let setting = try await Setting.make()
    let sent = setting.alice.ref.child("sent")
    _ = try await sent.recordValues().next()
    try await setting.alice.ref.child("marker").setValue(1)
    setting.relay.hold()
    let outcomes = Recorder<String>()
    func run(_ ref: DatabaseReference, _ name: String) {
      ref.runTransactionBlock({ data in
        data.value = (data.value as? Int ?? 0) + 1
        return .success(withValue: data)
      }) { error, isCommitted, snapshot in
        outcomes.record("\(name) \(isCommitted) \(error == nil) \(text(snapshot?.value))")
      }
    }
    run(sent, "sent")
    _ = try await setting.bob.ref.child("sent").recordValues().first { $0 == "1" }
    try await setting.cut()
    setting.relay.release()
    #expect(try await outcomes.next() == "sent false false null")
    run(setting.alice.ref.child("waiting"), "waiting")
    try await setting.resume()
    #expect(try await outcomes.next() == "waiting true true 1")
    #expect(try await sent.getData().value as? Int == 1, "the server had committed it")
    await setting.stop()
  }

  @Test("operations for the disconnection are carried out when a client vanishes, in its own cache too")
  func vanishing() async throws {
    let setting = try await Setting.make()
    let state = setting.alice.ref.child("state")
    let own = state.recordValues()
    let other = setting.bob.ref.child("state").recordValues()
    try await state.setValue(["on": true])
    try await state.onDisconnectUpdateChildValues(["on": false, "left": 1])
    try await setting.cut()
    let gone = #"{"left":1,"on":false}"#
    #expect(try await other.first(within: 60) { $0 == gone } == gone)
    #expect(try await own.first { $0 == gone } == gone)
    try await setting.resume()
    try await state.setValue(["on": true])
    try await setting.cut()
    try await setting.resume()
    #expect(
      try await setting.bob.ref.child("state").getData().childSnapshot(forPath: "on").value as? Bool == true,
      "operations hold for one connection")
    await setting.stop()
  }

  @Test(
    "an estimate of a server value is followed by the real one where they differ, and by nothing where not")
  func estimates() async throws {
    let setting = try await Setting.make()
    let mine = setting.alice.ref.child("n")
    try await setting.bob.ref.child("n").setValue(1)
    let seen = mine.recordValues()
    #expect(try await seen.first { $0 == "1" } == "1")
    try await mine.setValue(ServerValue.increment(1))
    #expect(seen.recorded.suffix(2) == ["1", "2"])
    setting.relay.hold()
    try await setting.bob.ref.child("n").setValue(ServerValue.increment(10))
    mine.put(ServerValue.increment(1))
    #expect(try await seen.first { $0 == "3" } == "3")
    setting.relay.release()
    #expect(try await seen.first { $0 == "13" } == "13")
    try await setting.alice.ref.child("marker").setValue(1)
    #expect(seen.recorded.suffix(4) == ["1", "2", "3", "13"])
    await setting.stop()
  }

  @Test("transactions that waited for a connection are stored together, in the order of their making")
  func batches() async throws {
    let setting = try await Setting.make()
    try await setting.alice.ref.child("marker").setValue(1)
    let theirs = setting.bob.ref.child("t").recordValues()
    #expect(try await theirs.next() == "null")
    try await setting.cut()
    let outcomes = Recorder<String>()
    func run(_ path: String, _ change: @escaping @Sendable (Any?) -> Any) {
      setting.alice.ref.child(path).runTransactionBlock({ data in
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
    try await setting.resume()
    #expect(try await outcomes.next(3) == ["t true true", "t/y true true", "t true true"])
    #expect(try await theirs.next() == #"{"sum":3,"x":1,"y":2}"#, "one write, not three")
    await setting.stop()
  }

  @Test("coming back to a large value costs nothing if it is the same, and else the ranges that differ")
  func resumeCost() async throws {
    let setting = try await Setting.make()
    let list = setting.bob.ref.child("list")
    var items: [String: Any] = [:]
    for n in 0..<2_000 { items["item\(n)"] = ["text": "This is item number \(n) of the list", "n": n] }
    try await list.setValue(items)
    let seen = setting.alice.ref.child("list").recordValues()
    _ = try await seen.first(within: 60, "the list") { $0.contains("item1999") }
    let whole = setting.relay.takeTraffic().toClients
    #expect(whole > 100_000)
    let before = seen.recorded.count

    try await setting.cut()
    setting.relay.takeTraffic()
    try await setting.resume()
    let unchanged = setting.relay.takeTraffic().toClients
    #expect(unchanged < 2_000, "\(unchanged) bytes")
    #expect(seen.recorded.count == before)

    try await setting.cut()
    try await list.child("item777/text").setValue("changed")
    try await list.child("item3").removeValue()
    setting.relay.takeTraffic()
    try await setting.resume()
    let changed = setting.relay.takeTraffic().toClients
    #expect(changed < whole / 5, "\(changed) of \(whole) bytes")
    let last = try #require(seen.recorded.last)
    #expect(last.contains("changed") && !last.contains(#""item3":"#))
    #expect(last == text(try await list.getData().value))

    // A priority of the list itself, which sorts behind every key of a list of ids.
    try await setting.cut()
    try await list.setPriority(7)
    try await setting.resume()
    let snapshot = try await within {
      await setting.alice.ref.child("list").observeSingleEventAndPreviousSiblingKey(of: .value).0
    }
    #expect(snapshot.priority as? Int == 7)
    await setting.stop()
  }

  @Test(
    "whatever changed while a client was away, it has the server's value when it is back", arguments: 0..<4)
  func resumeProperty(seed: Int) async throws {
    let setting = try await Setting.make()
    var random = RandomNodes(seed: UInt64(seed) &+ 40)
    /// A value that is large enough to be resumed by ranges.
    func large() -> Node {
      let children = (0..<40).map { n in
        (ChildKey(n.isMultiple(of: 2) ? "\(n)" : "k\(n)-\(random.key())"), random.node(depth: 3))
      }
      return .object(children + [("long", .leaf(.string(String(repeating: "x", count: 1_100))))])
    }
    let theirs = setting.bob.ref.child("tree")
    let mine = setting.alice.ref.child("tree")
    try await theirs.setValue(ValueWriter.exported(large()))
    mine.observe(.value, with: { _ in })
    for round in 0..<6 {
      try await setting.cut()
      for _ in 0..<random.below(4) {
        let path = random.path()
        let place = path.isRoot ? theirs : theirs.child(path.description)
        switch random.below(4) {
        case 0: try await place.setPriority(random.below(2) == 0 ? nil : random.below(5))
        case 1: try await place.removeValue()
        default: try await place.setValue(ValueWriter.exported(random.node(depth: 2)))
        }
      }
      if random.below(6) == 0 { try await theirs.setValue(ValueWriter.exported(large())) }
      try await setting.resume()
      let stored = try await theirs.getData()
      let seen = try await mine.getData()
      #expect(seen.node == stored.node, "seed \(seed) round \(round)")
    }
    await setting.stop()
  }
}
