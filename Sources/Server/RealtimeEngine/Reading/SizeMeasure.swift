// Estimates the JSON size of a location without keeping its values. It reads rows in chunks, so that other
// reads of the store run in between.

import OrderedStore
import RealtimeModel

/// The estimated size of the rows measured so far.
struct SizeMeasure: Sendable {
  private let prefix: [UInt8]
  private var next: [UInt8]?
  private var last: [UInt8] = []
  /// Estimated bytes of JSON so far.
  private(set) var size = 0

  init(_ path: Path) {
    prefix = RowKeys.row(of: path)
    next = prefix
  }

  /// Whether every row of the location is measured.
  var isComplete: Bool { next == nil }

  /// Measures the next chunk.
  mutating func addChunk(of view: any ReadView, _ staging: StagingLimits) throws {
    guard let start = next else { return }
    next = nil
    var (rows, bytes) = (0, 0)
    try view.scan(
      KeyRange(start: start, end: KeyRange.successor(ofPrefix: prefix)), reverse: false
    ) { key, value, _ in
      let suffix = key[prefix.count...]
      // Consecutive rows share ancestors, whose keys JSON contains only once.
      var shared = 0
      for (a, b) in zip(suffix, last) {
        if a != b { break }
        shared += 1
      }
      size += suffix.count - shared + 4 + max(value.count - 2, 1)
      last.replaceSubrange(0..., with: suffix)
      rows += 1
      bytes += key.count + value.count
      guard rows >= staging.chunkRows || bytes >= staging.chunkBytes else { return true }
      next = Array(key) + [0]
      return false
    }
  }
}
