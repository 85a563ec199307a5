// The read allowance limits the work of a read on its caller's thread. A read that exceeds it, or needs the
// disk, throws and runs again from the start on a reader thread.
//
// Invariant: a read scans a bounded number of rows and bytes on the caller's thread. That thread is an event
// loop, which must serve other connections.

/// The rows and bytes that a read may still scan on its current thread.
struct ReadAllowance {
  /// The maximum number of rows that all scans of a read visit on the caller's thread. It allows a page of a hundred
  /// rows. Scanning this many rows takes less than a millisecond, even with a look-up for each row.
  static let maximumRows = 160
  /// The maximum total size of the values of scanned and looked-up rows, in bytes. A looked-up row may exceed
  /// it if the rows before did not.
  static let maximumBytes = 256 << 10

  private var rows: Int
  private var bytes: Int

  init(_ tier: ReadTier) {
    rows = tier == .memory ? ReadAllowance.maximumRows : .max
    bytes = tier == .memory ? ReadAllowance.maximumBytes : .max
  }

  /// Charges a scanned row.
  /// - Throws: ``MemoryTierMiss`` if the row exceeds the allowance.
  @inline(__always)
  mutating func spend(_ byteCount: Int) throws {
    rows -= 1
    bytes -= byteCount
    if rows < 0 || bytes < 0 { throw MemoryTierMiss() }
  }

  /// Checks that a row may still be looked up.
  /// - Throws: ``MemoryTierMiss`` if the allowance is used up.
  @inline(__always)
  func check() throws {
    if bytes < 0 { throw MemoryTierMiss() }
  }

  /// Charges a row that was looked up. If it exceeds the allowance, the next look-up throws.
  @inline(__always)
  mutating func spend(lookUp row: VersionedValue?) {
    if let row { bytes -= row.value.count }
  }
}

/// A view that records whether one of its reads exceeded the allowance of the thread, or needed the disk there.
protocol TieredView: ReadView {
  var hasMissed: Bool { get }
}

extension TieredView {
  /// Runs a body over the view.
  /// - Throws: ``MemoryTierMiss`` if a read exceeded the allowance or needed the disk, even if the body caught that error.
  func run<Result>(_ body: (any ReadView) throws -> Result) throws -> Result {
    let result: Result
    do {
      result = try body(self)
    } catch {
      throw hasMissed ? MemoryTierMiss() : error
    }
    if hasMissed { throw MemoryTierMiss() }
    return result
  }
}
