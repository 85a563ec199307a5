// How much one look at the store may read before it lets others have the thread.
//
// Invariant: whoever pauses when it is spent has got further than where it began, so that a scan that finds nothing ends
// all the same.

/// What a scan may still read.
final class ScanBudget {
  private var rows: Int
  private var bytes: Int
  /// What was read so far.
  private(set) var consumedRows = 0

  /// - Parameter rows: rows and index entries, all scans together.
  init(rows: Int, bytes: Int = EngineLimits.maximumScanBytes) {
    self.rows = rows
    self.bytes = bytes
  }

  /// Whether nothing more should be read now.
  var isExhausted: Bool { rows <= 0 || bytes <= 0 }

  /// The keys without anything at a view's version that one scan may go over: some at least, so that it gets further.
  var maximumHiddenKeys: Int { max(rows, 16) }

  /// Counts what was read.
  func consume(_ rows: Int, bytes: Int = 0) {
    self.rows -= rows
    consumedRows += rows
    self.bytes -= bytes
  }
}
