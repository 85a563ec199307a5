// Bounds how much one read from the store may scan before it yields its thread.
//
// Invariant: a scan that pauses when the budget is exhausted has made progress, so a scan that matches
// nothing ends too.

/// The remaining budget of a read.
final class ScanBudget {
  private var rows: Int
  private var bytes: Int
  /// The rows scanned so far.
  private(set) var consumedRows = 0

  /// - Parameter rows: maximum rows and index entries of all scans together.
  init(rows: Int, bytes: Int = EngineLimits.maximumScanBytes) {
    self.rows = rows
    self.bytes = bytes
  }

  /// Whether the budget is exhausted.
  var isExhausted: Bool { rows <= 0 || bytes <= 0 }

  /// Maximum keys without a value at the view's version that one scan may pass; at least 16, so that it makes
  /// progress.
  var maximumHiddenKeys: Int { max(rows, 16) }

  /// Charges scanned rows and bytes.
  func consume(_ rows: Int, bytes: Int = 0) {
    self.rows -= rows
    consumedRows += rows
    self.bytes -= bytes
  }
}
