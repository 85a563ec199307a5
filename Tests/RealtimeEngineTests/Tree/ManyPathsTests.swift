// Tests updates of many paths. The engine reads the gaps between existing rows once for such an update, and
// must keep this knowledge correct while the update changes rows.

import Access
import OrderedStore
import RandomModels
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite("Updates of many paths", .timeLimit(.minutes(10)))
struct ManyPathsTests {
  private func path(_ generator: inout RandomNodes) -> Path {
    Path(keys: (0..<(1 + generator.below(4))).map { _ in ChildKey("n\(generator.below(12))") })
  }

  /// Returns a value for one path: usually a leaf, sometimes with a priority, rarely an object or a removal.
  private func node(_ generator: inout RandomNodes) -> Node {
    switch generator.below(8) {
    case 0: .empty
    case 1:
      .object([
        ("n1", 1), (ChildKey("n\(generator.below(12))"), .leaf(.bool(true), priority: generator.priority())),
      ])
    case 2: .leaf(.string("p"), priority: generator.priority())
    default: .leaf(.int(Int64(generator.below(4))))
    }
  }

  /// Returns random values and priorities at paths. No value's path contains another's.
  private func changes(_ generator: inout RandomNodes) -> [(Path, Node)] {
    var changes: [Path: Node] = [:]
    for _ in 0..<(2 + generator.below(120)) {
      let path = path(&generator)
      if changes.keys.contains(where: { $0.contains(path) || path.contains($0) }) { continue }
      changes[path] = node(&generator)
    }
    for path in changes.keys.sorted() where !(changes[path]?.isEmpty ?? true) && generator.below(16) == 0 {
      guard let above = path.parent, !above.isRoot, changes[above.child(.priority)] == nil else { continue }
      changes[above.child(.priority)] = .leaf(.int(Int64(generator.below(3))))
    }
    return changes.map { ($0.key, $0.value) }
  }

  @Test(
    "After updates of many paths the tree equals the model, and its rows are consistent", arguments: 0..<24)
  func model(seed: Int) async throws {
    var generator = RandomNodes(seed: UInt64(seed))
    let store = try MemoryStore()
    var staging = [StagingLimits.standard, .tinyRemovals, .tinyReads, .tiny][seed % 4]
    staging.minimumGapChanges = 2
    var model = Node.empty
    for round in 0..<12 {
      // A new engine starts with an empty cache.
      let engine = RealtimeEngine(
        store: store, policy: OpenPolicy(), cacheBytes: round % 3 == 2 ? 1 << 20 : 2_000,
        staging: staging)
      let database = try await engine.database("many")
      for _ in 0..<3 {
        let location: Path = generator.below(2) == 0 ? "n1" : "/"
        let changes = changes(&generator)
        _ = try await database.update(location, changes, as: .nobody)
        let absolute = changes.map { (location.appending($0.0), $0.1) }.sorted { $0.0 < $1.0 }
        // The model applies priorities last, because another change of the update may create their location.
        model = model.merging(absolute.filter { !$0.0.isPriority } + absolute.filter { $0.0.isPriority })
        #expect(try await database.get("/", as: .nobody) == model, "seed \(seed), round \(round)")
      }
      await engine.shutdown()
    }
    let reports = try await TreeCheck.run(store)
    #expect(reports.map(\.problemCount) == [0])
    try await store.close()
  }
}
