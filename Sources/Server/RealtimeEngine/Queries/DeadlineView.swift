// Limits the duration of a read: after the deadline the view throws an error instead of returning the next
// rows.

import OrderedStore
package import RealtimeModel

/// A view that throws after a deadline.
struct DeadlineView: ReadView {
  /// The number of rows between two checks of the clock.
  private static let rowsPerCheck = 64

  let base: any ReadView
  let deadline: ContinuousClock.Instant

  var version: Version { base.version }

  func get(_ key: [UInt8]) throws -> VersionedValue? {
    try check()
    return try base.get(key)
  }

  func scan(
    _ range: KeyRange, reverse: Bool,
    _ visit: (UnsafeRawBufferPointer, UnsafeRawBufferPointer, Version) throws -> Bool
  ) throws {
    var rows = 0
    try base.scan(range, reverse: reverse) { key, value, version in
      if rows % DeadlineView.rowsPerCheck == 0 { try check() }
      rows += 1
      return try visit(key, value, version)
    }
  }

  private func check() throws {
    if ContinuousClock.now >= deadline { throw RealtimeError.timedOut }
  }
}

extension RealtimeError {
  /// The error of a read that exceeded its time limit.
  package static let timedOut = RealtimeError(
    .failure, "The request was not finished within its timeout. Ask for less data, or allow it more time.")
}
