// Tests databases without a write for hours. Reads, transactions and listeners get the current time as their read time,
// not the time of the last write. Therefore the trimming of old versions does not invalidate these read times.

import Access
import EmbeddedStore
import FirestoreModel
import Locking
import OrderedStore
import Testing

@testable import FirestoreEngine

@Suite("Idle databases", .timeLimit(.minutes(10))) struct IdleDatabaseTests {
  /// A clock that advances only by `move`.
  final class Clock: Sendable {
    private let microseconds = Guarded<UInt64>(1_700_000_000_000_000)

    var store: StoreClock { StoreClock { [microseconds] in microseconds.withLock { $0 } } }
    var now: Timestamp { Version(microseconds: microseconds.withLock { $0 }).timestamp }

    func move(hours: Int64) {
      microseconds.withLock { $0 = UInt64(Int64($0) + hours * 3_600_000_000) }
    }
  }

  /// A store that can be reopened and trimmed.
  struct ReopenableStore {
    let isEmbedded: Bool
    let clock = Clock()
    private let memory = MemoryEngine()
    private let directory: TemporaryDirectory

    init(isEmbedded: Bool) throws {
      self.isEmbedded = isEmbedded
      directory = try TemporaryDirectory()
    }

    func open() async throws -> (store: any OrderedStore, trim: @Sendable () async throws -> Void) {
      let options = StoreOptions(clock: clock.store, trimmingIntervalMilliseconds: 0)
      if isEmbedded {
        let store = try await EmbeddedStore.open(
          directory: directory.path, EmbeddedOptions(store: options))
        return (store, { try await store.trimNow() })
      }
      let store = try MemoryStore(memory, options)
      return (store, { try await store.trimNow() })
    }
  }

  private static func readTime(_ fixture: EngineFixture, _ path: ResourcePath) async throws -> Timestamp {
    try await fixture.engine.getDocument(try fixture.name(path), as: .administrator).readTime
  }

  private static func list(_ fixture: EngineFixture, token: String = "") async throws -> ListDocumentsPage {
    try await fixture.engine.listDocuments(
      ListDocumentsRequest(parent: fixture.root, collectionID: "c", pageSize: 1, pageToken: token),
      as: .administrator)
  }

  @Test(
    "reads, transactions and listeners that begin after two idle hours have current read times and survive the next commit",
    arguments: [false, true])
  func afterIdleHours(isEmbedded: Bool) async throws {
    let storage = try ReopenableStore(isEmbedded: isEmbedded)
    let (store, trim) = try await storage.open()
    let fixture = try EngineFixture(store: store)
    for id in ["a", "b", "d"] { try await fixture.set(ResourcePath(["c", id]), ["n": 1]) }
    storage.clock.move(hours: 2)
    let idleTime = storage.clock.now

    // A query's read time is the time of its execution.
    let times = Collected<Timestamp>()
    try await fixture.engine.runQuery(
      Query(parent: fixture.root, StructuredQuery(from: [.init("c")])), as: .administrator
    ) { times.append($0.readTime) }
    #expect(try #require(times.all.first) >= idleTime)
    #expect(try await Self.readTime(fixture, "c/a") >= idleTime)

    let readOnly = try await fixture.begin(.readOnly())
    let optimistic = try await fixture.begin(.readWrite(concurrency: .optimistic))
    let locking = try await fixture.begin()
    for token in [readOnly, optimistic] {
      #expect(try await fixture.get("c/a", .transaction(token)) == ["n": 1])
    }
    // Only the locking transaction reads `c/d`, so its later write of `c/d` conflicts with no other transaction.
    #expect(try await fixture.get("c/d", .transaction(locking)) == ["n": 1])
    let page = try await Self.list(fixture)
    let client = WatchClient()
    let stream = try await fixture.watch(client)
    stream.addTarget(WatchTarget(id: 2, fixture.selection(StructuredQuery(from: [.init("c")]))))
    try await eventually("the target is current") { !client.view.snapshots.isEmpty }
    #expect(try #require(client.view.snapshots.first?.time) >= idleTime)
    let token = client.view.token
    stream.close()

    // The next commit trims versions that are two hours old.
    try await fixture.set("other/d", [:])
    try await trim()

    let unread: [([UInt8], ResourcePath)] = [(readOnly, "c/b"), (optimistic, "c/b"), (locking, "c/d")]
    for (token, path) in unread {
      #expect(try await fixture.get(path, .transaction(token)) == ["n": 1])
    }
    #expect(try await Self.list(fixture, token: page.nextPageToken).documents.count == 1)
    try await fixture.commit(
      [Write(.update(try fixture.name("c/a"), fields: ["n": 2]))], transaction: optimistic)
    try await fixture.commit(
      [Write(.update(try fixture.name("c/d"), fields: ["n": 2]))], transaction: locking)
    let second = WatchClient()
    let resumed = try await fixture.watch(second)
    resumed.addTarget(
      WatchTarget(
        id: 2, fixture.selection(StructuredQuery(from: [.init("c")])), start: .resumeToken(token)))
    try await eventually("the target is current") { !second.view.snapshots.isEmpty }
    #expect(second.view.resets == 0)
    resumed.close()
    try await store.close()
  }

  @Test(
    "commit versions exceed every earlier read time, over restarts and clocks that are set back",
    arguments: [false, true])
  func commitTimesRise(isEmbedded: Bool) async throws {
    let storage = try ReopenableStore(isEmbedded: isEmbedded)
    var last = Timestamp.epoch
    for round in 0..<4 {
      let (store, _) = try await storage.open()
      let fixture = try EngineFixture(store: store)
      if round > 0 { #expect(try await Self.readTime(fixture, "c/d") >= last) }
      // Each round has a change and three commits that change nothing, with reads between them.
      let name = try fixture.name("c/d")
      let writes: [Write] = [
        Write(.update(name, fields: ["round": .integer(Int64(round))])),
        Write(.update(name, fields: ["round": .integer(Int64(round))])),
        Write(.delete(try fixture.name("c/none"))), Write(.verify(name), precondition: .exists(true)),
      ]
      for write in writes {
        let committed = try #require(try await fixture.commit([write]).commitTime)
        #expect(committed > last)
        storage.clock.move(hours: 1)
        let read = try await Self.readTime(fixture, "c/d")
        #expect(read >= committed)
        #expect(try await Self.readTime(fixture, "c/d") == read)
        last = read
      }
      try await store.close()
      storage.clock.move(hours: round.isMultiple(of: 2) ? -24 : 1)
    }
  }

  @Test("commits that change nothing get increasing times, and documents keep their update times")
  func commitsWithoutChanges() async throws {
    let fixture = try EngineFixture()
    let first = try #require(try await fixture.set("c/d", ["a": 1]).commitTime)
    let read = try await Self.readTime(fixture, "c/d")
    let name = try fixture.name("c/d")
    var times = [max(first, read)]
    let writes: [Write] = [
      Write(.update(name, fields: ["a": 1])), Write(.delete(try fixture.name("c/none"))),
      Write(.verify(name), precondition: .exists(true)), Write(.update(name, fields: ["a": 1])),
    ]
    for write in writes {
      let response = try await fixture.commit([write])
      times.append(try #require(response.commitTime))
      if case .update = write.operation { #expect(response.writeResults[0].updateTime == first) }
    }
    // A transaction that only reads under locks also gets a new time.
    let token = try await fixture.begin()
    _ = try await fixture.get("c/d", .transaction(token))
    times.append(try #require(try await fixture.commit([], transaction: token).commitTime))
    for (earlier, later) in zip(times, times.dropFirst()) { #expect(earlier < later) }
    let document = try await fixture.engine.getDocument(name, as: .administrator)
    #expect(document.document.updateTime == first)
    #expect(document.readTime >= times[times.count - 1])
  }
}
