// The pushes that told filtered listens all children of a location. Clients give their tags in the same way, so that
// many who listen to one location ask under the same few.

import RealtimeModel

/// The pushes of one value, by tag, as long as somebody is still told them.
struct TaggedValues {
  private struct Entry {
    weak var push: RealtimePush?
  }

  private var entries: [Int64?: Entry] = [:]

  /// What tells a listener all children.
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
