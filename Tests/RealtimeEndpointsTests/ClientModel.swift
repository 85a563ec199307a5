// Models how the web and iOS clients apply pushes.
//
// A set replaces the value at its path. The paths of a merge are applied one after the other, child by child of the
// listened location. Children that had a value before the merge come first. Within both groups, and below the children,
// keys are in UTF-16 order. iOS applies priorities last. See ViewProcessor and ImmutableTree, FViewProcessor and
// FCompoundWrite.

import RealtimeEngine
import RealtimeModel

/// One listened location of a client.
struct ClientModel {
  enum Kind: CaseIterable { case web, iOS }

  let kind: Kind
  let path: Path
  var node = Node.empty

  mutating func apply(_ push: RealtimePush) {
    switch push.body {
    case .set(let value): replace(push.path, by: value)
    case .merge(let changes): merge(changes.map { (push.path.appending($0.path), $0.value) })
    case .rangeMerge, .cancel: break
    }
  }

  private mutating func replace(_ location: Path, by value: Node) {
    if let relative = location.relative(to: path) {
      node = node.setting(relative, to: value)
    } else if let rest = path.relative(to: location) {
      node = value.descendant(rest)
    }
  }

  private mutating func merge(_ changes: [(path: Path, value: Node)]) {
    if let above = changes.first(where: { $0.path.contains(path) }) {
      return replace(above.path, by: above.value)
    }
    var relative: [(path: Path, value: Node)] = []
    for change in changes {
      if let inside = change.path.relative(to: path) { relative.append((inside, change.value)) }
    }
    let before = node
    for hadValue in [true, false] {
      for key in Set(relative.compactMap(\.path.first)).sorted(by: isBefore) {
        guard !before.child(key).isEmpty == hadValue else { continue }
        let inside = relative.filter { $0.path.first == key }.map { ($0.path.droppingFirst, $0.value) }
        if key.isPriority {
          node = node.setting(Path(keys: [key]), to: inside.last?.1 ?? .empty)
          continue
        }
        var child = before.child(key)
        for (location, value) in inside.sorted(by: { comesBefore($0.0, $1.0) }) {
          child = child.setting(location, to: value)
        }
        node = node.settingChild(key, to: child)
      }
    }
  }

  private func isBefore(_ a: ChildKey, _ b: ChildKey) -> Bool {
    a.text.utf16.lexicographicallyPrecedes(b.text.utf16)
  }

  private func comesBefore(_ a: Path, _ b: Path) -> Bool {
    for (x, y) in zip(a.keys, b.keys) where x != y {
      if kind == .iOS, x.isPriority != y.isPriority { return y.isPriority }
      return isBefore(x, y)
    }
    return a.count < b.count
  }
}
