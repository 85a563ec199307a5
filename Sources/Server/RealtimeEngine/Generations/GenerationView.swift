// Reads rows by the keys of their locations, even if they belong to a generation, which stores the rows of a large
// subtree under a separate prefix (see `SubtreeGenerations`).

import OrderedStore

/// A view that translates the keys of the tree to physical keys.
struct GenerationView: ReadView {
  let base: any ReadView
  let generations: SubtreeGenerations

  var version: Version { base.version }

  func get(_ key: [UInt8]) throws -> VersionedValue? { try base.get(generations.physicalKey(key)) }

  func scan(
    _ range: KeyRange, reverse: Bool,
    _ visit: (UnsafeRawBufferPointer, UnsafeRawBufferPointer, Version) throws -> Bool
  ) throws {
    guard !generations.isEmpty, range.start.first == RowKeys.tree else {
      return try base.scan(range, reverse: reverse, visit)
    }
    var rest: KeyRange? = range
    var later: [PhysicalRange] = []
    while let current = rest {
      let (run, next) = generations.contiguousRange(current)
      rest = next.map { KeyRange(start: $0, end: range.end) }
      if reverse {
        later.append(run)
      } else {
        guard try scan(run, reverse: false, visit) else { return }
      }
    }
    for run in later.reversed() { guard try scan(run, reverse: true, visit) else { return } }
  }

  /// Scans a contiguous range. Returns false once the visitor has stopped.
  private func scan(
    _ run: PhysicalRange, reverse: Bool,
    _ visit: (UnsafeRawBufferPointer, UnsafeRawBufferPointer, Version) throws -> Bool
  ) throws -> Bool {
    var continues = true
    if run.physicalPrefix.isEmpty {
      try base.scan(run.range, reverse: reverse) { key, value, version in
        continues = try visit(key, value, version)
        return continues
      }
      return continues
    }
    var name = run.prefix
    try base.scan(run.range, reverse: reverse) { key, value, version in
      name.removeLast(name.count - run.prefix.count)
      name.append(contentsOf: key.dropFirst(run.physicalPrefix.count))
      continues = try name.withUnsafeBytes { try visit($0, value, version) }
      return continues
    }
    return continues
  }
}
