// Queries that overlap at one location, under random writes of two clients: whatever each observer was told adds up.

import FirebaseCore
import Foundation
import HearthServer
import Locking
import RandomModels
import RealtimeModel
import Testing

@testable import FirebaseDatabase

/// What the events of one query add up to.
private final class Shown: Sendable {
  fileprivate struct State {
    var children: [String: String] = [:]
    var value: String?
    var order: [String] = []
    var faults: [String] = []
  }

  private let state = Guarded(State())
  let query: DatabaseQuery

  init(_ query: DatabaseQuery) {
    self.query = query
    let state = state
    for type in [DataEventType.childRemoved, .childAdded, .childChanged, .childMoved] {
      query.observe(
        type,
        with: { child in state.withLock { $0.apply(type, child.key, text(child.valueInExportFormat())) } })
    }
    query.observe(
      .value,
      with: { snapshot in
        let children = snapshot.children.compactMap { $0 as? DataSnapshot }
        let pairs = children.map { ($0.key, text($0.valueInExportFormat())) }
        state.withLock { state in
          state.value = text(snapshot.valueInExportFormat())
          state.order = pairs.map(\.0)
          if state.children != Dictionary(uniqueKeysWithValues: pairs) {
            state.faults.append("the children told \(state.children) are not the value's \(pairs)")
          }
        }
      })
  }

  var value: String? { state.withLock { $0.value } }
  var order: [String] { state.withLock { $0.order } }
  var faults: [String] { state.withLock { $0.faults } }
}

extension Shown.State {
  fileprivate mutating func apply(_ type: DataEventType, _ key: String, _ value: String) {
    let known = children[key]
    switch type {
    case .childAdded:
      if known != nil { faults.append("\(key) was added twice") }
      children[key] = value
    case .childRemoved:
      if known == nil { faults.append("\(key) was removed without being there") }
      children[key] = nil
    case .childChanged, .childMoved:
      if known == nil { faults.append("\(key) changed without being there") }
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
    "each query shows what the server holds when all is quiet, and its events add up to it", arguments: 0..<6)
  func property(seed: Int) async throws {
    var random = RandomNodes(seed: UInt64(seed) &+ 900)
    let server = try await TestServer.start()
    let namespace = "overlap-\(seed)"
    let rules = #"{"rules":{"list":{".indexOn":["rank",".value"]}}}"#
    // Without an index a client chooses from all children itself.
    if seed % 2 == 0 { try await server.publish(rules: rules, in: namespace) }
    let clients = try server.clients(3, in: namespace)
    let (alice, bob) = (clients[0].ref.child("list"), clients[1].ref.child("list"))
    var shown = queries(alice, &random).map { Shown($0) }
    for step in 0..<60 {
      let key = "k\(random.below(8))"
      let writer = random.below(2) == 0 ? alice : bob
      switch random.below(8) {
      case 0: writer.child(key).drop()
      case 1: writer.merge(["\(key)/rank": random.below(8), "k\(random.below(3))x": NSNull()])
      case 2: writer.child(key).put(["rank": random.below(8)], priority: random.below(4))
      case 3: writer.child(key).put(random.below(10))
      case 4: writer.child("\(key)/rank").put(ServerValue.increment(1))
      case 5:
        writer.child(key).transact { data in
          data.value = ["rank": data.childrenCount + 1]
          return .success(withValue: data)
        }
      default: writer.child(key).put(["rank": random.below(8), "t": "s\(step)"])
      }
      if random.below(12) == 0, !shown.isEmpty {
        let gone = shown.remove(at: random.below(shown.count))
        gone.query.removeAllObservers()
        // A plain reference stands for every query of its place.
        let place = gone.query.path
        if gone.query.spec.isDefault { shown.removeAll { $0.query.path == place } }
      }
      if random.below(12) == 0 {
        let place = clients[0].ref.child("list").queryOrderedByKey().queryStarting(
          atValue: "k\(random.below(5))"
        ).queryLimited(toFirst: 2)
        if !shown.contains(where: { $0.query.path == place.path && $0.query.spec == place.spec }) {
          shown.append(Shown(place))
        }
      }
      if random.below(5) == 0 { _ = try await writer.child("k7").getData() }
    }
    // Each writer's last write is answered after all before it, and after what others' writes pushed.
    for client in clients { try await client.ref.child("marker").setValue(ServerValue.increment(1)) }
    let settled = clients[0].ref.child("settled").recordValues()
    for n in 0..<30 where n == 0 || clients.contains(where: { $0.database.hasPendingTransactions }) {
      try await clients[1].ref.child("settled").setValue(n)
      _ = try await settled.first { $0 == "\(n)" }
    }
    try await clients[1].ref.child("settled").setValue("end")
    _ = try await settled.first { $0 == #""end""# }
    // What is read once needs the index in any case.
    try await server.publish(rules: rules, in: namespace)
    for shown in shown {
      let fresh = try await query(like: shown.query, on: clients[2]).getData()
      #expect(shown.value == text(fresh.valueInExportFormat()), "\(shown.query) of seed \(seed)")
      #expect(shown.order == fresh.children.compactMap { ($0 as? DataSnapshot)?.key })
      #expect(shown.faults.isEmpty, "\(shown.query) of seed \(seed): \(shown.faults)")
    }
    await server.stop(clients)
  }

  private func query(like query: DatabaseQuery, on client: Client) -> DatabaseQuery {
    DatabaseQuery(repository: client.ref.repository, path: query.path, parameters: query.parameters)
  }
}

extension Database {
  /// Whether a transaction of this client waits for its end.
  fileprivate var hasPendingTransactions: Bool {
    let repository = reference().repository
    return Repository.queue.sync { !repository.transactions.tree.isEmpty }
  }
}
