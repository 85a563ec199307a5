// A tree in memory, as rules see it.

import Access
import RealtimeModel

/// The view of two nodes, before and after an operation. It counts its reads.
final class NodeTreeView: TreeView {
  let before: Node
  let after: Node
  let now: Int64
  let work: DecisionWork?
  private(set) var reads = 0

  init(before: Node, after: Node? = nil, now: Int64 = 1_700_000_000_000, work: DecisionWork? = nil) {
    self.work = work
    self.before = before
    self.after = after ?? before
    self.now = now
  }

  private func node(at path: Path, _ state: TreeState) -> Node {
    reads += 1
    return (state == .before ? before : after).descendant(path)
  }

  func content(at path: Path, _ state: TreeState) -> Node.Content { node(at: path, state).content }

  func priority(at path: Path, _ state: TreeState) -> Priority? { node(at: path, state).priority }

  func childKeys(at path: Path, after: ChildKey?, limit: Int, _ state: TreeState) -> [ChildKey] {
    var keys: [ChildKey] = []
    node(at: path, state).forEachChild(from: after) { key, _ in
      if key != after { keys.append(key) }
      return keys.count < limit
    }
    return keys
  }
}
