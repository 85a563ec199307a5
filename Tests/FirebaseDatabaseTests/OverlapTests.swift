// Tests overlapping queries at one location while two clients write randomly. Applying a query's events in
// order must produce the query's result.

import FirebaseCore
import Foundation
import HearthServer
import Locking
import RandomModels
import RealtimeModel
import Testing

@testable import FirebaseDatabase

/// Applies the events of one query in order, and records events that contradict earlier ones.
private final class EventReplay: Sendable {
  fileprivate struct State {
    var children: [String: String] = [:]
    var value: String?
    var order: [String] = []
    var violations: [String] = []
  }

  private let state = Guarded(State())
  let query: DatabaseQuery

  init(_ query: DatabaseQuery) {
    self.query = query
    let state = state
    for type in [DataEventType.childRemoved, .childAdded, .childChanged, .childMoved] {
      query.observe(
        type,
        with: { child in
          state.withLock { $0.apply(type, child.key, canonicalJSON(child.valueInExportFormat())) }
        })
    }
    query.observe(
      .value,
      with: { snapshot in
        let children = snapshot.children.compactMap { $0 as? DataSnapshot }
        let pairs = children.map { ($0.key, canonicalJSON($0.valueInExportFormat())) }
        state.withLock { state in
          state.value = canonicalJSON(snapshot.valueInExportFormat())
          state.order = pairs.map(\.0)
          if state.children != Dictionary(uniqueKeysWithValues: pairs) {
            state.violations.append("the children by events \(state.children) are not the value's \(pairs)")
          }
        }
      })
  }

  var value: String? { state.withLock { $0.value } }
  var order: [String] { state.withLock { $0.order } }
  var violations: [String] { state.withLock { $0.violations } }
}

extension EventReplay.State {
  fileprivate mutating func apply(_ type: DataEventType, _ key: String, _ value: String) {
    let current = children[key]
    switch type {
    case .childAdded:
      if current != nil { violations.append("\(key) was added twice") }
      children[key] = value
    case .childRemoved:
      if current == nil { violations.append("\(key) was removed without being there") }
      children[key] = nil
    case .childChanged, .childMoved:
      if current == nil { violations.append("\(key) changed without being there") }
      if type == .childChanged { children[key] = value }
    case .value: break
    }
  }
}

@Suite("Overlapping queries", .timeLimit(.minutes(10)))
struct OverlapTests {
  private func queries(_ list: DatabaseReference, _ random: inout RandomNodes) -> [DatabaseQuery] {
    let all: [DatabaseQuery] = [
      list, list.queryOrdered(byChild: "rank"), list.queryOrderedByKey().queryLimited(toFirst: 3),
      list.queryOrderedByKey().queryLimited(toLast: 2), list.queryOrderedByValue().queryLimited(toFirst: 4),
      list.queryOrdered(byChild: "rank").queryLimited(toLast: 3),
      list.queryOrdered(byChild: "rank").queryStarting(atValue: 2).queryEnding(atValue: 6),
      list.queryOrdered(byChild: "rank").queryStarting(afterValue: 3).queryLimited(toFirst: 2),
      list.queryOrdered(byChild: "rank").queryEqual(toValue: 4),
      list.queryOrderedByPriority().queryStarting(atValue: 1),
      list.queryOrderedByPriority().queryLimited(toLast: 3),
      list.child("k1"), list.child("k2/rank"), list.child("k3").queryOrderedByKey().queryLimited(toFirst: 1),
    ]
    return all.filter { _ in random.below(3) > 0 }
  }

  @Test(
    "each query ends with the server's result, and applying its events produces the same result",
    arguments: 0..<6)
  func convergence(seed: Int) async throws {
    var random = RandomNodes(seed: UInt64(seed) &+ 900)
    let server = try await TestServer.start()
    let namespace = "overlap-\(seed)"
    let rules = #"{"rules":{".read":true,".write":true,"list":{".indexOn":["rank",".value"]}}}"#
    // Without an index the server sends all children and the client filters them.
    if seed % 2 == 0 { try await server.publish(rules: rules, in: namespace) }
    let clients = try server.clients(3, in: namespace)
    let (alice, bob) = (clients[0].ref.child("list"), clients[1].ref.child("list"))
    var replays = queries(alice, &random).map { EventReplay($0) }
    for step in 0..<60 {
      let key = "k\(random.below(8))"
      let writer = random.below(2) == 0 ? alice : bob
      switch random.below(8) {
      case 0: writer.child(key).remove()
      case 1: writer.merge(["\(key)/rank": random.below(8), "k\(random.below(3))x": NSNull()])
      case 2: writer.child(key).put(["rank": random.below(8)], priority: random.below(4))
      case 3: writer.child(key).put(random.below(10))
      case 4: writer.child("\(key)/rank").put(ServerValue.increment(1))
      case 5:
        writer.child(key).startTransaction { data in
          data.value = ["rank": data.childrenCount + 1]
          return .success(withValue: data)
        }
      default: writer.child(key).put(["rank": random.below(8), "t": "s\(step)"])
      }
      if random.below(12) == 0, !replays.isEmpty {
        let removed = replays.remove(at: random.below(replays.count))
        removed.query.removeAllObservers()
        // Removing all observers of a reference removes every query of its location.
        let location = removed.query.path
        if removed.query.spec.isDefault { replays.removeAll { $0.query.path == location } }
      }
      if random.below(12) == 0 {
        let query = clients[0].ref.child("list").queryOrderedByKey().queryStarting(
          atValue: "k\(random.below(5))"
        ).queryLimited(toFirst: 2)
        if !replays.contains(where: { $0.query.path == query.path && $0.query.spec == query.spec }) {
          replays.append(EventReplay(query))
        }
      }
      if random.below(5) == 0 { _ = try await writer.child("k7").getData() }
    }
    // A connection's responses and pushes arrive in order. So the response to each client's last write
    // follows all its earlier responses and pushes.
    for client in clients { try await client.ref.child("marker").setValue(ServerValue.increment(1)) }
    let settled = clients[0].ref.child("settled").recordValues()
    for n in 0..<30 where n == 0 || clients.contains(where: { $0.database.hasPendingTransactions }) {
      try await clients[1].ref.child("settled").setValue(n)
      _ = try await settled.first { $0 == "\(n)" }
    }
    try await clients[1].ref.child("settled").setValue("end")
    _ = try await settled.first { $0 == #""end""# }
    // Unlike listens, the final reads require the index.
    try await server.publish(rules: rules, in: namespace)
    for replay in replays {
      let fresh = try await query(like: replay.query, on: clients[2]).getData()
      #expect(replay.value == canonicalJSON(fresh.valueInExportFormat()), "\(replay.query) of seed \(seed)")
      #expect(replay.order == fresh.children.compactMap { ($0 as? DataSnapshot)?.key })
      #expect(replay.violations.isEmpty, "\(replay.query) of seed \(seed): \(replay.violations)")
    }
    await server.stop(clients)
  }

  private func query(like query: DatabaseQuery, on client: Client) -> DatabaseQuery {
    DatabaseQuery(repository: client.ref.repository, path: query.path, parameters: query.parameters)
  }
}

extension Database {
  /// True while a transaction of this client is pending.
  fileprivate var hasPendingTransactions: Bool {
    let repository = reference().repository
    return Repository.queue.sync { !repository.transactions.isEmpty }
  }
}
