// Caches, by tag, the pushes that send all children of a location to its filtered listens. All clients number their
// tags in the same way, so the many listeners of one location share a few tags.

import RealtimeModel

/// The pushes of one value by tag. A push stays only while some connection still uses it.
struct TaggedValues {
  private struct Entry {
    weak var push: RealtimePush?
  }

  private var entries: [Int64?: Entry] = [:]

  /// The push with all children for a listener.
  mutating func push(_ node: Node, at path: Path, tag: Int64?) -> RealtimePush {
    if let known = entries[tag]?.push, case .set(let value) = known.body, value.isIdentical(to: node) {
      return known
    }
    let push = RealtimePush(path, .set(node.with(priority: nil)), tag: tag, isFirst: true)
    entries[tag] = Entry(push: push)
    return push
  }

  mutating func removeAll() { if !entries.isEmpty { entries = [:] } }
}
