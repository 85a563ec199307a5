// A write overlay: the combined values of pending writes at each path.
//
// Invariant: a value replaces all earlier writes below it, and later writes below it are merged into it.
// Therefore at most one location on each path has a value.

import RealtimeModel

/// The combined effect of writes, without data of the server.
struct WriteOverlay {
  private var tree = PathTree<Node>()

  var isEmpty: Bool { tree.isEmpty }

  /// Replaces the value at a path.
  mutating func write(_ node: Node, at path: Path) {
    if let (value, rest) = tree.rootmostValue(on: path) {
      let top = Path(keys: Array(path.keys.dropLast(rest.count)))
      tree[top] = value.setting(rest, to: node)
    } else {
      tree.replaceSubtree(path, with: PathTree(node))
    }
  }

  /// Replaces the values at several descendant paths of a location.
  mutating func merge(_ changes: [(Path, Node)], at path: Path) {
    for (relative, node) in changes { write(node, at: path.appending(relative)) }
  }

  /// Removes the writes at a path and below it. No ancestor of the path may have a value.
  mutating func clear(_ path: Path) {
    tree.replaceSubtree(path, with: PathTree())
  }

  /// Removes the writes at a path and below it. A value that covers the path is split into values of its
  /// siblings.
  mutating func forget(_ path: Path) {
    if let (value, rest) = tree.rootmostValue(on: path), !rest.isRoot {
      guard case .children = value.content else { return }
      let top = Path(keys: Array(path.keys.dropLast(rest.count)))
      tree[top] = nil
      value.forEachChild { key, child in
        tree.replaceSubtree(top.child(key), with: PathTree(child))
        return true
      }
      forget(path)
    } else {
      tree.replaceSubtree(path, with: PathTree())
    }
  }

  /// The complete value at a path, if writes alone determine it.
  func completeNode(at path: Path) -> Node? {
    tree.rootmostValue(on: path).map { $0.value.descendant($0.rest) }
  }

  /// The part of the overlay at a location and below it, with paths relative to the location.
  func overlay(at path: Path) -> WriteOverlay {
    var overlay = WriteOverlay()
    if let node = completeNode(at: path) {
      overlay.tree = PathTree(node)
    } else {
      overlay.tree = tree.subtree(path)
    }
    return overlay
  }

  /// The children whose complete values are determined by writes alone.
  var completeChildren: [(ChildKey, Node)] {
    if let value = tree.value {
      var children: [(ChildKey, Node)] = []
      value.forEachChild { key, node in
        children.append((key, node))
        return true
      }
      return children
    }
    return tree.sortedChildren.compactMap { key, child in child.value.map { (key, $0) } }
  }

  /// The value with the writes applied to it. A priority that is written to a location without a value has no
  /// effect.
  func applied(to node: Node) -> Node {
    WriteOverlay.apply(tree, to: node)
  }

  private static func apply(_ tree: PathTree<Node>, to node: Node) -> Node {
    if let value = tree.value { return value }
    var result = node
    var priority: Node?
    for (key, child) in tree.sortedChildren {
      if key.isPriority {
        priority = child.value
      } else {
        result = result.settingChild(key, to: apply(child, to: result.child(key)))
      }
    }
    if let priority, !result.isEmpty {
      result = result.setting(Path(keys: [.priority]), to: priority)
    }
    return result
  }

  /// Visits every value with its path, in path order.
  func forEach(_ visit: (Path, Node) -> Void) {
    tree.forEach(visit)
  }
}
