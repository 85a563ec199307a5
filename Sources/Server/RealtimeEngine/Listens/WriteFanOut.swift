// One write on its way to the listens that it touches.
//
// Rules for what a listen is told: its own location's new value if the write is at or above it; else the one location
// that changed; else one merge at the deepest location that holds all the changes below it, so that a write to several
// places arrives whole.

import RealtimeModel

/// Visits the listens that a write touches.
struct WriteFanOut {
  typealias Tell = (ConnectionState, RealtimeOutput) -> Void

  private let changes: [Change]
  private let windows: [Path: [WindowChange]]

  /// - Parameters:
  ///   - changes: in ascending order of paths, none inside another.
  ///   - windows: for locations of which the listens have a part, what changed in that.
  init(_ changes: [Change], _ windows: [Path: [WindowChange]] = [:]) {
    self.changes = changes
    self.windows = windows
  }

  func visit(_ root: ListenTrie, _ tell: Tell) {
    var pushes: [Range<Int>: RealtimePush] = [:]
    visit(root, depth: 0, changes.indices, &pushes, tell)
  }

  /// Visits a location at or above every one of some changes.
  private func visit(
    _ location: ListenTrie, depth: Int, _ range: Range<Int>, _ pushes: inout [Range<Int>: RealtimePush],
    _ tell: Tell
  ) {
    if range.count == 1, let change = changes[range].first, change.path.count == depth {
      return visit(location, at: change.path, value: change.value, before: change.before, tell)
    }
    location.forgetValue()
    if !location.listeners.isEmpty {
      // Listens with the same changes below them are told the same, wherever above them they lie.
      // What a push says of the locations above its removals depends on where the listen lies.
      let (emptied, prioritized) = surroundings(range, depth: depth)
      let isShared = emptied.isEmpty && prioritized.isEmpty
      let push = (isShared ? pushes[range] : nil) ?? self.push(range, emptied, prioritized)
      if isShared { pushes[range] = push }
      for listener in location.listeners where !listener.isShadowed { tell(listener.connection, .push(push)) }
    }
    if let isPart = location.queries?.isPart {
      let base = Path(keys: Array(changes[range.lowerBound].path.keys.prefix(depth)))
      let relative =
        isPart
        ? windows[base] ?? []
        : changes[range].map { change in
          (path: Path(keys: Array(change.path.keys.dropFirst(depth))), value: change.value)
        }
      let (emptied, prioritized) = surroundings(range, depth: depth + 1)
      var tagged = TaggedPushes(emptied: emptied, prioritized: prioritized)
      location.queries?.follow(relative) { listener, body in
        tell(listener.connection, .push(tagged.push(body, at: base, for: listener)))
      }
    }
    guard !location.children.isEmpty else { return }
    var start = range.lowerBound
    while start < range.upperBound {
      let key = changes[start].path.keys[depth]
      var end = start + 1
      while end < range.upperBound, changes[end].path.keys[depth] == key { end += 1 }
      if let child = location.children[key] { visit(child, depth: depth + 1, start..<end, &pushes, tell) }
      start = end
    }
  }

  /// Visits a location that was replaced, or lies inside one that was.
  private func visit(_ location: ListenTrie, at path: Path, value: Node, before: Node?, _ tell: Tell) {
    if let before, before == value { return }
    location.forgetValue()
    if !location.listeners.isEmpty {
      let push = RealtimePush(path, .set(value))
      for listener in location.listeners where !listener.isShadowed { tell(listener.connection, .push(push)) }
    }
    if location.queries != nil {
      var tagged = TaggedPushes()
      location.queries?.replace(by: value) { listener, body in
        tell(listener.connection, .push(tagged.push(body, at: path, for: listener)))
      }
    }
    for (key, child) in location.children {
      let (value, before) = (value.childOrPriority(key), before?.childOrPriority(key))
      visit(child, at: path.child(key), value: value, before: before, tell)
    }
  }

