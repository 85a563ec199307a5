// Rebuilds a client's values from pushes alone, by the protocol's rules. A tag is the number of a filtered listen; default
// listens, without filter and limit, have no tag. A push without a tag changes all default listens that it affects. A push
// with a tag changes only the value of that filtered listen.

import RealtimeModel
import Testing

@testable import RealtimeEngine

/// The values of one client's listens.
struct Replica {
  private(set) var values: [ListenName: Node] = [:]
  private(set) var queries: [ListenName: QuerySpec] = [:]

  mutating func start(_ name: ListenName, _ query: QuerySpec, _ value: Node = .empty) {
    queries[name] = query
    values[name] = value
  }

  mutating func stop(_ name: ListenName) {
    queries[name] = nil
    values[name] = nil
  }

  mutating func apply(_ push: RealtimePush) {
    let changes: [(path: Path, value: Node)]
    switch push.body {
    case .set(let node): changes = [(push.path, node)]
    case .merge(let merged): changes = merged.map { (push.path.appending($0.path), $0.value) }
    case .rangeMerge(let ranges):
      for name in values.keys where name.path == push.path && name.tag == push.tag {
        values[name] = ranges.reduce(values[name] ?? .empty) { $0.applying($1) }
      }
      return
    case .cancel: return
    }
    for name in Array(values.keys) where name.tag == push.tag {
      if push.tag != nil { #expect(name.path.contains(push.path), "a tagged push leaves its query") }
      for (path, value) in changes {
        if path == name.path, let query = queries[name] {
          // Without an index the server sends all children, and the client filters them.
          values[name] = value.window(query)
        } else if let relative = path.relative(to: name.path) {
          values[name] = (values[name] ?? .empty).setting(relative, to: value)
        } else if path.contains(name.path) {
          values[name] = value.descendant(Path(keys: Array(name.path.keys.dropFirst(path.count))))
        }
      }
    }
  }
}
