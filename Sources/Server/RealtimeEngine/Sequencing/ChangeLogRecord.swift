// The log record of a commit: which locations were replaced, and by what, so that another process can follow.
//
//   0x01, the number of changes, for each its path and value    the usual form
//   0x02, the number of changes, for each its path              when the values are too large to be logged twice:
//                                                               whoever follows reads the locations

import OrderedStore
import RealtimeModel

/// The changes of one commit, in order.
struct ChangeLogRecord {
  /// Values beyond so many bytes are left out.
  static let mostBytes = 1 << 20

  let changes: [(path: Path, value: Node?)]

  /// - Parameter changes: what was replaced, and by what where that is small enough to be known.
  init(_ changes: [(Path, Node?)]) {
    let size = changes.reduce(0) { $0 + ($1.1?.estimatedSize ?? ChangeLogRecord.mostBytes + 1) }
    self.changes = changes.map { ($0.0, size <= ChangeLogRecord.mostBytes ? $0.1 : nil) }
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

  /// Reads a record.
  init(bytes: [UInt8]) throws {
    changes = try bytes.withUnsafeBytes { raw in
      var decoder = NodeDecoder(raw)
      let form = try decoder.byte()
      guard form == 0x01 || form == 0x02 else { throw NodeDecoder.damaged }
      return try (0..<(try decoder.count())).map { _ in
        (try decoder.path(), form == 0x01 ? try decoder.node() : nil)
      }
    }
  }
}
