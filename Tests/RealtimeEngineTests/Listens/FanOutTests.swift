// Tests how the fan-out delivers pushes. It encodes a push once for all listeners, delivers to a group of connections
// in one call, and visits only the listeners of affected locations. A default listen has neither filter nor limit.

import Access
import Locking
import OrderedStore
import RandomModels
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite("Fan-out", .timeLimit(.minutes(10)))
struct RealtimeFanOutTests {
  private func open() async throws -> RealtimeDatabase {
    try await RealtimeEngine(store: MemoryStore(), policy: OpenPolicy()).database("fan-out")
  }

  @Test(
    "All default listens share one push object, which is encoded once and delivered to a group in one call")
  func shared() async throws {
    let database = try await open()
    let group = RecordingGroup()
    let sinks = (0..<50).map { _ in RecordingSink(group) }
    let connections = sinks.map { database.connect(as: .nobody, to: $0) }
    for (i, connection) in connections.enumerated() {
      connection.listen(i % 2 == 0 ? "a" : "/", hash: "", request: 1)
    }
    _ = try await database.set("a/b", to: 1, as: .nobody)
    let deliveries = group.take()
    let pushes = deliveries.flatMap { $0 }.flatMap(\.outputs).compactMap { output -> RealtimePush? in
      if case .push(let push) = output { return push }
      return nil
    }
    #expect(pushes.count == 50)
    #expect(Set(pushes.map(ObjectIdentifier.init)).count == 1)
    #expect(deliveries.last?.count == 50)
    let encodings = Guarded(0)
    for push in pushes {
      let frame = push.encoded(as: String.self) { push in
        encodings.withLock { $0 += 1 }
        return push.text
      }
      #expect(frame == "d a/b 1")
    }
    #expect(encodings.withLock { $0 } == 1)
    #expect(pushes[0].encoded(as: Int.self) { _ in 7 } == 7)
    #expect(pushes[0].encoded(as: String.self, variant: 1) { _ in "other" } == "other")
    for connection in connections { connection.close() }
  }

