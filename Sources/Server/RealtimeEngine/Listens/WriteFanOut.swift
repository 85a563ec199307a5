// Distributes one write to the listens that it affects.
//
// If a write is at or above a listen's location, the listen receives the location's new value. If one
// location below it changed, the listen receives that change. If several changed, it receives one merge at
// the deepest location that contains them all, so that clients apply the write atomically.

import RealtimeModel

/// Visits the listens that a write affects.
struct WriteFanOut {
  typealias Notify = (ConnectionState, RealtimeOutput) -> Void

  private let changes: [Change]
  private let windows: [Path: [WindowChange]]

  /// - Parameters:
  ///   - changes: in ascending order of paths, none inside another.
  ///   - windows: the changes of windows (the children that queries select), for locations whose listens keep only a part
  ///     of the children.
  init(_ changes: [Change], _ windows: [Path: [WindowChange]] = [:]) {
    assert(
      zip(changes, changes.dropFirst()).allSatisfy { $0.path < $1.path && !$0.path.contains($1.path) },
      "invariant: changes are sorted by path, none inside another")
    self.changes = changes
    self.windows = windows
  }

  func visit(_ root: ListenTrie, _ notify: Notify) {
    var pushes: [Range<Int>: RealtimePush] = [:]
    visit(root, depth: 0, changes.indices, &pushes, notify)
  }

  /// Visits a location that contains all changes of a range.
  private func visit(
    _ location: ListenTrie, depth: Int, _ range: Range<Int>, _ pushes: inout [Range<Int>: RealtimePush],
    _ notify: Notify
  ) {
    if range.count == 1, let change = changes[range].first, change.path.count == depth {
      return visit(location, at: change.path, value: change.value, before: change.before, notify)
    }
    location.invalidateValue()
    if !location.listeners.isEmpty {
      // Listens at different ancestors receive the same push if they contain the same changes.
      let push = pushes[range] ?? self.push(range)
      pushes[range] = push
      for listener in location.listeners where !listener.isShadowed {
        notify(listener.connection, .push(push))
      }
    }
    if let isPartial = location.queries?.isPartial {
      let base = Path(keys: Array(changes[range.lowerBound].path.keys.prefix(depth)))
      let relative =
        isPartial
        ? windows[base] ?? []
        : changes[range].map { change in
          (path: Path(keys: Array(change.path.keys.dropFirst(depth))), value: change.value)
        }
      var tagged = TaggedPushes()
      location.queries?.apply(relative) { listener, body in
        notify(listener.connection, .push(tagged.push(body, at: base, for: listener)))
      }
    }
    guard !location.children.isEmpty else { return }
    var start = range.lowerBound
    while start < range.upperBound {
      let key = changes[start].path.keys[depth]
      var end = start + 1
      while end < range.upperBound, changes[end].path.keys[depth] == key { end += 1 }
      if let child = location.children[key] { visit(child, depth: depth + 1, start..<end, &pushes, notify) }
      start = end
    }
  }

  /// Visits a location that was replaced, or that is within a replaced location.
  private func visit(_ location: ListenTrie, at path: Path, value: Node, before: Node?, _ notify: Notify) {
    if let before, before == value { return }
    location.invalidateValue()
    if !location.listeners.isEmpty {
      let push = RealtimePush(path, .set(value))
      for listener in location.listeners where !listener.isShadowed {
        notify(listener.connection, .push(push))
      }
    }
    if location.queries != nil {
      var tagged = TaggedPushes()
      location.queries?.replace(by: value) { listener, body in
        notify(listener.connection, .push(tagged.push(body, at: path, for: listener)))
      }
    }
    for (key, child) in location.children {
      let (value, before) = (value.childOrPriority(key), before?.childOrPriority(key))
      visit(child, at: path.child(key), value: value, before: before, notify)
    }
  }

  /// Replaces the partial value of a location (only the children that some window shows) by the complete value.
  static func promoteToFullValue(_ path: Path, to node: Node, in root: ListenTrie, _ notify: Notify) {
    guard let location = root.existing(at: path), location.queries?.isPartial == true else { return }
    var tagged = TaggedPushes()
    location.queries?.replace(by: node) { listener, body in
      notify(listener.connection, .push(tagged.push(body, at: path, for: listener)))
    }
  }

  private func push(_ range: Range<Int>) -> RealtimePush {
    if range.count == 1, let change = changes[range].first {
      return RealtimePush(change.path, .set(change.value))
    }
    let first = changes[range.lowerBound].path
    let last = changes[range.upperBound - 1].path
    // The paths are sorted, so all of them share the common prefix of the first and the last.
    var shared = 0
    while shared < first.count, shared < last.count, first.keys[shared] == last.keys[shared] { shared += 1 }
    let common = Path(keys: Array(first.keys.prefix(shared)))
    return RealtimePush(
      common,
      .merge(
        changes[range].map { (path: Path(keys: Array($0.path.keys.dropFirst(shared))), value: $0.value) }))
  }
}

extension Node {
  /// A child, or the priority if the key is `.priority`, which a listen's path may contain.
  fileprivate func childOrPriority(_ key: ChildKey) -> Node {
    guard key.isPriority else { return child(key) }
    return priority.map { .leaf($0.leafValue) } ?? .empty
  }
}

/// The pushes of one change for one location's filtered listeners, which are visited query by query.
/// Listeners with the same query and tag share a push.
private struct TaggedPushes {
  private var query: QuerySpec?
  private var made: [Int64?: RealtimePush] = [:]

  mutating func push(_ body: RealtimePush.Body, at path: Path, for listener: Listener) -> RealtimePush {
    let tag = listener.name.tag
    if query != listener.query { (query, made) = (listener.query, [:]) }
    if let known = made[tag] { return known }
    var push = RealtimePush(path, body, tag: tag)
    if case .merge(let changes) = body, changes.count == 1, let change = changes.first {
      push = RealtimePush(path.appending(change.path), .set(change.value), tag: tag)
    }
    made[tag] = push
    return push
  }
}
