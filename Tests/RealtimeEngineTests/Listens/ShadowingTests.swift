// Tests which default listens (without filter or limit) of one connection receive the push of a write. A default
// listen covers all default listens below it, so only the topmost ones receive pushes. The tests compare with this
// definition, and count the lookups of ancestors.

import Access
import RandomModels
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite("Default listens at nested locations", .timeLimit(.minutes(5)))
struct ShadowingTests {
  /// The stage of the engine that delivers pushes to listens (fan-out), without the other stages, and its connections.
  private struct Stage {
    let fanOut = FanOut()
    private(set) var connections: [ConnectionState] = []
    private let group = RecordingGroup()

    init(_ count: Int) {
      for number in 0..<count {
        connections.append(
          ConnectionState(name: "\(number)", caller: .nobody, sink: RecordingSink(group)))
      }
    }

    func start(_ path: Path, _ index: Int = 0, _ query: QuerySpec = .default, tag: Int64? = nil) {
      let listen = RealtimeOperation.Listen(path: path, query: query, tag: tag, hash: "", compoundHash: nil)
      fanOut.run([
        .listen(connections[index], listen, .empty, PreparedListen(), warnings: [], request: nil)
      ])
    }

    func stop(_ path: Path, _ index: Int = 0, tag: Int64? = nil) {
      fanOut.run([.unlisten(connections[index], ListenName(path: path, tag: tag), revoked: nil)])
    }

    mutating func end(_ index: Int) {
      fanOut.run([.end(connections[index], notifiesClient: false)])
      connections[index] = ConnectionState(name: "\(index)", caller: .nobody, sink: RecordingSink(group))
    }

    /// Writes to these locations at once. Returns the paths and tags of each connection's pushes.
    func write(_ paths: [Path], _ value: Int) -> [[Set<String>]] {
      // Discards the initial pushes of new listens.
      _ = group.take()
      let node = Node.object([("v", .leaf(.int(Int64(value))))])
      fanOut.run([.write(paths.map { Change(path: $0, value: node, before: nil) }, windows: [:])])
      var received = [[Set<String>]](repeating: [], count: connections.count)
      for delivery in group.take().flatMap({ $0 }) {
        guard let index = connections.firstIndex(where: { $0.sink === delivery.sink }) else { continue }
        for case .push(let push) in delivery.outputs {
          let tag = push.tag.map { " #\($0)" } ?? ""
          switch push.body {
          case .set: received[index].append(["\(push.path)\(tag)"])
          case .merge(let parts):
            received[index].append(Set(parts.map { "\(push.path.appending($0.path))\(tag)" }))
          default: received[index].append(["?"])
          }
        }
      }
      return received
    }
  }

  /// Returns the expected pushes to a connection with these default listens: one for each topmost listen that
  /// the changes affect.
  private func expected(_ listens: Set<Path>, _ changes: [Path]) -> [Set<String>] {
    let notified = listens.filter { path in !listens.contains { $0 != path && $0.contains(path) } }
    return notified.compactMap { path -> Set<String>? in
      if changes.contains(where: { $0.contains(path) }) { return ["\(path)"] }
      let inside = changes.filter { path.contains($0) }
      return inside.isEmpty ? nil : Set(inside.map { "\($0)" })
    }
  }