  @Test("The estimated size of a push includes its paths, also the paths of removals")
  func size() {
    let long = Path(keys: [
      ChildKey(String(repeating: "k", count: 700)), ChildKey(String(repeating: "l", count: 700)),
    ])
    let pushes = [
      RealtimePush(long, .set(.empty)), RealtimePush("a", .merge([(long, .empty), ("b", .empty)])),
      RealtimePush("a", .rangeMerge([RangeMerge(start: long, end: "z", updates: .empty)])),
      RealtimePush("a", .rangeMerge([RangeMerge(start: "a", end: long, updates: .empty)])),
    ]
    for push in pushes { #expect((1_400..<1_600).contains(push.estimatedSize), "\(push.estimatedSize)") }
  }

  @Test("A closed connection receives nothing")
  func ended() async throws {
    let database = try await open()
    let group = RecordingGroup()
    let connection = database.connect(as: .nobody, to: RecordingSink(group))
    connection.listen("a", hash: nil, request: 1)
    _ = try await database.set("a", to: 1, as: .nobody)
    connection.close()
    _ = try await database.set("b", to: 1, as: .nobody)
    _ = group.take()
    _ = try await database.set("a", to: 2, as: .nobody)
    connection.listen("a", hash: nil, request: 2)
    _ = try await database.set("a", to: 3, as: .nobody)
    #expect(group.take().isEmpty)
  }

  @Test("A write visits only the listens above and below its location")
  func visits() {
    let root = ListenTrie()
    let sink = RecordingSink(RecordingGroup())
    func listen(_ path: Path) -> Listener {
      let connection = ConnectionState(name: "\(path)", caller: .nobody, sink: sink)
      let listener = Listener(connection: connection, name: ListenName(path: path, tag: nil), query: .default)
      root.location(at: path).add(listener)
      return listener
    }
    var listeners = (0..<1_000).map { listen(Path("elsewhere/\($0)")) }
    listeners += ["a", "a/b/c", "a/b/c/d", "a/x"].map { listen($0) }
    var received: [String] = []
    WriteFanOut([Change(path: "a/b", value: .object([("c", .leaf(.int(1)))]), before: nil)]).visit(root) {
      connection, output in
      guard case .push(let push) = output else { return }
      received.append("\(connection.name): \(push.text)")
    }
    #expect(received == ["a: d a/b {c:1}", "a/b/c: d a/b/c 1", "a/b/c/d: d a/b/c/d null"])
    for listener in listeners { listener.location?.remove(listener) }
    #expect(root.isEmpty)
  }

  @Test("Nested default listens of one connection cause one push for each write")
  func nestedListens() async throws {
    let database = try await open()
    let client = Client(database)
    var generator = RandomNodes(seed: 77)
    var live: Set<Path> = []
    for _ in 0..<200 {
      let path = generator.path()
      if live.remove(path) != nil {
        await client.call { $0.unlisten(path, request: $1) }
      } else {
        live.insert(path)
        await client.call { $0.listen(path, hash: "", request: $1) }
      }
      _ = await client.takeOutputs()
      let target = generator.path().child("leaf")
      _ = await client.set(target, .leaf(.int(Int64(generator.below(1 << 30)))))
      let pushes = await client.takeOutputs().filter { if case .push = $0 { true } else { false } }
      #expect(pushes.count == (live.contains { $0.contains(target) } ? 1 : 0))
    }
  }

  @Test(
    "A location keeps a listen's sort order until the listen ends, even if the connection closed before the start"
  )
  func closed() {
    let group = RecordingGroup()
    let fanOut = FanOut()
    let orders = ListenedOrders()
    let query = QuerySpec(ordering: .value, limit: .last(1))
    let node: Node = ["a": 1, "b": 2]
    func listen(_ name: String, tag: Int64?, _ query: QuerySpec) -> (ConnectionState, FanOutStep) {
      let connection = ConnectionState(name: name, caller: .nobody, sink: RecordingSink(group))
      orders.change(ListenName(path: "l", tag: tag), from: nil, to: query, SessionJournal())
      let listen = RealtimeOperation.Listen(path: "l", query: query, tag: tag, hash: "", compoundHash: nil)
      return (connection, .listen(connection, listen, node, PreparedListen(), warnings: [], request: 1))
    }
    let (first, filtered) = listen("first", tag: 1, query)
    let (second, unfiltered) = listen("second", tag: nil, .default)
    _ = first.markClosed()
    _ = second.markClosed()
    fanOut.run([filtered, unfiltered])
    #expect(orders.hasOrder(.value, at: "l"))
    #expect(fanOut.root.location(at: "l").queries != nil)
    #expect(fanOut.root.location(at: "l").listeners.isEmpty)
    // No connection is open, so the value is not pushed.
    let pushes = group.take().flatMap { $0 }.flatMap(\.outputs).filter {
      if case .push = $0 { true } else { false }
    }
    #expect(pushes.isEmpty)
    fanOut.run([.end(first, notifiesClient: false), .end(second, notifiesClient: false)])
    #expect(fanOut.root.location(at: "l").queries == nil)
  }
}

/// Records the deliveries.
final class RecordingGroup: RealtimeSinkGroup {
  private let deliveries = Guarded<[[RealtimeDelivery]]>([])

  func deliver(_ delivered: [RealtimeDelivery]) { deliveries.withLock { $0.append(delivered) } }

  func take() -> [[RealtimeDelivery]] {
    deliveries.withLock { deliveries in
      defer { deliveries = [] }
      return deliveries
    }
  }
}

final class RecordingSink: RealtimeSink {
  private let recording: RecordingGroup
  init(_ recording: RecordingGroup) { self.recording = recording }
  var group: any RealtimeSinkGroup { recording }
}
