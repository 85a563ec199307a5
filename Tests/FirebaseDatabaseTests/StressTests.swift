// Tests the client under stress: calls from many threads, many short-lived observers, and servers that send
// corrupted messages.

import Dispatch
import FirebaseCore
import Foundation
import HearthServer
import RandomModels
import RealtimeModel
import RealtimeWire
import Testing

@testable import FirebaseDatabase

@Suite("Stress", .timeLimit(.minutes(10)))
struct StressTests {
  @Test("thousands of observers are removed without leaks")
  func observerLeaks() async throws {
    let server = try await TestServer.start()
    let client = try server.clients(1)[0]
    let repository = client.ref.repository
    for round in 0..<3_000 {
      let query = client.ref.child("list/\(round % 40)").queryLimited(toFirst: UInt(1 + round % 7))
      let handle = query.observe(.childAdded, with: { _ in })
      query.removeObserver(withHandle: handle)
    }
    _ = try await within(60) { try await client.ref.child("end").getData() }
    let leaked = try await within {
      await withCheckedContinuation { continuation in
        repository.enqueue { repository in
          let listens = (0..<40).map { repository.tree.listens(at: Path("list/\($0)")).count }
          continuation.resume(returning: repository.observers.count + listens.reduce(0, +))
        }
      }
    }
    #expect(leaked == 0)
    await server.stop([client])
  }

  @Test("removing an observer releases its closure, and removing the last observer releases the query's data")
  func removedObserver() async throws {
    final class Captured: Sendable {}
    let server = try await TestServer.start()
    let client = try server.clients(1)[0]
    let list = client.ref.child("list")
    _ = try await list.setValue(Dictionary(uniqueKeysWithValues: (0..<1_000).map { ("c\($0)", $0) }))
    var captured: Captured? = Captured()
    weak let held = captured
    let values = Recorder<UInt>()
    let query = list.queryLimited(toLast: 500)
    let handle = query.observe(
      .value,
      with: { [captured] snapshot in
        _ = captured
        values.record(snapshot.childrenCount)
      })
    captured = nil
    _ = try await values.first { $0 == 500 }
    #expect(held != nil)
    query.removeObserver(withHandle: handle)
    await client.waitForRequests()
    #expect(held == nil)
    let rest = await withCheckedContinuation { continuation in
      client.ref.repository.enqueue { repository in
        let connection = repository.connection
        continuation.resume(
          returning: repository.tree.observedQueries.count + connection.listens.count
            + connection.sentListens.count + connection.unansweredListens.count
            + repository.deliveredSingleObservers.count)
      }
    }
    #expect(rest == 0)
    await server.stop([client])
  }

  @Test("calls from many threads complete exactly once on the callback queue")
  func threads() async throws {
    let server = try await TestServer.start()
    let client = try server.clients(1)[0]
    let key = DispatchSpecificKey<Bool>()
    client.queue.setSpecific(key: key, value: true)
    let done = Recorder<Bool>()
    let (threads, calls) = (8, 20)
    for thread in 0..<threads {
      Thread.detachNewThread {
        for call in 0..<calls {
          let location = client.ref.child("t\(thread)/c\(call)")
          let handle = location.observe(.value, with: { _ in })
          location.setValue(call) { error, _ in
            done.record(error == nil && DispatchQueue.getSpecific(key: key) == true)
          }
          client.ref.child("count").runTransactionBlock({ data in
            data.value = (data.value as? Int ?? 0) + 1
            return .success(withValue: data)
          }) { error, committed, _ in
            done.record(error == nil && committed && DispatchQueue.getSpecific(key: key) == true)
          }
          location.removeObserver(withHandle: handle)
        }
      }
    }
    let outcomes = try await within(120) { try await done.next(2 * threads * calls) }
    #expect(outcomes.allSatisfy { $0 })
    let count = try await client.ref.child("count").getData()
    #expect(count.value as? Int == threads * calls)
    #expect(done.recorded.count == 2 * threads * calls)
    await server.stop([client])
  }

  @Test("deleting the app during or before calls ends every task")
  func deletion() async throws {
    let server = try await TestServer.start()
    for round in 0..<10 {
      let client = try server.clients(1)[0]
      let ended = Recorder<Int>()
      for call in 0..<20 {
        Task {
          _ = try? await client.ref.child("a/\(call)").setValue(call)
          _ = try? await client.ref.child("b").runTransactionBlock { data in
            data.value = call
            return .success(withValue: data)
          }
          _ = await client.ref.child("c").observeSingleEventAndPreviousSiblingKey(of: .value)
          _ = try? await client.ref.child("d").onDisconnectRemoveValue()
          _ = try? await client.ref.child("e").getData()
          ended.record(call)
        }
      }
      if round % 2 == 0 { _ = try await client.ref.child("a/0").getData() }
      await client.close()
      _ = try await ended.next(20)
    }
    await server.server.stop()
  }

