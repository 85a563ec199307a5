// Tests that a client never shows a state that the database did not have, and shows the latest state at the
// end, however slowly it reads.

import Access
import NIOConcurrencyHelpers
import OrderedStore
import RandomModels
import RealtimeEngine
import RealtimeModel
import Testing

@testable import RealtimeEndpoints

@Suite("Client states from pushes", .timeLimit(.minutes(10)))
struct ClientModelTests {
  /// Collects the outputs of one connection.
  private final class Inbox: RealtimeSink, RealtimeSinkGroup {
    private let received = NIOLockedValueBox<[RealtimeOutput]>([])

    var group: any RealtimeSinkGroup { self }

    func deliver(_ deliveries: [RealtimeDelivery]) {
      received.withLockedValue { $0 += deliveries.flatMap(\.outputs) }
    }

    func take() -> [RealtimeOutput] {
      received.withLockedValue { received in
        defer { received = [] }
        return received
      }
    }
  }

  /// One listen of two clients: one reads immediately, the other reads rarely.
  private struct Listen {
    let path: Path
    let query: QuerySpec
    let connection: RealtimeConnection
    let inbox: Inbox
    var fastClients: [ClientModel]
    var slowClients: [(client: ClientModel, reached: Int)]
    var pending = OutboundQueue()

    init(_ path: Path, _ query: QuerySpec, views: [Path], _ database: RealtimeDatabase) async {
      (self.path, self.query) = (path, query)
      inbox = Inbox()
      connection = database.connect(as: .nobody, to: inbox)
      fastClients = views.flatMap { view in
        ClientModel.Kind.allCases.map { ClientModel(kind: $0, path: view) }
      }
      slowClients = fastClients.map { ($0, 0) }
      connection.listen(path, query: query, tag: query.showsAll ? nil : 1, hash: "", request: 1)
      while inbox.take().isEmpty { try? await Task.sleep(for: .milliseconds(1)) }
    }

    func expected(_ state: Node, at view: Path) -> Node {
      let node = state.descendant(view)
      return query.showsAll ? node : node.window(query)
    }

