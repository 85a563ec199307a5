// How many bytes a write puts into a commit, known before it is sequenced: a row for each leaf, each with its whole path,
// and the log record. Upper bounds: server values and the lengths of lengths are taken at their largest.

import RealtimeModel

/// Sizes of what is written, in bytes.
enum RowWeight {
  /// The most bytes that the operations of one commit may weigh: the store's limit less what is not counted here.
  static let maximumCommitBytes = (64 << 20) - (1 << 20)

  /// The bytes of a path as row keys and log records hold it.
  static func path(_ path: Path) -> Int { path.keys.reduce(1) { $0 + $1.text.utf8.count + 2 } }

  /// The rows of a value at a path whose bytes are given. Visits every leaf.
  static func rows(_ node: Node, below path: Int) -> Int {
    switch node.content {
    case .empty: return 0
    case .leaf(let value): return path + leaf(value) + priority(node.priority)
    case .children:
      var bytes = node.priority == nil ? 0 : path + 1 + priority(node.priority)
      node.forEachChild { key, child in
        bytes += rows(child, below: path + key.text.utf8.count + 1)
        return true
      }
      return bytes
    }
  }

  /// The rows of a change, and its path in the log record.
  static func change(_ path: Path, _ value: Node) -> Int {
    let location = RowWeight.path(path)
    return rows(value, below: location) + location + 1
  }

  /// The values of changes in the log record, if they have so many bytes of JSON.
  static func logged(_ changes: Int, estimatedSize: Int) -> Int {
    // Beyond `ChangeLogRecord.mostBytes` they are not logged; others take less than twice their JSON.
    estimatedSize <= ChangeLogRecord.mostBytes ? 2 * estimatedSize + 16 * changes : 0
  }

  private static func leaf(_ value: LeafValue) -> Int {
    if case .string(let text) = value { return text.utf8.count + 6 }
    return 10
  }

  private static func priority(_ priority: Priority?) -> Int { priority.map { leaf($0.leafValue) + 1 } ?? 0 }
}