  /// Server messages that the test corrupts.
  private static let corpus = [
    #"{"t":"c","d":{"t":"h","d":{"ts":1700000000000,"v":"5","h":"s-usc1.example","s":"abc"}}}"#,
    #"{"t":"c","d":{"t":"r","d":"other.example"}}"#, #"{"t":"c","d":{"t":"s","d":"bye"}}"#,
    #"{"t":"d","d":{"r":1,"b":{"s":"ok","d":{}}}}"#,
    #"{"t":"d","d":{"r":2,"b":{"s":"ok","d":{"w":["no_index"]}}}}"#,
    #"{"t":"d","d":{"r":3,"b":{"s":"datastale","d":"x"}}}"#,
    #"{"t":"d","d":{"a":"d","b":{"p":"list","d":{"a":{"r":1},"b":{".value":2,".priority":"p"},"7":[1,null,2]}}}}"#,
    #"{"t":"d","d":{"a":"m","b":{"p":"list","d":{"a/r":5,"b":null,"a":{"r":{"x":1}}}}}}"#,
    #"{"t":"d","d":{"a":"d","b":{"p":"list","d":{"c":3},"t":1}}}"#,
    #"{"t":"d","d":{"a":"m","b":{"p":"list/a","d":{"r":4},"t":2}}}"#,
    #"{"t":"d","d":{"a":"rm","b":{"p":"list","d":[{"s":"a","e":"b","m":{"b":5}},{"m":null}],"t":1}}}"#,
    #"{"t":"d","d":{"a":"c","b":{"p":"list","q":{"l":2,"vf":"l"}}}}"#,
    #"{"t":"d","d":{"a":"c","b":{"p":"list"}}}"#,
    #"{"t":"d","d":{"a":"sd","b":{"msg":"m"}}}"#,
  ]

  @Test("corrupted server messages do not stop the client", arguments: 0..<2)
  func arbitraryMessages(seed: UInt64) async throws {
    var random = SplitMix(seed: seed)
    let client = try Client.offline()
    let list = client.ref.child("list")
    for type in [DataEventType.childAdded, .childRemoved, .childChanged, .childMoved, .value] {
      list.observe(type, with: { _ = $0.value })
      list.queryLimited(toLast: 2).observe(type, with: { _ = $0.children.allObjects })
      list.queryOrdered(byChild: "r").queryStarting(atValue: 1).observe(type, with: { _ = $0.key })
      list.child("a").observe(type, with: { _ = $0.exists() })
    }
    list.put(["a": ["r": 1], "z": 2])
    list.child("a").startTransaction { data in
      data.value = (data.value as? Int ?? 0) + 1
      return .success(withValue: data)
    }
    var connection = ServerConnection(seed: seed, statsName: "s")
    connection.connect()
    var generation = 1
    var messages: [ServerMessage] = []
    for round in 0..<2_000 {
      var bytes = Array(StressTests.corpus[Int.random(in: 0..<StressTests.corpus.count, using: &random)].utf8)
      for _ in 0..<Int.random(in: 0...3, using: &random) {
        let at = Int.random(in: 0..<bytes.count, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: bytes[at] = UInt8.random(in: 0x20...0x7E, using: &random)
        case 1: bytes.remove(at: at)
        default: bytes.insert(bytes[Int.random(in: 0..<bytes.count, using: &random)], at: at)
        }
      }
      guard let message = bytes.withUnsafeBytes({ try? ServerMessage(json: $0) }) else { continue }
      messages.append(message)
      connection.listen(Listen(path: Path("list"), query: .default, tag: round % 3 == 0 ? nil : round % 3))
      connection.received(message, on: generation, at: Int64(round))
      for action in connection.takeActions() {
        if case .open(let number, _, _) = action { generation = number }
        if case .retry(let number, _) = action { connection.retry(number) }
      }
      for action in connection.takeActions() {
        if case .open(let number, _, _) = action { generation = number }
      }
    }
    #expect(messages.count > 500)
    let pushes = messages.compactMap { message -> ServerPush? in
      if case .push(let push) = message { return push }
      return nil
    }
    let repository = client.ref.repository
    for push in pushes { repository.enqueue { $0.handle(.push(push)) } }
    let value = try await within { try await client.ref.child("list").valueIfReadable() }
    _ = value
    await client.close()
  }
}

extension DatabaseReference {
  /// Reads the value; nil if the read fails.
  fileprivate func valueIfReadable() async throws -> String? {
    do { return canonicalJSON(try await getData().value) } catch { return nil }
  }
}
