// Bounds the rows and bytes that one read from the store may scan. When the budget is exhausted, the query pauses and
// yields its thread to other reads.
//
// Invariant: every read makes progress before it pauses. Therefore a scan that matches nothing ends too,
// after enough reads.

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

  /// Maximum keys that one scan may skip because they have no value at the view's version. At least 16, so
  /// that the scan makes progress.
  var maximumHiddenKeys: Int { max(rows, 16) }

  /// Charges scanned rows and bytes.
  func consume(_ rows: Int, bytes: Int = 0) {
    self.rows -= rows
    consumedRows += rows
    self.bytes -= bytes
  }
}