  @Test(
    "A connection receives each write once, through its topmost listen, however listens start and end",
    arguments: 0..<20)
  func receivesOnce(seed: Int) {
    var random = RandomNodes(seed: UInt64(9_100 + seed))
    func path(_ maximumDepth: Int = 6) -> Path {
      Path(keys: (0..<random.below(maximumDepth + 1)).map { _ in ChildKey(["a", "b"][random.below(2)]) })
    }
    var stage = Stage(5)
    var listens = [Set<Path>](repeating: [], count: 5)
    let filtered = QuerySpec(ordering: .value, limit: .last(1))
    for step in 0..<300 {
      let index = random.below(5)
      let location = path()
      switch random.below(20) {
      case 0:
        stage.end(index)
        listens[index] = []
      case 1:
        // A filtered query under the same name replaces the default listen. Then this listen ends, or becomes
        // the default one again.
        stage.start(location, index, filtered)
        if random.below(2) == 0 {
          stage.stop(location, index)
          listens[index].remove(location)
        } else {
          stage.start(location, index)
          listens[index].insert(location)
        }
      case 2, 3, 4:
        // Starts or ends a default listen. The listen to end may not exist.
        if random.below(2) == 0 {
          stage.start(location, index)
          listens[index].insert(location)
        } else {
          stage.stop(location, index)
          listens[index].remove(location)
        }
      default:
        if listens[index].remove(location) != nil {
          stage.stop(location, index)
        } else {
          listens[index].insert(location)
          stage.start(location, index)
        }
      }
      if random.below(2) == 0 { continue }
      var changes: [Path] = []
      for _ in 0...random.below(3) {
        let location = path(7)
        changes.removeAll { location.contains($0) || $0.contains(location) }
        changes.append(location)
      }
      changes.sort()
      let received = stage.write(changes, step)
      for index in 0..<5 {
        let expectedPushes = expected(listens[index], changes)
        #expect(
          received[index].count == expectedPushes.count,
          "seed \(seed), step \(step): \(received[index]), \(expectedPushes)")
        #expect(Set(received[index]) == Set(expectedPushes), "seed \(seed), step \(step)")
      }
    }
    for index in 0..<5 { stage.end(index) }
    #expect(stage.fanOut.root.isEmpty)
  }

  @Test(
    "Starting and ending a listen above 10,000 listens visits none of these; a write visits only affected listens"
  )
  func startAndStopCost() {
    let stage = Stage(1)
    var lookupCount: Int { stage.connections[0].output.defaults.lookupCount }
    for number in 0..<10_000 { stage.start(Path("x/a/b/c/k\(number)")) }
    for _ in 0..<100 {
      stage.start("x")
      stage.stop("x")
    }
    #expect(lookupCount == 0)
    #expect(stage.write(["x/a/b/c/k5"], 1) == [[["x/a/b/c/k5"]]])
    #expect(lookupCount == 5, "k5 and its ancestors")
    #expect(stage.write(["x/a/b/c/k5"], 2) == [[["x/a/b/c/k5"]]])
    #expect(lookupCount == 5, "nothing has changed")
    stage.start("x")
    #expect(stage.write(["x/a/b/c/k5"], 3) == [[["x/a/b/c/k5"]]])
    #expect(lookupCount <= 5 + 1 + 4)
    // A write above all listens visits each of them, and checks the ancestors of each once.
    #expect(stage.write(["x"], 4) == [[["x"]]])
    #expect(lookupCount <= 10 + 10_000 * 4)
    let before = lookupCount
    #expect(stage.write(["x"], 5) == [[["x"]]])
    #expect(lookupCount == before)
    stage.stop("x")
    #expect(stage.write(["x"], 6)[0].count == 10_000)
  }

  @Test("A connection's only listen needs no ancestor checks")
  func singleListen() {
    let stage = Stage(3)
    for index in 0..<3 { stage.start("a/b/c", index) }
    #expect(stage.write(["a/b/c/d"], 1) == [[Set<String>]](repeating: [["a/b/c/d"]], count: 3))
    #expect(stage.connections.allSatisfy { $0.output.defaults.lookupCount == 0 })
  }

  @Test("Listens with equal queries and different tags end independently")
  func sameQuery() {
    var random = RandomNodes(seed: 9_200)
    let stage = Stage(1)
    let query = QuerySpec(ordering: .key, limit: .last(1))
    var live: Set<Int64> = []
    for step in 0..<400 {
      let tag = Int64(random.below(50))
      if live.remove(tag) != nil {
        stage.stop("q", tag: tag)
      } else {
        live.insert(tag)
        stage.start("q", 0, query, tag: tag)
      }
      let received = stage.write(["q"], step)[0]
      #expect(received.count == live.count, "step \(step)")
      #expect(Set(received) == Set(live.map { ["q #\($0)"] }), "step \(step)")
    }
    for tag in live { stage.stop("q", tag: tag) }
    #expect(stage.fanOut.root.isEmpty)
  }
}
