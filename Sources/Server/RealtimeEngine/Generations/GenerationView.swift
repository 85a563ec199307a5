// The rows of a tree under their own keys, wherever they lie: what the tree reads through.

import OrderedStore

/// A view in which the rows of every generation stand under the keys of their locations.
struct GenerationView: ReadView {
  let base: any ReadView
  let generations: SubtreeGenerations

  var version: Version { base.version }

  func get(_ key: [UInt8]) throws -> VersionedValue? { try base.get(generations.stored(key)) }

  func scan(
    _ range: KeyRange, reverse: Bool,
    _ visit: (UnsafeRawBufferPointer, UnsafeRawBufferPointer, Version) throws -> Bool
  ) throws {
    guard !generations.isEmpty, range.start.first == RowKeys.tree else {
      return try base.scan(range, reverse: reverse, visit)
    }
    var rest: KeyRange? = range
    var later: [StoredRun] = []
    while let current = rest {
      let (run, next) = generations.run(current)
      rest = next.map { KeyRange(start: $0, end: range.end) }
      if reverse {
        later.append(run)
      } else {
        guard try scan(run, reverse: false, visit) else { return }
      }
    }
    for run in later.reversed() { guard try scan(run, reverse: true, visit) else { return } }
  }

  /// Visits a run; false once the visit has ended.
  private func scan(
    _ run: StoredRun, reverse: Bool,
    _ visit: (UnsafeRawBufferPointer, UnsafeRawBufferPointer, Version) throws -> Bool
  ) throws -> Bool {
    var goesOn = true
    if run.stored.isEmpty {
      try base.scan(run.range, reverse: reverse) { key, value, version in
        goesOn = try visit(key, value, version)
        return goesOn
      }
      return goesOn
    }
    var name = run.prefix
    try base.scan(run.range, reverse: reverse) { key, value, version in
      name.removeLast(name.count - run.prefix.count)
      name.append(contentsOf: key.dropFirst(run.stored.count))
      goesOn = try name.withUnsafeBytes { try visit($0, value, version) }
      return goesOn
    }
    return goesOn
  }
}
