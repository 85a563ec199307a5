// Tests that keys, paths and sort keys have total orders, and that formatting and parsing a path does not change it.

import RandomModels
import Testing

@testable import RealtimeModel

@Suite("Properties of orders and paths", .timeLimit(.minutes(10)))
struct OrderPropertyTests {
  /// Whether a comparison is a total order on some elements.
  private func isTotalOrder<T>(_ elements: [T], _ isBefore: (T, T) -> Bool, _ isSame: (T, T) -> Bool) -> Bool
  {
    for a in elements {
      for b in elements {
        let (before, after, same) = (isBefore(a, b), isBefore(b, a), isSame(a, b))
        guard [before, after, same].filter({ $0 }).count == 1 else { return false }
        guard before else { continue }
        for c in elements where isBefore(b, c) {
          if !isBefore(a, c) { return false }
        }
      }
    }
    return true
  }

  @Test("Keys and paths are totally ordered, ancestors before descendants", arguments: 0..<8)
  func paths(seed: Int) {
    var random = RandomNodes(seed: UInt64(seed) &+ 500)
    let keys = (0..<25).map { _ in ChildKey(random.key()) } + [.minimum, .maximum, .priority]
    #expect(isTotalOrder(keys, <, ==))
    let paths = (0..<40).map { _ in random.path(4) }
    #expect(isTotalOrder(paths, <, ==))
    for path in paths {
      let below = path.appending(random.path())
      #expect(path.contains(below) && (path == below || path < below))
      #expect(below.relative(to: path).map { path.appending($0) } == below)
      #expect(Path(path.description) == path && Path(path.absolute) == path)
      #expect(Path("//" + path.description + "//") == path)
    }
  }

  @Test(
    "Every ordering is a total order of children, in which only equal keys are equal", arguments: 0..<8)
  func sortKeys(seed: Int) {
    var random = RandomNodes(seed: UInt64(seed) &+ 600)
    for _ in 0..<6 {
      let ordering = random.ordering()
      let keys = (0..<20).map { n in
        SortKey(of: ChildKey("\(random.key())\(n)"), random.node(depth: 1), in: ordering)
      }
      #expect(isTotalOrder(keys, <, ==), "\(ordering)")
    }
  }
}
