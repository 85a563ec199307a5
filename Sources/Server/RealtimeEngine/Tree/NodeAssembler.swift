// Assembles a node from its rows in key order. At any time only the ancestors of the last row are incomplete.

import RealtimeModel

/// Assembles a node from rows in key order.
struct NodeAssembler {
  private struct IncompleteObject {
    var key: ChildKey
    var children: [(ChildKey, Node)] = []
    var priority: Priority?
  }

  private var leaf: Node?
  /// The incomplete objects from the node itself down to the parent of the last row.
  private var open: [IncompleteObject] = [IncompleteObject(key: .minimum)]
  /// The estimated size of the added rows in bytes of JSON. At the end it is the size of the node.
  private(set) var estimatedSize = 0

  /// Adds a row by its path relative to the node. A path that ends in `.priority` adds a priority.
  mutating func add(_ path: [ChildKey], _ value: Node) {
    estimatedSize += value.estimatedSize
    guard let last = path.last else {
      leaf = value
      return
    }
    if open.count == 1, open[0].children.isEmpty, open[0].priority == nil { estimatedSize += 1 }
    let parents = path.dropLast()
    var shared = 0
    while shared < parents.count, shared + 1 < open.count, open[shared + 1].key == path[shared] {
      shared += 1
    }
    close(to: shared + 1)
    for key in parents.dropFirst(shared) {
      open.append(IncompleteObject(key: key))
      estimatedSize += key.text.utf8.count + 5
    }
    estimatedSize += last.isPriority ? 24 : last.text.utf8.count + 4
    if last.isPriority {
      open[open.count - 1].priority = value.leafValue.flatMap { try? Priority($0) }
    } else {
      open[open.count - 1].children.append((last, value))
    }
  }

  /// Returns the assembled node.
  mutating func finish() -> Node {
    close(to: 1)
    let root = open[0]
    if let leaf, root.children.isEmpty { return leaf }
    return .object(root.children, priority: root.priority)
  }

  private mutating func close(to count: Int) {
    while open.count > count {
      let done = open.removeLast()
      open[open.count - 1].children.append((done.key, .object(done.children, priority: done.priority)))
    }
  }
}
