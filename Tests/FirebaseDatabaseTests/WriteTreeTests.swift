// Tests the write tree, which stores the pending writes and their combined effect (the overlay). Compares it with a
// model that applies every pending write again after each change, and counts the steps of changes.

import FirebaseCore
import RealtimeModel
import Testing

@testable import FirebaseDatabase

@Suite("Write tree", .timeLimit(.minutes(10)))
struct WriteTreeTests {
  /// The model: the pending writes in order, without an index.
  private struct Model {
    var records: [WriteRecord] = []

    func overlay(_ includes: (WriteRecord) -> Bool) -> WriteOverlay {
      var overlay = WriteOverlay()
      for record in records where includes(record) {
        for (path, node) in record.replacements { overlay.write(node, at: path) }
      }
      return overlay
    }
  }

  private static let paths: [Path] = [
    "a", "a/b", "a/b/c", "a/d", "a/b/.priority", "a/.priority", "e", "e/f", "a/b/c/g", .root,
  ]

  private static func node(_ random: inout SplitMix) -> Node {
    switch Int.random(in: 0..<5, using: &random) {
    case 0: .empty
    case 1: .leaf(.int(Int64.random(in: 0..<9, using: &random)))
    case 2: .leaf(.string("s"), priority: .number(1))
    case 3: .object([("b", .leaf(.int(1))), ("d", .object([("g", .leaf(.bool(true)))]))])
    default: .object([("c", .leaf(.int(2)))], priority: .string("p"))
    }
  }

  private static func record(_ id: Int, _ random: inout SplitMix) -> WriteRecord {
    let path = paths[Int.random(in: 0..<paths.count, using: &random)]
    let isVisible = Int.random(in: 0..<4, using: &random) > 0
    if path.isPriority || Int.random(in: 0..<3, using: &random) > 0 {
      let value = path.isPriority ? Node.leaf(.int(Int64(id))) : node(&random)
      return WriteRecord(id: id, path: path, change: .overwrite(value), isVisible: isVisible)
    }
    let changes: [(Path, Node)] = [("b", node(&random)), ("d/x", node(&random))]
    return WriteRecord(id: id, path: path, change: .merge(changes), isVisible: isVisible)
  }

  @Test("removing writes in any order leaves the overlay of the remaining writes", arguments: 0..<40)
  func matchesModel(seed: UInt64) {
    var random = SplitMix(seed: seed)
    var tree = WriteTree()
    var model = Model()
    for id in 0..<200 {
      if model.records.count < 12, Int.random(in: 0..<5, using: &random) > 1 {
        let record = WriteTreeTests.record(id, &random)
        tree.add(record)
        model.records.append(record)
      } else if !model.records.isEmpty {
        let isOldest = Bool.random(using: &random)
        let position = isOldest ? 0 : Int.random(in: 0..<model.records.count, using: &random)
        let record = model.records.remove(at: position)
        let newer = model.records[position...].contains { newer in
          newer.isVisible && newer.replacements.contains { $0.path.contains(record.path) }
        }
        let removed = tree.remove(record.id)
        #expect(removed?.mayBeSeen == (record.isVisible && !newer), "seed \(seed), write \(id)")
      }
      let server = WriteTreeTests.node(&random)
      let visible = model.overlay(\.isVisible)
      #expect(
        tree.overlay(at: .root).applied(to: server) == visible.applied(to: server),
        "seed \(seed), write \(id)")
      for path in WriteTreeTests.paths {
        #expect(
          tree.shadowingWrite(at: path) == visible.completeNode(at: path),
          "seed \(seed), write \(id), \(path)")
      }
      let excluded = Set(model.records.map(\.id).filter { _ in Bool.random(using: &random) })
      for path in WriteTreeTests.paths where !path.isPriority {
        let expected = model.overlay { !excluded.contains($0.id) }.overlay(at: path).applied(to: server)
        let actual = tree.transactionNode(at: path, over: server, excluding: excluded)
        #expect(actual == expected, "seed \(seed), write \(id), \(path)")
      }
    }
  }

  /// Patterns of pending writes. The cost of a write must not depend on the number of pending writes.
  enum Pattern: CaseIterable {
    case siblings, sameLocation, belowOneWrite, updates
  }

  @Test(
    "adding and acknowledging a write takes equally many steps with 1,000 and 8,000 pending writes",
    arguments: Pattern.allCases)
  func constantCost(_ pattern: Pattern) {
    func steps(_ count: Int) -> Double {
      var tree = WriteTree()
      for id in 0..<count {
        let change: (Path, WriteRecord.Change) =
          switch pattern {
          case .siblings: (Path("list/a\(id)"), .overwrite(.leaf(.int(1))))
          case .sameLocation: ("list/a", .overwrite(.leaf(.int(Int64(id)))))
          case .belowOneWrite: (id == 0 ? "list" : Path("list/a\(id)"), .overwrite(.leaf(.int(1))))
          case .updates:
            ("list", .merge([(Path("a\(id)"), .leaf(.int(1))), ("count", .leaf(.int(Int64(id))))]))
          }
        tree.add(WriteRecord(id: id, path: change.0, change: change.1, isVisible: true))
      }
      for id in 0..<count { _ = tree.remove(id) }
      return Double(tree.cost.steps) / Double(count)
    }
    #expect(steps(8_000) <= steps(1_000) * 1.01)
  }

  @Test(
    "a new write does not apply earlier writes again, with and without observers of the parent",
    arguments: [false, true])
  func costOfSets(isObserved: Bool) async throws {
    func steps(_ count: Int) async throws -> Int {
      let client = try Client.offline()
      let list = client.ref.child("list")
      if isObserved {
        list.observe(.value, with: { _ in })
        list.observe(.childAdded, with: { _ in })
      }
      for n in 0..<count { list.child("a\(n)").put(n) }
      let repository = client.ref.repository
      let steps = await withCheckedContinuation { continuation in
        repository.enqueue { continuation.resume(returning: $0.tree.writes.cost.steps) }
      }
      await client.close()
      return steps
    }
    #expect(try await steps(2_000) == 2_000)
  }

  @Test("after removals in any order, a pending queue contains the remaining values", arguments: 0..<20)
  func pendingQueue(seed: UInt64) {
    var random = SplitMix(seed: seed)
    var queue = PendingQueue<Int>()
    var model: [Int] = []
    for id in 0..<500 {
      if Int.random(in: 0..<5, using: &random) < 3 {
        queue.append(id, -id)
        model.append(id)
      } else if let id = Bool.random(using: &random) ? model.first : model.randomElement(using: &random) {
        #expect(queue.remove(id) == -id)
        #expect(queue.remove(id) == nil)
        model.removeAll { $0 == id }
      }
      #expect(queue.values == model.map { -$0 })
      #expect(queue.count == model.count && queue.firstID == model.first && queue.lastID == model.last)
    }
  }
}
