// Finds the locations at which two values differ, so that a small change of a large value writes few rows.

import RealtimeModel

extension Node {
  /// The changes that convert an earlier value to this one: paths with their new values. A path may end in
  /// `.priority`. Removals come last, so that no object is temporarily empty, which would remove its
  /// priority.
  ///
  /// The cost is proportional to the difference if the two values share structure.
  func differences(from before: Node) -> [(Path, Node)] {
    var changes: [(Path, Node)] = []
    var removals: [(Path, Node)] = []
    collectDifferences(from: before, at: .root, &changes, &removals)
    return changes + removals
  }

  private func collectDifferences(
    from before: Node, at path: Path, _ changes: inout [(Path, Node)], _ removals: inout [(Path, Node)]
  ) {
    guard case .children = content, case .children = before.content else {
      if isEmpty {
        if !before.isEmpty { removals.append((path, self)) }
      } else if self != before {
        changes.append((path, self))
      }
      return
    }
    forEachChangedChild(from: before) { key, now, old in
      now.collectDifferences(from: old, at: path.child(key), &changes, &removals)
    }
    if priority != before.priority {
      changes.append((path.child(.priority), priority.map { .leaf($0.leafValue) } ?? .empty))
    }
  }
}