    mutating func applyNext(_ states: [Node], _ context: String) {
      guard case .push(let push)? = pending.next() else { return }
      for i in slowClients.indices {
        slowClients[i].client.apply(push)
        let (client, reached) = slowClients[i]
        let next = states.indices.first {
          $0 >= reached && expected(states[$0], at: client.path) == client.node
        }
        #expect(
          next != nil,
          "\(context): \(client.kind) at \(client.path) shows a state that never existed, after \(push.body)")
        slowClients[i].reached = next ?? reached
      }
    }
  }

  private static let keys: [RealtimeModel.ChildKey] = ["a", "A", "9", "10", "-1"]

  private func path(_ random: inout RandomNodes, _ maximumCount: Int) -> Path {
    Path(
      keys: (0..<(1 + random.below(maximumCount))).map { _ in Self.keys[random.below(random.below(2) + 2)] })
  }

  private func value(_ random: inout RandomNodes, _ depth: Int) -> Node {
    let priority = random.below(5) == 0 ? Priority.number(Double(random.below(2))) : nil
    switch random.below(depth == 0 ? 3 : 5) {
    case 0, 1: return .empty
    case 2: return .leaf(.int(Int64(random.below(2))), priority: priority)
    default:
      return .object(
        (0...random.below(2)).map { _ in (Self.keys[random.below(4)], value(&random, depth - 1)) },
        priority: priority)
    }
  }

  @Test(
    "A slow client shows only states that existed while a leaf became an object and was replaced by a sibling"
  )
  func removedLeafWithNewChild() async throws {
    let engine = RealtimeEngine(store: try MemoryStore(), policy: OpenPolicy())
    let database = try await engine.database("clients")
    var listen = await Listen("", .default, views: ["", "p", "p/c"], database)
    _ = listen.inbox.take()
    var states = [Node.empty]
    let writes: [[(Path, Node)]] = [
      [("p/c", .leaf(.int(5)))], [("p/c/a", .leaf(.int(1)))], [("p/c/a", .empty), ("p/d", .leaf(.int(1)))],
    ]
    for (step, changes) in writes.enumerated() {
      _ = try await database.update(.root, changes, as: .nobody)
      states.append(try await database.get("", as: .nobody))
      for case .push(let push) in listen.inbox.take() { listen.pending.append(.push(push), coalescing: true) }
      // The client reads the push of the leaf immediately, and all later pushes at the end.
      if step == 0 { listen.applyNext(states, "step \(step)") }
    }
    #expect(listen.pending.count == 2)
    while !listen.pending.isEmpty { listen.applyNext(states, "the end") }
    for (client, _) in listen.slowClients {
      #expect(client.node == listen.expected(states[3], at: client.path))
    }
    #expect(states[3] == Node.empty.setting("p/d", to: .leaf(.int(1))))
    await engine.shutdown()
  }

  @Test("Clients show only states that the database had, and the latest state at the end", arguments: 0..<80)
  func property(seed: Int) async throws {
    var random = RandomNodes(seed: UInt64(seed))
    let engine = RealtimeEngine(store: try MemoryStore(), policy: OpenPolicy())
    let database = try await engine.database("clients")
    let hasPriorities = seed % 4 > 0
    var listens = [
      await Listen("", .default, views: ["", "a", "a/A", "a/a/9"], database),
      await Listen("a", .default, views: ["a", "a/A"], database),
      await Listen("a", QuerySpec(ordering: .key, limit: .first(2)), views: ["a"], database),
      await Listen("", QuerySpec(ordering: .priority, limit: .last(2)), views: [""], database),
    ]
    var states: [Node] = [.empty]
    for step in 0..<60 {
      if random.below(2) == 0 {
        let location = path(&random, 3)
        if hasPriorities, random.below(3) == 0 {
          let priority = random.below(3) == 0 ? Node.empty : .leaf(.int(Int64(random.below(3))))
          _ = try await database.set(location.child(.priority), to: priority, as: .nobody)
        } else {
          let node = value(&random, 2)
          _ = try await database.set(location, to: hasPriorities ? node : node.withoutPriorities, as: .nobody)
        }
      } else {
        let base = random.below(2) == 0 ? Path.root : path(&random, 1)
        var changes: [(Path, Node)] = []
        for _ in 0...random.below(4) {
          var location = path(&random, 3)
          let isPriority = hasPriorities && random.below(3) == 0
          if isPriority { location = location.child(.priority) }
          if changes.contains(where: { $0.0.contains(location) || location.contains($0.0) }) { continue }
          let node = value(&random, 1)
          changes.append(
            (
              location,
              isPriority ? .leaf(.int(Int64(random.below(3)))) : hasPriorities ? node : node.withoutPriorities
            ))
        }
        _ = try await database.update(base, changes, as: .nobody)
      }
      let state = try await database.get("", as: .nobody)
      states.append(state)
      let context = "seed \(seed), step \(step)"
      for l in listens.indices {
        for case .push(let push) in listens[l].inbox.take() {
          listens[l].pending.append(.push(push), coalescing: true)
          for c in listens[l].fastClients.indices { listens[l].fastClients[c].apply(push) }
        }
        for client in listens[l].fastClients {
          let expected = listens[l].expected(state, at: client.path)
          #expect(client.node == expected, "\(context): \(client.kind) at \(client.path)")
        }
        if random.below(8) == 0 { listens[l].applyNext(states, context) }
      }
    }
    for var listen in listens {
      while !listen.pending.isEmpty { listen.applyNext(states, "seed \(seed)") }
      for (client, _) in listen.slowClients {
        #expect(client.node == listen.expected(states[states.count - 1], at: client.path), "seed \(seed)")
      }
    }
    await engine.shutdown()
  }
}

extension Node {
  fileprivate var withoutPriorities: Node {
    var node = with(priority: nil)
    forEachChild { key, child in
      node = node.settingChild(key, to: child.withoutPriorities)
      return true
    }
    return node
  }
}
