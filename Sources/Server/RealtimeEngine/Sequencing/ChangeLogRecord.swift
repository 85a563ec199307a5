// Encodes the log record of a commit: the replaced locations with their new values. A follower process
// applies it to its copy of the database.
//
//   0x01, number of changes, for each its path and value    the usual form
//   0x02, number of changes, for each its path              for values too large to be logged: followers read
//                                                           the locations

import OrderedStore
import RealtimeModel

/// The log record of one commit: its changes, in order.
struct ChangeLogRecord {
  /// Maximum bytes of JSON in the values of a record; a larger record omits the values.
  static let maximumValueBytes = 1 << 20

  let changes: [(path: Path, value: Node?)]

  /// - Parameter changes: the replaced locations; a value is nil if it is too large to be in memory.
  init(_ changes: [(Path, Node?)]) {
    let size = changes.reduce(0) { $0 + ($1.1?.estimatedSize ?? ChangeLogRecord.maximumValueBytes + 1) }
    self.changes = changes.map { ($0.0, size <= ChangeLogRecord.maximumValueBytes ? $0.1 : nil) }
  }

  var bytes: [UInt8] {
    let hasValues = changes.allSatisfy { $0.value != nil }
    var encoder = NodeEncoder()
    encoder.append(changes.count)
    for change in changes {
      encoder.append(change.path)
      if hasValues { encoder.append(change.value ?? .empty) }
    }
    return [hasValues ? 0x01 : 0x02] + encoder.bytes
  }

  /// Decodes a record.
  init(bytes: [UInt8]) throws {
    changes = try bytes.withUnsafeBytes { raw in
      var decoder = NodeDecoder(raw)
      let form = try decoder.byte()
      guard form == 0x01 || form == 0x02 else { throw NodeDecoder.corrupted }
      return try (0..<(try decoder.count())).map { _ in
        (try decoder.path(), form == 0x01 ? try decoder.node() : nil)
      }
    }
  }
}
