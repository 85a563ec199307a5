// Tests the events that the client computes locally, before the server responds. Every test runs offline.

import Dispatch
import FirebaseCore
import Foundation
import RealtimeModel
import Testing

@testable import FirebaseDatabase

@Suite("Local events", .timeLimit(.minutes(10)))
struct LocalEventTests {
  @Test("a write is visible before the server responds")
  func localFirst() async throws {
    let client = try Client.offline()
    let values = client.ref.child("tea").recordValues()
    client.ref.child("tea").put(["name": "green", "stock": 41])
    #expect(try await values.next() == #"{"name":"green","stock":41}"#)
    client.ref.child("tea/stock").put(42)
    #expect(try await values.next() == #"{"name":"green","stock":42}"#)
    client.ref.child("tea/stock").remove()
    #expect(try await values.next() == #"{"name":"green"}"#)
    await client.close()
  }

  @Test("events arrive in the order removed, added, moved, changed, value, with the preceding sibling's key")
  func eventOrder() async throws {
    let client = try Client.offline()
    let list = client.ref.child("list")
    let events = list.queryOrdered(byChild: "rank").recordEvents()
    list.put(["a": ["rank": 2], "b": ["rank": 1], "c": ["rank": 3]])
    #expect(
      try await events.next(4) == [
        RecordedEvent(.childAdded, "b", #"{"rank":1}"#),
        RecordedEvent(.childAdded, "a", #"{"rank":2}"#, after: "b"),
        RecordedEvent(.childAdded, "c", #"{"rank":3}"#, after: "a"),
        RecordedEvent(.value, "list", #"{"a":{"rank":2},"b":{"rank":1},"c":{"rank":3}}"#),
      ])
    list.merge(["a": NSNull(), "b/rank": 9, "d": ["rank": 0]])
    #expect(
      try await events.next(5) == [
        RecordedEvent(.childRemoved, "a", #"{"rank":2}"#), RecordedEvent(.childAdded, "d", #"{"rank":0}"#),
        RecordedEvent(.childMoved, "b", #"{"rank":9}"#, after: "c"),
        RecordedEvent(.childChanged, "b", #"{"rank":9}"#, after: "c"),
        RecordedEvent(.value, "list", #"{"b":{"rank":9},"c":{"rank":3},"d":{"rank":0}}"#),
      ])
    await client.close()
  }

  @Test("writing equal data causes no event")
  func equalData() async throws {
    let client = try Client.offline()
    let values = client.ref.child("x").recordValues()
    client.ref.child("x").put(1)
    client.ref.child("x").put(1.0)
    client.ref.child("x").put(2)
    #expect(try await values.next(2) == ["1", "2"])
    await client.close()
  }

  @Test(
    "a limited query's window is updated when children change, and removal events precede addition events")
  func limitedQuery() async throws {
    let client = try Client.offline()
    let log = client.ref.child("log")
    log.put(["k1": 1, "k2": 2, "k3": 3])
    let events = log.queryOrderedByKey().queryLimited(toLast: 2).recordEvents()
    #expect(try await events.next(3).map(\.key) == ["k2", "k3", "log"])
    log.child("k4").put(4)
    #expect(
      try await events.next(3) == [
        RecordedEvent(.childRemoved, "k2", "2"), RecordedEvent(.childAdded, "k4", "4", after: "k3"),
        RecordedEvent(.value, "log", #"{"k3":3,"k4":4}"#),
      ])
    log.child("k3").remove()
    #expect(
      try await events.next(3) == [
        RecordedEvent(.childRemoved, "k3", "3"), RecordedEvent(.childAdded, "k2", "2"),
        RecordedEvent(.value, "log", #"{"k2":2,"k4":4}"#),
      ])
    await client.close()
  }

  @Test("exclusive bounds exclude exactly the children at the bound")
  func exclusiveBounds() async throws {
    let client = try Client.offline()
    let list = client.ref.child("list")
    list.put(["a": 1, "b": 2, "c": 2, "d": 3])
    let byValue = list.queryOrderedByValue()
    let queries = [
      byValue.queryStarting(atValue: 2), byValue.queryStarting(afterValue: 2),
      byValue.queryEnding(atValue: 2),
      byValue.queryEnding(beforeValue: 2), byValue.queryEqual(toValue: 2),
      byValue.queryStarting(atValue: 2, childKey: "c"), byValue.queryStarting(afterValue: 2, childKey: "b"),
      byValue.queryEnding(beforeValue: 2, childKey: "c"), byValue.queryEqual(toValue: 2, childKey: "b"),
      list.queryOrderedByKey().queryStarting(afterValue: "b"),
    ]
    var results: [String] = []
    for query in queries { results.append(try await query.recordValues().next()) }
    #expect(
      results == [
        #"{"b":2,"c":2,"d":3}"#, #"{"d":3}"#, #"{"a":1,"b":2,"c":2}"#, #"{"a":1}"#, #"{"b":2,"c":2}"#,
        #"{"c":2,"d":3}"#, #"{"c":2,"d":3}"#, #"{"a":1,"b":2}"#, #"{"b":2}"#, #"{"c":2,"d":3}"#,
      ])
    await client.close()
  }

  @Test("server values are estimated locally: increments from the cached value, timestamps from the clock")
  func estimatedServerValues() async throws {
    let client = try Client.offline()
    let ref = client.ref.child("n")
    ref.put(5)
    let values = ref.recordValues()
    #expect(try await values.next() == "5")
    ref.put(ServerValue.increment(2))
    #expect(try await values.next() == "7")
    let before = Date().timeIntervalSince1970 * 1000
    ref.put(ServerValue.timestamp())
    let stamp = try #require(Double(try await values.next()))
    #expect(abs(stamp - before) < 60_000)
    await client.close()
  }

  @Test("a removed observer receives no event, and other observers of the location continue")
  func removal() async throws {
    let client = try Client.offline()
    let ref = client.ref.child("x")
    let removed = Recorder<String>()
    let handle = ref.observe(.value) { removed.record(canonicalJSON($0.value)) }
    let remaining = ref.recordValues()
    ref.put(1)
    _ = try await remaining.next()
    ref.removeObserver(withHandle: handle)
    ref.put(2)
    #expect(try await remaining.next() == "2")
    #expect(removed.recorded == ["1"])
    ref.removeAllObservers()
    let last = ref.recordValues()
    ref.put(3)
    #expect(try await last.first { $0 == "3" } == "3")
    #expect(remaining.recorded == ["1", "2"])
    await client.close()
  }

  @Test("a single-event observer receives one event")
  func single() async throws {
    let client = try Client.offline()
    let ref = client.ref.child("x")
    let singleEvents = Recorder<String>()
    ref.observeSingleEvent(of: .value, with: { singleEvents.record(canonicalJSON($0.value)) })
    let all = ref.recordValues()
    ref.put(1)
    ref.put(2)
    _ = try await all.first { $0 == "2" }
    #expect(singleEvents.recorded == ["1"])
    let (snapshot, previous) = await ref.observeSingleEventAndPreviousSiblingKey(of: .value)
    #expect(snapshot.value as? Int == 2)
    #expect(previous == nil)
    await client.close()
  }

  @Test("a transaction runs on the local value, and observers see the result immediately")
  func transaction() async throws {
    let client = try Client.offline()
    let ref = client.ref.child("counter")
    ref.put(1)
    let values = ref.recordValues()
    #expect(try await values.next() == "1")
    ref.startTransaction { data in
      data.value = (data.value as? Int ?? 0) + 1
      return .success(withValue: data)
    }
    #expect(try await values.next() == "2")
    ref.runTransactionBlock(
      { data in
        data.value = (data.value as? Int ?? 0) + 10
        return .success(withValue: data)
      }, andCompletionBlock: nil, withLocalEvents: false)
    let (isCommitted, snapshot) = try await ref.runTransactionBlock { data in .abort() }
    #expect(!isCommitted)
    #expect(snapshot.value as? Int == 12, "a transaction sees hidden writes of other transactions")
    #expect(values.recorded == ["1", "2"], "observers do not see hidden writes")
    await client.close()
  }

  @Test(
    "offline transactions of one location share one internal observer, and the last transaction removes it")
  func transactionObserver() async throws {
    let client = try Client.offline()
    let ref = client.ref.child("counter")
    for _ in 0..<500 {
      ref.startTransaction { data in
        data.value = (data.value as? Int ?? 0) + 1
        return .success(withValue: data)
      }
    }
    /// The number of the transactions' observers, and the number of listens at the location.
    func counts() async -> [Int] {
      await withCheckedContinuation { continuation in
        client.ref.repository.enqueue { repository in
          continuation.resume(
            returning: [repository.transactions.watchers.count, repository.tree.listens(at: "counter").count])
        }
      }
    }
    #expect(await counts() == [1, 1])
    #expect(try await ref.recordValues().next() == "500")
    ref.removeAllObservers()
    client.ref.repository.enqueue { repository in
      let listen = Listen(path: "counter", query: .default, tag: nil)
      repository.handle(.listenAnswered(listen, warnings: [], .permissionDenied))
    }
    ref.startTransaction { .success(withValue: $0) }
    #expect(
      await counts() == [1, 1], "the server ended the listen, so the next transaction starts a new one")
    ref.put(0)
    await client.waitForRequests()
    #expect(await counts() == [0, 0], "the write has cancelled all transactions")
    await client.close()
  }

  @Test("setting a location cancels its unsent transaction")
  func overridden() async throws {
    let client = try Client.offline()
    let ref = client.ref.child("counter")
    let outcome = Recorder<String>()
    let values = ref.recordValues()
    ref.runTransactionBlock({ data in
      data.value = 7
      return .success(withValue: data)
    }) { error, isCommitted, _ in
      let code = (error as NSError?).map { "\($0.domain) \($0.code)" } ?? "none"
      outcome.record("\(code) \(isCommitted)")
    }
    #expect(try await values.next() == "7")
    ref.put(8)
    #expect(try await outcome.next() == "com.firebase 9999 false")
    #expect(try await values.next() == "8")
    await client.close()
  }

  @Test("a transaction that used the result of a cancelled transaction runs again")
  func rerunAfterOverride() async throws {
    let client = try Client.offline()
    let ref = client.ref.child("t")
    let values = ref.child("c").recordValues()
    ref.startTransaction { data in
      data.value = ["c": 5]
      return .success(withValue: data)
    }
    ref.child("c").startTransaction { data in
      data.value = (data.value as? Int ?? 0) + 1
      return .success(withValue: data)
    }
    #expect(try await values.first { $0 == "6" } == "6")
    ref.child("a").put(1)
    #expect(try await values.first(within: 20) { $0 == "1" } == "1")
    await client.close()
  }

  @Test("purgeOutstandingWrites reverts pending writes and completes them with an error")
  func purge() async throws {
    let client = try Client.offline()
    let ref = client.ref.child("x")
    let outcome = Recorder<Int>()
    ref.setValue(["a": 1]) { error, _ in outcome.record((error as NSError?)?.code ?? 0) }
    let added = Recorder<String>()
    ref.observe(.childAdded) { added.record("+" + $0.key) }
    ref.observe(.childRemoved) { added.record("-" + $0.key) }
    #expect(try await added.next() == "+a")
    client.database.purgeOutstandingWrites()
    #expect(try await added.next() == "-a")
    #expect(try await outcome.next() == 3)
    await client.close()
  }

  @Test("after the app is deleted, pending writes have an unknown outcome and every waiting task ends")
  func deletion() async throws {
    let client = try Client.offline()
    let ref = client.ref.child("x")
    let outcome = Recorder<String>()
    ref.setValue(1) { _, _ in outcome.record("completion") }
    ref.onDisconnectSetValue(2) { _, _ in outcome.record("operation") }
    let write = Task { () -> String in
      do { return "\(try await ref.child("y").setValue(2))" } catch { return error.localizedDescription }
    }
    let event = Task {
      await client.ref.child("z").observeSingleEventAndPreviousSiblingKey(of: .value).0.exists()
    }
    let values = ref.recordValues()
    _ = try await values.first { $0.contains(#""y":2"#) }
    await client.close()
    #expect(try await within { await write.value }.contains("not known"))
    #expect(try await within { await event.value } == false)
    Repository.queue.sync {}
    client.queue.sync {}
    #expect(outcome.recorded.isEmpty)
  }

  @Test("a database of a deleted app is not stored as an instance, and its requests fail")
  func deletedApp() async throws {
    let client = try Client.offline()
    await client.close()
    FirebaseApp.configure(
      name: client.app.name, options: FirebaseOptions(googleAppID: "1:1:ios:ab", gcmSenderID: "1"))
    let successor = try #require(FirebaseApp.app(name: client.app.name))
    let url = "http://127.0.0.1:9?ns=gone"
    let successorDatabase = Database.database(app: successor, url: url)

    let database = Database.database(app: client.app, url: url)
    #expect(database !== successorDatabase && database !== Database.database(app: client.app, url: url))
    #expect(Database.database(app: successor, url: url) === successorDatabase)
    database.callbackQueue = client.queue
    let location = database.reference().child("a")
    for ends in [
      try await within { (try? await location.setValue(1)) == nil },
      try await within { (try? await location.getData()) == nil },
      try await within {
        (try? await location.runTransactionBlock { .success(withValue: $0) }) == nil
      },
    ] { #expect(ends) }
    _ = await successor.delete()
  }

  @Test("reading without a connection fails after three seconds with Firebase's error")
  func offlineGet() async throws {
    let client = try Client.offline()
    do {
      _ = try await client.ref.child("x").getData()
      Issue.record("a read without a connection succeeded")
    } catch {
      let error = error as NSError
      #expect(error.domain == "com.firebase.core")
      #expect(error.code == 1)
      #expect(error.localizedDescription.contains("client offline with no active listeners"))
    }
    client.ref.child("y").put(5)
    let values = client.ref.child("y").recordValues()
    _ = try await values.next()
    await client.close()
  }

  @Test("an empty update completes immediately")
  func emptyUpdate() async throws {
    let client = try Client.offline()
    _ = try await within { [ref = client.ref] in try await ref.updateChildValues([:]) }
    await client.close()
  }

  @Test(".info/connected is false offline, and .info/serverTimeOffset has no value yet")
  func information() async throws {
    let client = try Client.offline()
    let offset = client.database.reference(withPath: ".info/serverTimeOffset").recordValues()
    let connected = client.database.reference(withPath: ".info/connected").recordValues()
    #expect(try await connected.next() == "false")
    #expect(offset.recorded.isEmpty)
    await client.close()
  }

  @Test("callbacks run on the main queue by default")
  func mainQueue() async throws {
    let name = "main-\(UUID().uuidString)"
    FirebaseApp.configure(name: name, options: FirebaseOptions(googleAppID: "1:1:ios:ab", gcmSenderID: "1"))
    let app = try #require(FirebaseApp.app(name: name))
    let database = Database.database(app: app, url: "http://127.0.0.1:9?ns=main-queue")
    database.goOffline()
    let seen = Recorder<Int>()
    database.reference(withPath: "x").observe(.value) { snapshot in
      dispatchPrecondition(condition: .onQueue(.main))
      seen.record(snapshot.value as? Int ?? 0)
    }
    database.reference(withPath: "x").put(1)
    #expect(try await seen.next() == 1)
    _ = await app.delete()
  }

  @Test("snapshots are delivered as an async sequence")
  func sequence() async throws {
    let client = try Client.offline()
    let ref = client.ref.child("x")
    ref.put(1)
    let value = try await within {
      for try await snapshot in ref.values() { return snapshot.value as? Int }
      return nil
    }
    #expect(value == 1)
    await client.close()
  }

  @Test("the warning about a missing index contains the rule to add")
  func missingIndex() async throws {
    let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      let client = try Client.offline()
      let query = QuerySpec(ordering: .child("due"), limit: .last(2))
      let repository = client.ref.repository
      Repository.queue.sync {
        let listen = Listen(path: "notes", query: query, tag: 1)
        repository.handle(.listenAnswered(listen, warnings: ["no_index"], nil))
      }
    }
    let log = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(log.contains(#"".indexOn": "due""#) && log.contains("/notes"), "\(log)")
  }
}
