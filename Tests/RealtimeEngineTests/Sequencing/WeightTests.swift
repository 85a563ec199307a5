// Tests operation weights. A weight is an upper bound of the bytes that an operation writes, so that a batch
// limited by weight fits into one commit.

import Access
import OrderedStore
import RandomModels
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite("Weights of operations", .timeLimit(.minutes(10)))
struct WeightTests {
  /// The bytes that a write adds to its commit: one row for each leaf, and the log record.
  private func writtenBytes(_ changes: [(Path, Node)]) -> Int {
    var bytes = ChangeLogRecord(changes).bytes.count
    for (path, node) in changes {
      node.forEachLeaf { relative, leaf in
        bytes += RowKeys.row(of: path.appending(relative)).count + NodeEncoder.encode(leaf).count
      }
    }
    return bytes
  }

  private func weight(_ write: RealtimeWrite) -> Int {
    RealtimeOperation(.write(write, hash: nil), from: .call(.administrator) { _ in }).weight
  }

  @Test("No write adds more bytes to its commit than its weight", arguments: 0..<200)
  func bound(seed: Int) {
    var generator = RandomNodes(seed: UInt64(seed))
    let path = Path(
      keys: (0..<generator.below(12)).map { _ in
        ChildKey(String(repeating: generator.key(), count: 1 + generator.below(60)))
      })
    let node = generator.node(depth: 4)
    #expect(weight(.set(path, node)) >= writtenBytes([(path, node)]))
    let changes = (0..<generator.below(20)).map { i in
      (Path(keys: [ChildKey("c\(i)")]), generator.node(depth: 3))
    }
    #expect(
      weight(.update(path, changes)) >= writtenBytes(changes.map { (path.appending($0.0), $0.1) }))
  }

  @Test("Each leaf's weight includes its path, so many small leaves below a long path are heavy")
  func longPath() {
    let leaves = HugeSubtree.leaves(1_000)
    let weight = weight(.set(HugeSubtree.path, leaves))
    let writtenBytes = writtenBytes([(HugeSubtree.path, leaves)])
    #expect(writtenBytes > 20 << 20)
    #expect(weight >= writtenBytes)
    #expect(weight < writtenBytes * 2)
  }
}
