// Tests the Realtime Database client and a real server end to end, in one process and over real sockets.

import Dispatch
import FirebaseCore
import Foundation
import HearthServer
import Locking
import RealtimeModel
import Testing

@testable import FirebaseDatabase

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// A server for one test.
struct TestServer {
  let server: HearthServer
  let port: Int

  /// Starts a server, by default with memory storage and a free port.
  static func start(directory: String? = nil, port: Int = 0) async throws -> TestServer {
    var configuration = HearthConfiguration.forTesting(
      storage: directory.map { .directory($0) } ?? .ephemeral)
    configuration.database = .init(port: port)
    configuration.drainSeconds = 1
    let server = HearthServer(configuration)
    try await server.start()
    return TestServer(server: server, port: try #require(server.databasePort))
  }

  /// Creates clients of one namespace.
  func clients(
    _ count: Int, in namespace: String = "e2e-\(UUID().uuidString.prefix(8).lowercased())"
  ) throws -> [Client] {
    try (0..<count).map { _ in try Client(port: port, namespace: namespace) }
  }

  /// Replaces the security rules of a namespace.
  func publish(rules: String, in namespace: String) async throws {
    let url = try #require(URL(string: "http://127.0.0.1:\(port)/.settings/rules.json?ns=\(namespace)"))
    var request = URLRequest(url: url)
    request.httpMethod = "PUT"
    request.setValue("Bearer owner", forHTTPHeaderField: "Authorization")
    request.httpBody = Data(rules.utf8)
    let (_, response) = try await URLSession.shared.data(for: request)
    try #require((response as? HTTPURLResponse)?.statusCode == 200)
  }

  func stop(_ clients: [Client]) async {
    for client in clients { await client.close() }
    await server.stop()
  }
}

@Suite("Client and server", .timeLimit(.minutes(10)))
struct EndToEndTests {
  @Test("two clients receive each other's writes, in the order of their query")
  func twoClients() async throws {
    let server = try await TestServer.start()
    let clients = try server.clients(2)
    let (alice, bob) = (clients[0], clients[1])
    let seen = bob.ref.child("list").queryOrdered(byChild: "rank").recordEvents()
    #expect(try await seen.next() == RecordedEvent(.value, "list", "null"))
    let list = alice.ref.child("list")
    try await list.setValue(["a": ["rank": 2], "b": ["rank": 1]])
    #expect(
      try await seen.next(3) == [
        RecordedEvent(.childAdded, "b", #"{"rank":1}"#),
        RecordedEvent(.childAdded, "a", #"{"rank":2}"#, after: "b"),
        RecordedEvent(.value, "list", #"{"a":{"rank":2},"b":{"rank":1}}"#),
      ])
    try await list.updateChildValues(["a/rank": 0, "b": NSNull()])
    #expect(
      try await seen.next(4) == [
        RecordedEvent(.childRemoved, "b", #"{"rank":1}"#), RecordedEvent(.childMoved, "a", #"{"rank":0}"#),
        RecordedEvent(.childChanged, "a", #"{"rank":0}"#),
        RecordedEvent(.value, "list", #"{"a":{"rank":0}}"#),
      ])
    try await bob.ref.child("list/a").removeValue()
    #expect(try await list.getData().exists() == false)
    await server.stop(clients)
  }

  @Test("a write causes one event, and its push and its response cause no further event")
  func oneEventPerWrite() async throws {
    let server = try await TestServer.start()
    let clients = try server.clients(1)
    let ref = clients[0].ref.child("tea/stock")
    let values = ref.recordValues()
    #expect(try await values.next() == "null")
    for stock in 1...20 { try await ref.setValue(stock) }
    #expect(values.recorded == ["null"] + (1...20).map { "\($0)" })
    await server.stop(clients)
  }

  @Test("concurrent transactions on one counter lose no increment")
  func contention() async throws {
    let server = try await TestServer.start()
    let clients = try server.clients(3)
    let attempts = 10
    try await withThrowingTaskGroup(of: Int.self) { group in
      for client in clients {
        let ref = client.ref.child("counter")
        group.addTask {
          var committed = 0
          for _ in 0..<attempts {
            let (isCommitted, _) = try await ref.runTransactionBlock { data in
              data.value = (data.value as? Int ?? 0) + 1
              return .success(withValue: data)
            }
            if isCommitted { committed += 1 }
          }
          return committed
        }
      }
      for try await committed in group { #expect(committed == attempts) }
    }
    let total = try await clients[0].ref.child("counter").getData()
    #expect(total.value as? Int == attempts * clients.count)
    await server.stop(clients)
  }

  @Test("an aborted transaction stores nothing and returns the current value")
  func abortedTransaction() async throws {
    let server = try await TestServer.start()
    let clients = try server.clients(1)
    let ref = clients[0].ref.child("x")
    try await ref.setValue(["a": 1], andPriority: 3)
    let values = ref.recordValues()
    _ = try await values.next()
    let (isCommitted, snapshot) = try await ref.runTransactionBlock { _ in .abort() }
    #expect(!isCommitted)
    #expect(canonicalJSON(snapshot.value) == #"{"a":1}"#)
    let (isSecondCommitted, after) = try await ref.runTransactionBlock { data in
      data.value = ["a": 2]
      return .success(withValue: data)
    }
    #expect(isSecondCommitted && after.priority as? Int == 3, "a transaction retains the priority")
    #expect(try await ref.getData().priority as? Int == 3)
    await server.stop(clients)
  }

  @Test("onDisconnect writes are executed when the client disconnects, unless cancelled")
  func onDisconnect() async throws {
    let server = try await TestServer.start()
    let clients = try server.clients(2)
    let state = clients[0].ref.child("state")
    let seen = clients[1].ref.child("state").recordValues()
    try await state.setValue(["alice": ["on": true], "temporary": 1, "kept": 1])
    try await state.child("alice").onDisconnectUpdateChildValues(["on": false, "at": ServerValue.timestamp()])
    try await state.child("temporary").onDisconnectRemoveValue()
    try await state.child("kept").onDisconnectSetValue(2)
    try await state.child("kept").cancelDisconnectOperations()
    await clients[0].close()
    let after = try await seen.first(where: { $0.contains(#""on":false"#) })
    #expect(after.contains(#""kept":1"#) && !after.contains("temporary") && after.contains(#""at":1"#))
    await server.stop([clients[1]])
  }

  @Test("after a server restart the client reconnects and sends its pending writes")
  func restart() async throws {
    let directory = NSTemporaryDirectory() + "restart-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let first = try await TestServer.start(directory: directory)
    let clients = try first.clients(2)
    let (alice, bob) = (clients[0], clients[1])
    let connected = alice.database.reference(withPath: ".info/connected").recordValues()
    _ = try await connected.first { $0 == "true" }
    try await alice.ref.child("kept").setValue(["a": 1])
    let seen = bob.ref.child("kept").recordValues()
    #expect(try await seen.first(where: { $0 != "null" }) == #"{"a":1}"#)
    await first.server.stop()
    _ = try await connected.first { $0 == "false" }
    alice.ref.child("kept/b").put(2)
    let second = try await TestServer.start(directory: directory, port: first.port)
    _ = try await connected.first(within: 60) { $0 == "true" }
    #expect(try await seen.first(within: 60, where: { $0.contains("b") }) == #"{"a":1,"b":2}"#)
    #expect(try await bob.ref.child("kept").getData().childrenCount == 2)
    await second.stop(clients)
  }

  @Test("offline writes and listeners work locally, and pending writes are sent after reconnecting")
  func offlineAndBack() async throws {
    let server = try await TestServer.start()
    let clients = try server.clients(2)
    let (alice, bob) = (clients[0], clients[1])
    try await alice.ref.child("x").setValue(1)
    let own = alice.ref.child("x").recordValues()
    #expect(try await own.next() == "1")
    let other = bob.ref.child("x").recordValues()
    #expect(try await other.first { $0 == "1" } == "1")
    alice.database.goOffline()
    alice.ref.child("x").put(2)
    #expect(try await own.next() == "2")
    #expect(other.recorded.last == "1")
    alice.database.goOnline()
    #expect(try await other.next() == "2")
    #expect(own.recorded == ["1", "2"])
    await server.stop(clients)
  }

  @Test("the server evaluates queries, and query windows follow other clients' writes")
  func queries() async throws {
    let server = try await TestServer.start()
    let clients = try server.clients(2)
    let log = clients[0].ref.child("log")
    try await log.setValue(["k1": 1, "k2": 5, "k3": 3, "k4": 4])
    let last = clients[1].ref.child("log").queryOrderedByValue().queryLimited(toLast: 2).recordEvents()
    #expect(try await last.next(3).map(\.key) == ["k4", "k2", "log"])
    try await log.child("k5").setValue(9)
    #expect(
      try await last.next(3) == [
        RecordedEvent(.childRemoved, "k4", "4"), RecordedEvent(.childAdded, "k5", "9", after: "k2"),
        RecordedEvent(.value, "log", #"{"k2":5,"k5":9}"#),
      ])
    try await log.child("k5").removeValue()
    #expect(
      try await last.next(3) == [
        RecordedEvent(.childRemoved, "k5", "9"), RecordedEvent(.childAdded, "k4", "4"),
        RecordedEvent(.value, "log", #"{"k2":5,"k4":4}"#),
      ])
    let between = clients[1].ref.child("log").queryOrderedByKey().queryStarting(afterValue: "k1").queryEnding(
      beforeValue: "k4")
    let snapshot = try await between.getData()
    #expect(canonicalJSON(snapshot.value) == #"{"k2":5,"k3":3}"#)
    #expect(snapshot.children.compactMap { ($0 as? DataSnapshot)?.key } == ["k2", "k3"])
    await server.stop(clients)
  }

  @Test("a filtered read is not cached as the complete location")
  func filteredGet() async throws {
    let server = try await TestServer.start()
    let clients = try server.clients(1)
    let ref = clients[0].ref.child("list")
    try await ref.setValue(["a": 1, "b": 2, "c": 3])
    let one = try await ref.queryOrderedByKey().queryLimited(toFirst: 1).getData()
    #expect(canonicalJSON(one.value) == #"{"a":1}"#)
    #expect(try await ref.getData().childrenCount == 3)
    await server.stop(clients)
  }

  @Test("the server adds increments, and timestamps use the server's clock")
  func serverResolvesValues() async throws {
    let server = try await TestServer.start()
    let clients = try server.clients(2)
    await withTaskGroup(of: Void.self) { group in
      for client in clients {
        group.addTask {
          for _ in 0..<10 { _ = try? await client.ref.child("n").setValue(ServerValue.increment(1)) }
        }
      }
    }
    #expect(try await clients[0].ref.child("n").getData().value as? Int == 20)
    try await clients[0].ref.child("t").setValue(ServerValue.timestamp())
    let stamp = try #require(try await clients[1].ref.child("t").getData().value as? Double)
    #expect(abs(stamp - Date().timeIntervalSince1970 * 1000) < 60_000)
    let offset = clients[0].database.reference(withPath: ".info/serverTimeOffset").recordValues()
    #expect(abs(try #require(Double(try await offset.next()))) < 60_000)
    await server.stop(clients)
  }

  @Test("long messages are split into frames, also between the bytes of a character")
  func longMessages() async throws {
    let server = try await TestServer.start()
    let clients = try server.clients(2)
    let long = String(repeating: "x", count: 16_350) + String(repeating: "😀é", count: 20_000)
    try await clients[0].ref.child("long").setValue(["text": long])
    let read = try await clients[1].ref.child("long/text").getData()
    #expect(read.value as? String == long)
    await server.stop(clients)
  }

  @Test("priorities order a list, and a changed priority moves the child")
  func priorities() async throws {
    let server = try await TestServer.start()
    let clients = try server.clients(2)
    let list = clients[0].ref.child("q")
    let seen = clients[1].ref.child("q").recordEvents()
    #expect(try await seen.next().type == .value)
    try await list.child("z").setValue("x", andPriority: 1)
    try await list.child("a").setValue("y", andPriority: 2)
    #expect(try await seen.next(4).map(\.key) == ["z", "q", "a", "q"])
    try await list.child("z").setPriority(3)
    #expect(
      try await seen.next(3) == [
        RecordedEvent(.childMoved, "z", #""x""#, after: "a"),
        RecordedEvent(.childChanged, "z", #""x""#, after: "a"),
        RecordedEvent(.value, "q", #"{"a":"y","z":"x"}"#),
      ])
    await server.stop(clients)
  }

  @Test("a location that is kept synchronized is readable offline")
  func keepSynced() async throws {
    let server = try await TestServer.start()
    let clients = try server.clients(2)
    try await clients[0].ref.child("kept").setValue(["a": 1])
    let ref = clients[1].ref.child("kept")
    ref.keepSynced(true)
    ref.keepSynced(true)
    // The server responds to a connection's requests in order. So this write's response follows the response
    // to the listen.
    try await clients[1].ref.child("other").setValue(1)
    clients[1].database.goOffline()
    #expect(try await ref.recordValues().next() == #"{"a":1}"#)
    clients[1].database.goOnline()
    ref.keepSynced(false)
    await server.stop(clients)
  }

  @Test("a transaction may start another one, and its completion handler sees consistent data")
  func nestedTransactions() async throws {
    let server = try await TestServer.start()
    let clients = try server.clients(1)
    let (outer, inner) = (clients[0].ref.child("outer"), clients[0].ref.child("inner"))
    let order = Recorder<String>()
    outer.runTransactionBlock({ data in
      inner.startTransaction { data in
        data.value = "inner"
        return .success(withValue: data)
      }
      data.value = "outer"
      return .success(withValue: data)
    }) { _, isCommitted, snapshot in
      order.record("\(isCommitted) \(canonicalJSON(snapshot?.value))")
      inner.runTransactionBlock({ data in
        data.value = "again"
        return .success(withValue: data)
      }) { _, isCommitted, snapshot in order.record("\(isCommitted) \(canonicalJSON(snapshot?.value))") }
    }
    #expect(try await order.next(2) == [#"true "outer""#, #"true "again""#])
    #expect(try await inner.getData().value as? String == "again")
    await server.stop(clients)
  }

  @Test("a write that is acknowledged before the listen's initial data causes no extra event")
  func acknowledgedBeforeData() async throws {
    let server = try await TestServer.start()
    let clients = try server.clients(1)
    try await clients[0].ref.child("list").setValue(["k0": 0])
    for n in 0..<20 {
      let ref = clients[0].ref.child("list/k\(n)")
      ref.put(["n": n])
      let seen = ref.recordValues()
      try await clients[0].ref.child("marker").setValue(n)
      #expect(seen.recorded == [#"{"n":\#(n)}"#])
    }
    await server.stop(clients)
  }

  @Test("a transaction fails after 25 conflicts, and loses no other client's change")
  func transactionGivesUp() async throws {
    let server = try await TestServer.start()
    let namespace = "lost-\(UUID().uuidString.prefix(8).lowercased())"
    let client = try Client(port: server.port, namespace: namespace)
    let ref = client.ref.child("n")
    _ = try await ref.recordValues().next()
    let address = try #require(URL(string: "http://127.0.0.1:\(server.port)/n.json?ns=\(namespace)"))
    let attempts = Guarded(0)
    let outcome = Recorder<String>()
    ref.runTransactionBlock({ data in
      // Another client always writes first.
      let number = attempts.withLock { attempts in
        attempts += 1
        return attempts
      }
      var request = URLRequest(url: address)
      request.httpMethod = "PUT"
      request.httpBody = Data("\(number)".utf8)
      let done = DispatchSemaphore(value: 0)
      URLSession.shared.dataTask(with: request) { _, _, _ in done.signal() }.resume()
      _ = done.wait(timeout: .now() + 20)
      data.value = -1
      return .success(withValue: data)
    }) { error, isCommitted, _ in
      outcome.record("\(isCommitted) \((error as NSError?)?.code ?? 0)")
    }
    #expect(try await outcome.first(within: 60) { _ in true } == "false 9999")
    let ran = attempts.withLock { $0 }
    #expect(ran >= 25)
    #expect(try await ref.getData().value as? Int == ran)
    await server.stop([client])
  }

  @Test("a transaction that waits for another one keeps another client's change that no observer sees")
  func hiddenChange() async throws {
    let server = try await TestServer.start()
    let namespace = "hidden-\(UUID().uuidString.prefix(8).lowercased())"
    let client = try Client(port: server.port, namespace: namespace)
    try await client.ref.child("c").setValue(0)
    client.ref.keepSynced(true)
    // The response to this write follows the response to the listen.
    try await client.ref.child("marker").setValue(1)
    let address = try #require(URL(string: "http://127.0.0.1:\(server.port)/c.json?ns=\(namespace)"))
    let outcomes = Recorder<String>()
    client.ref.repository.enqueue { repository in
      repository.runTransaction(
        at: "x", isVisible: true, watcher: .max, update: { _ in .commit(.leaf(.int(1))) },
        completion: { outcomes.record("x \($0.isCommitted)") })
      repository.runTransaction(
        at: .root, isVisible: true, watcher: .max - 1,
        update: { node in
          guard case .int(let count)? = node.descendant("c").leafValue else { return .abort }
          return .commit(node.setting("c", to: .leaf(.int(count + 1))))
        }, completion: { outcomes.record("root \($0.isCommitted)") })
      // The client sends the first transaction after this closure. So this change arrives before the transaction's
      // response.
      var request = URLRequest(url: address)
      request.httpMethod = "PUT"
      request.httpBody = Data("10".utf8)
      let done = DispatchSemaphore(value: 0)
      URLSession.shared.dataTask(with: request) { _, _, _ in done.signal() }.resume()
      _ = done.wait(timeout: .now() + 20)
    }
    #expect(try await outcomes.next(2) == ["x true", "root true"])
    let other = try Client(port: server.port, namespace: namespace)
    #expect(try await other.ref.child("c").getData().value as? Int == 11)
    await server.stop([client, other])
  }

  @Test("Codable values are stored and read by another client")
  func codable() async throws {
    struct Item: Codable, Equatable {
      var name: String
      var stock: Int
      @ServerTimestamp var changed: Date?
    }
    let server = try await TestServer.start()
    let clients = try server.clients(2)
    let stored = Recorder<String>()
    try clients[0].ref.child("item").setValue(from: Item(name: "tea", stock: 4, changed: nil)) { error in
      stored.record(error?.localizedDescription ?? "stored")
    }
    #expect(try await stored.next() == "stored")
    let item = try await clients[1].ref.child("item").getData().data(as: Item.self)
    #expect(item.name == "tea" && item.stock == 4 && item.changed != nil)
    await server.stop(clients)
  }

  @Test("the code of Firebase's guides for lists, transactions and increments works as described")
  func guides() async throws {
    let server = try await TestServer.start()
    let clients = try server.clients(2)
    let posts = PostController(database: clients[0].database)
    let saved = Recorder<String>()
    posts.writeWithCompletion(uid: "u1", username: "ann") { saved.record($0) }
    #expect(try await saved.next() == "Data saved successfully!")
    posts.readOnce(uid: "u1") { saved.record($0) }
    #expect(try await saved.next() == "ann")
    posts.readOnceWithObserver(userID: "u1") { saved.record($0.username) }
    #expect(try await saved.next() == "ann")

    let post = clients[0].ref.child("posts/p1")
    try await post.setValue(["title": "hi", "starCount": 0])
    let committed = Recorder<Bool>()
    toggleStar(ref: post, uid: "u1") { committed.record($0) }
    #expect(try await committed.next())
    let starred = try await clients[1].ref.child("posts/p1").getData()
    #expect(starred.childSnapshot(forPath: "stars/u1").value as? Bool == true)
    #expect(starred.childSnapshot(forPath: "starCount").value as? Int == 1)
    toggleStar(ref: post, uid: "u1") { committed.record($0) }
    #expect(try await committed.next())
    #expect(canonicalJSON(try await post.getData().value) == #"{"starCount":0,"title":"hi"}"#)
    increments(database: clients[0].database, postID: "p1", userID: "u2")
    let count = clients[1].ref.child("posts/p1/starCount").recordValues()
    #expect(try await count.first { $0 == "1" } == "1")

    let comments = CommentsController(database: clients[0].database)
    let log = Recorder<String>()
    clients[0].queue.sync { comments.log = { log.record($0) } }
    comments.listen()
    let key = try #require(comments.append(text: "first"))
    #expect(try await log.next() == "insert [[1, 0]]")
    // The first client shows its comment immediately. The other client must wait until the comment is stored.
    let comment = clients[1].ref.child("post-comments/post-1/\(key)")
    let seen = comment.recordValues()
    #expect(try await seen.first { $0.contains("first") }.contains("first"))
    try await comment.removeValue()
    #expect(try await log.next() == "delete [[1, 0]]")
    await server.stop(clients)
  }
}
