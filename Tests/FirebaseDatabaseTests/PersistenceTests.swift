// Tests persistence through clients and a real server: restarts, kills, and reads without a connection.

import FirebaseCore
import Foundation
import GRDB
import HearthServer
import RealtimeModel
import Testing

@testable import FirebaseDatabase

@Suite("Persistence", .serialized, .timeLimit(.minutes(10)))
struct PersistenceTests {
  private let namespace = "cache-\(UUID().uuidString.prefix(8).lowercased())"

  @Test("pending writes survive a kill, apply locally at once, and are sent in order")
  func pendingWrites() async throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let server = try await TestServer.start()
    let first = try Client.persistent(in: folder, port: server.port, namespace: namespace)
    first.database.goOffline()
    for n in 0..<5 { first.ref.child("log").childByAutoId().put(n) }
    first.ref.child("profile").put(["name": "Ann", "age": 1], priority: 7)
    first.ref.child("profile").merge(["age": 2, "city/name": "Oslo"])
    first.ref.child("profile/name").remove()
    let copy = try await first.copyData(from: folder)
    defer { copy.remove() }
    await first.close()

    let second = try Client.persistent(in: copy, port: server.port, namespace: namespace)
    second.database.goOffline()
    let local = second.ref.child("profile").recordValues()
    #expect(try await local.next() == #"{"age":2,"city":{"name":"Oslo"}}"#)
    let observer = try server.clients(1, in: namespace)[0]
    let log = observer.ref.child("log").recordValues()
    let order = Recorder<Int>()
    observer.ref.child("log").observe(.childAdded, with: { order.record($0.value as? Int ?? -1) })
    _ = try await log.first { $0 == "null" }
    second.database.goOnline()
    #expect(try await order.next(5) == [0, 1, 2, 3, 4])
    _ = try await second.ref.child("end").setValue(true)
    let stored = try await observer.ref.child("profile").getData()
    #expect(canonicalJSON(stored.valueInExportFormat()) == #"{".priority":7,"age":2,"city":{"name":"Oslo"}}"#)
    await second.close()

