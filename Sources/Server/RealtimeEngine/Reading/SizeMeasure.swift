// Finds out how large a location is as JSON, about, without keeping anything of it: piece by piece, so that other reads of the
// store have their turn.

import OrderedStore
import RealtimeModel

/// How much of a location was looked at, and how large that is.
struct SizeMeasure: Sendable {
  private let prefix: [UInt8]
  private var next: [UInt8]?
  private var last: [UInt8] = []
  /// About how many bytes of JSON there are so far.
  private(set) var size = 0

  init(_ path: Path) {
    prefix = RowKeys.row(of: path)
    next = prefix
  }

  var isOver: Bool { next == nil }

  /// Looks at the next piece.
  mutating func go(on view: any ReadView, _ staging: StagingLimits) throws {
    guard let start = next else { return }
    next = nil
    var (rows, bytes) = (0, 0)
    try view.scan(
      KeyRange(start: start, end: KeyRange.successor(ofPrefix: prefix)), reverse: false
    ) { key, value, _ in
      let suffix = key[prefix.count...]
      // What a key has in common with the one before is written once.
      var shared = 0
      for (a, b) in zip(suffix, last) {
        if a != b { break }
        shared += 1
      }
      size += suffix.count - shared + 4 + max(value.count - 2, 1)
      last.replaceSubrange(0..., with: suffix)
      rows += 1
      bytes += key.count + value.count
      guard rows >= staging.pieceRows || bytes >= staging.pieceBytes else { return true }
      next = Array(key) + [0]
      return false
    }
  }
}
