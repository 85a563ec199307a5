// Shows an access policy the tree before and after the write that the policy has to allow or deny.

import RealtimeModel

/// The tree as a policy sees it for one operation.
struct TreeAccessView: AccessView {
  let tree: Tree
  let changes: [(path: Path, value: Node)]
  let now: Int64

  func node(at path: Path) throws -> Node { try tree.node(at: path) }

  func nodeAfter(at path: Path) throws -> Node {
    if let above = changes.first(where: { $0.path.contains(path) }) {
      return above.value.descendant(Path(keys: Array(path.keys.dropFirst(above.path.count))))
    }
    var node = try tree.node(at: path)
    for (changed, value) in changes {
      if let relative = changed.relative(to: path) { node = node.setting(relative, to: value) }
    }
    return node
  }
}
