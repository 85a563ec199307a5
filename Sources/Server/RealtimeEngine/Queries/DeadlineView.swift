// A read that may take only so long: it ends at the next row once its time is over.

import OrderedStore
public import RealtimeModel

/// A view that fails once a moment has passed.
struct DeadlineView: ReadView {
  /// The clock is looked at once in so many rows.
  private static let rowsBetweenLooks = 64

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
      if rows % DeadlineView.rowsBetweenLooks == 0 { try check() }
      rows += 1
      return try visit(key, value, version)
    }
  }

  private func check() throws {
    if ContinuousClock.now >= deadline { throw RealtimeError.timedOut }
  }
}

extension RealtimeError {
  /// A read took longer than its client would wait.
  public static let timedOut = RealtimeError(
    .failure, "The request was not finished within its timeout. Ask for less data, or allow it more time.")
}
