// Computes upper bounds of the bytes that a write adds to a commit, before the write is sequenced. The bytes
// are one row for each leaf with its complete path, and the log record. Server values and length prefixes
// count with their maximum size.

import RealtimeModel

/// Upper bounds of written bytes.
enum RowWeight {
  /// Maximum weight (upper bound of the written bytes) of the operations of one commit: the store's limit of 64 MiB,
  /// less 1 MiB for rows that are not counted here.
  static let maximumCommitBytes = (64 << 20) - (1 << 20)

  /// The bytes of a path in row keys and log records.
  static func path(_ path: Path) -> Int { path.keys.reduce(1) { $0 + $1.text.utf8.count + 2 } }

  /// The bytes of a value's rows. Visits every leaf.
  ///
  /// - Parameter path: the bytes of the value's path.
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

  /// The bytes of a change's rows and of its path in the log record.
  static func change(_ path: Path, _ value: Node) -> Int {
    let location = RowWeight.path(path)
    return rows(value, below: location) + location + 1
  }

  /// The bytes of values in the log record.
  ///
  /// - Parameter estimatedSize: the estimated size of the values in bytes of JSON.
  static func logged(_ changes: Int, estimatedSize: Int) -> Int {
    // Larger values are not logged. The encoding of other values takes less than twice their bytes of JSON.
    estimatedSize <= ChangeLogRecord.maximumValueBytes ? 2 * estimatedSize + 16 * changes : 0
  }

  private static func leaf(_ value: LeafValue) -> Int {
    if case .string(let text) = value { return text.utf8.count + 6 }
    return 10
  }

  private static func priority(_ priority: Priority?) -> Int { priority.map { leaf($0.leafValue) + 1 } ?? 0 }
}