    let third = try Client.persistent(in: copy, port: server.port, namespace: namespace)
    third.database.goOffline()
    await third.waitForRequests()
    let rest = await third.pendingWriteCount()
    #expect(rest == 0, "acknowledged writes are not sent again")
    await third.close()
    await server.stop([observer])
  }

  @Test("server values of stored writes stay unresolved until the server applies them")
  func serverValues() async throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let server = try await TestServer.start()
    let other = try server.clients(1, in: namespace)[0]
    _ = try await other.ref.child("count").setValue(10)
    let first = try Client.persistent(in: folder, port: server.port, namespace: namespace)
    let seen = first.ref.child("count").recordValues()
    _ = try await seen.first { $0 == "10" }
    first.database.goOffline()
    first.ref.child("count").put(ServerValue.increment(5))
    first.ref.child("at").put(ServerValue.timestamp())
    _ = try await seen.first { $0 == "15" }
    await first.waitForRequests()
    await first.close()
    _ = try await other.ref.child("count").setValue(100)
    let before = Repository.milliseconds

    let second = try Client.persistent(in: folder, port: server.port, namespace: namespace)
    second.database.goOffline()
    let again = second.ref.child("count").recordValues()
    #expect(try await again.next() == "15", "the estimate is based on the stored value")
    second.database.goOnline()
    _ = try await again.first { $0 == "105" }
    _ = try await second.ref.child("end").setValue(true)
    let time = try await other.ref.child("at").getData().value as? Int64
    #expect(try #require(time) >= before - 1_000)
    await second.close()
    await server.stop([other])
  }

  @Test(
    "after a restart without a connection, queries with complete data raise events, also filtered queries")
  func offlineQueries() async throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let server = try await TestServer.start()
    let other = try server.clients(1, in: namespace)[0]
    for (key, rank) in [("a", 3), ("b", 1), ("c", 2), ("d", 4)] {
      _ = try await other.ref.child("list/\(key)").setValue(["rank": rank])
    }
    _ = try await other.ref.child("room").setValue(["x": true, "y": [1, 2, 3]])
    let first = try Client.persistent(in: folder, port: server.port, namespace: namespace)
    let top = { (client: Client) in
      client.ref.child("list").queryOrdered(byChild: "rank").queryLimited(toFirst: 2)
    }
    let window = #"{"b":{"rank":1},"c":{"rank":2}}"#
    _ = try await top(first).recordValues().first { $0 == window }
    _ = try await first.ref.child("room").recordValues().first { $0 == #"{"x":true,"y":[1,2,3]}"# }
    // The result of the filtered query changes: "c" leaves the result and "e" enters it.
    let slid = top(first).recordValues()
    _ = try await other.ref.child("list/e").setValue(["rank": 0])
    _ = try await slid.first { $0 == #"{"b":{"rank":1},"e":{"rank":0}}"# }
    await first.waitForRequests()
    await first.close()

    let second = try Client.persistent(in: folder, port: server.port, namespace: namespace)
    second.database.goOffline()
    let events = top(second).recordEvents()
    let expected = [
      RecordedEvent(.childAdded, "e", #"{"rank":0}"#),
      RecordedEvent(.childAdded, "b", #"{"rank":1}"#, after: "e"),
    ]
    #expect(try await events.next(3).prefix(2) == expected[...])
    #expect(events.recorded.last?.value == #"{"b":{"rank":1},"e":{"rank":0}}"#)
    #expect(
      try await second.ref.child("room/y").recordValues().next() == "[1,2,3]",
      "a location below a complete query")
    let single = await second.ref.child("room").observeSingleEventAndPreviousSiblingKey(of: .value)
    #expect(canonicalJSON(single.0.value) == #"{"x":true,"y":[1,2,3]}"#)
    await second.close()
    await server.stop([other])
  }

  @Test("an incomplete location raises events for the children that are known completely, and no value event")
  func incompleteQueries() async throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let server = try await TestServer.start()
    let other = try server.clients(1, in: namespace)[0]
    _ = try await other.ref.child("list").setValue(["a": 1, "b": 2, "c": 3, "d": 4])
    let first = try Client.persistent(in: folder, port: server.port, namespace: namespace)
    _ = try await first.ref.child("list/a").recordValues().first { $0 == "1" }
    _ = try await first.ref.child("list").queryOrderedByKey().queryStarting(atValue: "d").recordValues().first
    {
      $0 == #"{"d":4}"#
    }
    await first.waitForRequests()
    await first.close()

    let second = try Client.persistent(in: folder, port: server.port, namespace: namespace)
    second.database.goOffline()
    let events = second.ref.child("list").recordEvents()
    let expected = [RecordedEvent(.childAdded, "a", "1"), RecordedEvent(.childAdded, "d", "4", after: "a")]
    #expect(try await events.next(2) == expected)
    await second.waitForRequests()
    #expect(events.recorded.count == 2)
    await second.close()
    await server.stop([other])
  }

  @Test("later reads treat acknowledged data as complete, even if no listen covers it")
  func acknowledgedWrites() async throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let server = try await TestServer.start()
    let first = try Client.persistent(in: folder, port: server.port, namespace: namespace)
    _ = try await first.ref.child("notes/n1").setValue(["text": "hello", "done": false])
    _ = try await first.ref.child("notes/n1").updateChildValues(["done": true])
    await first.waitForRequests()
    await first.close()

    let second = try Client.persistent(in: folder, port: server.port, namespace: namespace)
    second.database.goOffline()
    #expect(try await second.ref.child("notes/n1").recordValues().next() == #"{"done":true,"text":"hello"}"#)
    await second.close()
    await server.stop([])
  }

  @Test("the result of an acknowledged increment is unknown until the server sends it")
  func acknowledgedIncrements() async throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let server = try await TestServer.start()
    let other = try server.clients(1, in: namespace)[0]
    _ = try await other.ref.setValue(["count": 10, "known": 20])
    let first = try Client.persistent(in: folder, port: server.port, namespace: namespace)
    _ = try await first.ref.child("known").getData()
    _ = try await first.ref.child("count").setValue(ServerValue.increment(5))
    _ = try await first.ref.child("known").setValue(ServerValue.increment(5))
    _ = try await first.ref.updateChildValues(["a": ["n": ServerValue.increment(1)], "b": 1])
    _ = try await first.ref.child("at").setValue(ServerValue.timestamp())
    await first.waitForRequests()
    await first.close()

    let second = try Client.persistent(in: folder, port: server.port, namespace: namespace)
    second.database.goOffline()
    await second.waitForRequests()
    let stored = await withCheckedContinuation { continuation in
      second.ref.repository.enqueue { repository in
        let paths: [Path] = ["count", "known", "a", "b", "at"]
        continuation.resume(
          returning: paths.map { path in
            let stored = repository.storage.load(.default, at: path)
            return stored.isComplete ? canonicalJSON(ValueWriter.value(stored.node)) : "unknown"
          })
      }
    }
    #expect(stored.prefix(4) == ["unknown", "20", "unknown", "1"])
    #expect(stored[4] != "unknown", "the timestamp is estimated from the clock")
    await second.close()
    await server.stop([other])
  }

  @Test("an acknowledged write is not sent again after a kill, even if a listen waits for its data")
  func acknowledgedDuringListen() async throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let server = try await TestServer.start()
    let first = try Client.persistent(in: folder, port: server.port, namespace: namespace)
    let completed = Recorder<Bool>()
    _ = try await first.ref.child("a").setValue(0)
    await withCheckedContinuation { continuation in
      first.ref.repository.enqueue { repository in
        // A listen that never receives a response.
        let listen = Listen(path: "never", query: .default, tag: nil)
        repository.connection.unansweredListens[listen] = .max
        continuation.resume()
      }
    }
    first.ref.child("a").put(1)
    first.ref.child("count").setValue(ServerValue.increment(1)) { error, _ in completed.record(error == nil) }
    try await within {
      while await first.pendingWriteCount() > 0 { try await Task.sleep(for: .milliseconds(5)) }
    }
    let copy = try await first.copyData(from: folder)
    defer { copy.remove() }
    #expect(completed.recorded.isEmpty, "the observers receive the data first")
    await first.close()
    let second = try Client.persistent(in: copy, port: server.port, namespace: namespace)
    second.database.goOffline()
    await second.waitForRequests()
    #expect(await second.pendingWriteCount() == 0)
    #expect(try await second.ref.child("a").recordValues().next() == "1", "the accepted value is stored")
    await second.close()
    await server.stop([])
  }

  @Test("after an increment on disconnection, the cache keeps the last known value")
  func disconnectIncrements() async throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let server = try await TestServer.start()
    let other = try server.clients(1, in: namespace)[0]
    _ = try await other.ref.child("n").setValue(10)
    let first = try Client.persistent(in: folder, port: server.port, namespace: namespace)
    _ = try await first.ref.child("n").getData()
    _ = try await first.ref.child("n").onDisconnectSetValue(ServerValue.increment(5))
    _ = try await other.ref.child("n").setValue(100)
    first.database.goOffline()
    await first.waitForRequests()
    let stored = await withCheckedContinuation { continuation in
      first.ref.repository.enqueue { continuation.resume(returning: $0.storage.load(.default, at: "n").node) }
    }
    #expect(stored == .leaf(.int(10)))
    await first.close()
    await server.stop([other])
  }

  @Test("a child that was removed while a filtered query was observed stays removed offline")
  func removedChild() async throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let server = try await TestServer.start()
    let other = try server.clients(1, in: namespace)[0]
    _ = try await other.ref.child("list").setValue(["a": 1, "b": 2, "c": 3])
    let first = try Client.persistent(in: folder, port: server.port, namespace: namespace)
    let list = first.ref.child("list")
    let handle = list.observe(.value, with: { _ in })
    _ = try await list.recordValues().first { $0 == #"{"a":1,"b":2,"c":3}"# }
    list.removeObserver(withHandle: handle)
    list.removeAllObservers()
    await first.waitForRequests()
    _ = try await other.ref.child("list/b").removeValue()
    let window = { (client: Client) in client.ref.child("list").queryOrderedByKey().queryLimited(toLast: 2) }
    _ = try await window(first).recordValues().first { $0 == #"{"a":1,"c":3}"# }
    await first.waitForRequests()
    await first.close()

    let second = try Client.persistent(in: folder, port: server.port, namespace: namespace)
    second.database.goOffline()
    #expect(try await window(second).recordValues().next() == #"{"a":1,"c":3}"#)
    await second.close()
    await server.stop([other])
  }

  @Test("getData without a connection reads the disk after three seconds")
  func offlineGet() async throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let server = try await TestServer.start()
    let first = try Client.persistent(in: folder, port: server.port, namespace: namespace)
    _ = try await first.ref.child("a").setValue(["b": 1, "c": 2, "d": 3])
    let query = first.ref.child("a").queryOrderedByKey().queryLimited(toLast: 2)
    #expect(canonicalJSON(try await query.getData().value) == #"{"c":2,"d":3}"#)
    await first.waitForRequests()
    await first.close()

    let second = try Client.persistent(in: folder, port: server.port, namespace: namespace)
    second.database.goOffline()
    second.ref.child("a/e").put(4)
    let same = second.ref.child("a").queryOrderedByKey().queryLimited(toLast: 2)
    #expect(canonicalJSON(try await same.getData().value) == #"{"d":3,"e":4}"#)
    await #expect(throws: (any Error).self) { try await second.ref.child("unknown").getData() }
    await second.close()
    await server.stop([])
  }

  @Test("the server does not resend a value that the client has stored, and replaces a different one")
  func resume() async throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let server = try await TestServer.start()
    let other = try server.clients(1, in: namespace)[0]
    _ = try await other.ref.child("list").setValue(["a": 1, "b": 2, "c": 3])
    let first = try Client.persistent(in: folder, port: server.port, namespace: namespace)
    _ = try await first.ref.child("list").recordValues().first { $0 == #"{"a":1,"b":2,"c":3}"# }
    let window = first.ref.child("list").queryLimited(toLast: 1)
    _ = try await window.recordValues().next()
    await first.waitForRequests()
    await first.close()
    _ = try await other.ref.child("list/b").removeValue()

    let second = try Client.persistent(in: folder, port: server.port, namespace: namespace)
    let values = second.ref.child("list").recordValues()
    #expect(try await values.next() == #"{"a":1,"b":2,"c":3}"#)
    #expect(try await values.next() == #"{"a":1,"c":3}"#)
    await second.waitForRequests()
    await second.close()
    let third = try Client.persistent(in: folder, port: server.port, namespace: namespace)
    third.database.goOffline()
    #expect(try await third.ref.child("list").recordValues().next() == #"{"a":1,"c":3}"#)
    await third.close()
    await server.stop([other])
  }

  @Test("purgeOutstandingWrites also removes the stored writes")
  func purge() async throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let first = try Client.persistent(in: folder, namespace: namespace)
    first.database.goOffline()
    first.ref.child("a").put(1)
    await first.waitForRequests()
    #expect(await first.pendingWriteCount() == 1)
    first.database.purgeOutstandingWrites()
    await first.waitForRequests()
    await first.close()
    let second = try Client.persistent(in: folder, namespace: namespace)
    second.database.goOffline()
    await second.waitForRequests()
    #expect(await second.pendingWriteCount() == 0)
    await second.close()
  }

  @Test(
    "a write is in the file before its event reaches the app, so that suspension or a kill loses nothing"
  )
  func commitsBeforeEvents() async throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let client = try Client.persistent(in: folder, namespace: namespace)
    client.database.goOffline()
    let copies = Recorder<URL>()
    client.ref.child("a").observe(
      .value,
      with: { snapshot in
        guard snapshot.exists() else { return }
        let copy = folder.url.appendingPathExtension("copy")
        try? FileManager.default.copyItem(at: folder.url, to: copy)
        copies.record(copy)
      })
    client.ref.child("a").put("kept")
    let copy = try await copies.next()
    defer { try? FileManager.default.removeItem(at: copy) }
    await client.close()
    let path = try #require(
      FileManager.default.subpathsOfDirectory(atPath: copy.path).first { $0.hasSuffix(".sqlite") })
    let file = try CacheFile.open(copy.appendingPathComponent(path))
    let writes = try file.queue.inDatabase { try PendingWriteTable(db: $0).load().writes }
    #expect(writes.count == 1 && writes.first?.path == "a")
    file.close()
  }

  @Test("the file's path below the data directory contains app and database, and only its owner can read it")
  func location() async throws {
    let folder = try DataFolder()
    defer { folder.remove() }
    let client = try Client.persistent(in: folder, namespace: namespace)
    client.database.goOffline()
    client.ref.child("a").put(1)
    await client.waitForRequests()
    let file = folder.url.appendingPathComponent(
      "firebase/1%3A1%3Aios%3Aab/persistent.database/127.0.0.1_9_\(namespace).sqlite")
    for suffix in ["", "-wal"] {
      let attributes = try FileManager.default.attributesOfItem(atPath: file.path + suffix)
      #expect(attributes[.posixPermissions] as? Int == 0o600)
    }
    let parent = try FileManager.default.attributesOfItem(atPath: file.deletingLastPathComponent().path)
    #expect(parent[.posixPermissions] as? Int == 0o700)
    await client.close()
  }
}

extension Client {
  /// The number of writes that wait for a response.
  func pendingWriteCount() async -> Int {
    await withCheckedContinuation { continuation in
      ref.repository.enqueue { continuation.resume(returning: $0.connection.storedWrites.count) }
    }
  }
}