  /// Goes over to following all of a location, of which the listens had a part.
  static func widen(_ path: Path, to node: Node, in root: ListenTrie, _ tell: Tell) {
    guard let location = root.existing(at: path), location.queries?.isPart == true else { return }
    var tagged = TaggedPushes()
    location.queries?.replace(by: node) { listener, body in
      tell(listener.connection, .push(tagged.push(body, at: path, for: listener)))
    }
  }

  /// What the removals among some changes emptied, and which locations above them have priorities, from a depth on.
  private func surroundings(
    _ range: Range<Int>, depth: Int
  ) -> (emptied: [Path], prioritized: [Path]) {
    var emptied: [Path] = []
    var prioritized: [Path] = []
    for change in changes[range] {
      if let place = change.emptied, depth < change.path.count {
        let known = place.count < depth ? Path(keys: Array(change.path.keys.prefix(depth))) : place
        if emptied.last != known { emptied.append(known) }
      }
      if let place = change.prioritized.first(where: { $0.count >= depth }), prioritized.last != place {
        prioritized.append(place)
      }
    }
    return (emptied, prioritized)
  }

  private func push(_ range: Range<Int>, _ emptied: [Path], _ prioritized: [Path]) -> RealtimePush {
    if range.count == 1, let change = changes[range].first {
      return RealtimePush(change.path, .set(change.value), emptied: emptied, prioritized: prioritized)
    }
    let first = changes[range.lowerBound].path
    let last = changes[range.upperBound - 1].path
    // The paths are sorted: what the first and the last share, all share.
    var shared = 0
    while shared < first.count, shared < last.count, first.keys[shared] == last.keys[shared] { shared += 1 }
    let common = Path(keys: Array(first.keys.prefix(shared)))
    return RealtimePush(
      common,
      .merge(
        changes[range].map { (path: Path(keys: Array($0.path.keys.dropFirst(shared))), value: $0.value) }),
      emptied: emptied, prioritized: prioritized)
  }
}

extension Node {
  /// A child, or the priority as the pseudo child that listens may name.
  fileprivate func childOrPriority(_ key: ChildKey) -> Node {
    guard key.isPriority else { return child(key) }
    return priority.map { .leaf($0.leafValue) } ?? .empty
  }
}

extension [Path] {
  /// Those of these locations that are, or have below them, one of some others.
  fileprivate func those(around paths: [Path]) -> [Path] {
    if isEmpty || paths.isEmpty { return [] }
    return Set(paths.compactMap { position(around: $0) }).sorted().map { self[$0] }
  }
}

/// The pushes of one change to one location's queries: listeners of one query with the same tag share one. Listeners come
/// query by query. Each push says of the locations above removals what concerns those that it tells.
private struct TaggedPushes {
  private let emptied: [Path]
  private let prioritized: [Path]
  private var query: QuerySpec?
  private var made: [Int64?: RealtimePush] = [:]

  init(emptied: [Path] = [], prioritized: [Path] = []) {
    self.emptied = emptied
    self.prioritized = prioritized
  }

  mutating func push(_ body: RealtimePush.Body, at path: Path, for listener: Listener) -> RealtimePush {
    let tag = listener.name.tag
    if query != listener.query { (query, made) = (listener.query, [:]) }
    if let known = made[tag] { return known }
    var (path, body) = (path, body)
    var removed: [Path] = []
    if case .merge(let changes) = body {
      if !emptied.isEmpty || !prioritized.isEmpty {
        for change in changes where change.value.isEmpty && !change.path.isPriority {
          removed.append(path.appending(change.path))
        }
      }
      if changes.count == 1, let change = changes.first {
        (path, body) = (path.appending(change.path), .set(change.value))
      }
    }
    let push = RealtimePush(
      path, body, tag: tag, emptied: emptied.those(around: removed),
      prioritized: prioritized.those(around: removed))
    made[tag] = push
    return push
  }
}
