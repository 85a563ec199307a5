// The key ranges on which one transaction holds locks, merged to the fewest ranges.
//
// Invariant: the ranges are sorted and neither overlap nor touch. Therefore a key is in at most one of them,
// however many queries the transaction made.

import OrderedStore

/// The held ranges, each with its id in the lock table's interval tree.
struct HeldRanges {
  /// One range and its id in the tree.
  struct Entry {
    var range: KeyRange
    var id: UInt64
  }

  private(set) var entries: [Entry] = []

  /// The merged range after adding `range`, and the entries that it absorbs; nil if `range` is held already.
  ///
  /// The caller updates the tree and then calls `replace`.
  func absorbing(_ range: KeyRange) -> (merged: KeyRange, absorbed: Range<Int>)? {
    // The absorbed entries are those that overlap or touch the range.
    let first = leadingCount { entry in
      guard let end = entry.range.end else { return false }
      return compareKeys(end, range.start) < 0
    }
    let last = leadingCount { entry in
      guard let end = range.end else { return true }
      return compareKeys(entry.range.start, end) <= 0
    }
    guard first < last else { return (range, first..<first) }
    var merged = range
    if compareKeys(entries[first].range.start, merged.start) < 0 { merged.start = entries[first].range.start }
    if let end = merged.end {
      if let farthest = entries[last - 1].range.end {
        if compareKeys(farthest, end) > 0 { merged.end = farthest }
      } else {
        merged.end = nil
      }
    }
    if last - first == 1, entries[first].range == merged { return nil }
    return (merged, first..<last)
  }

  /// Replaces absorbed entries by one.
  mutating func replace(_ absorbed: Range<Int>, with entry: Entry) {
    entries.replaceSubrange(absorbed, with: CollectionOfOne(entry))
    let index = absorbed.lowerBound
    precondition(
      (index == 0 || entries[index - 1].range.isBefore(entry.range))
        && (index + 1 == entries.count || entry.range.isBefore(entries[index + 1].range)),
      "invariant: held ranges are sorted and neither overlap nor touch")
  }

  /// Whether a complete range is held.
  func covers(_ range: KeyRange) -> Bool {
    let first = leadingCount { entry in
      guard let end = entry.range.end else { return false }
      return compareKeys(end, range.start) <= 0
    }
    guard first < entries.count, compareKeys(entries[first].range.start, range.start) <= 0 else {
      return false
    }
    guard let end = entries[first].range.end else { return true }
    guard let rangeEnd = range.end else { return false }
    return compareKeys(rangeEnd, end) <= 0
  }

  /// The number of leading entries that satisfy a condition. All entries after them do not.
  private func leadingCount(_ condition: (Entry) -> Bool) -> Int {
    var low = 0
    var high = entries.count
    while low < high {
      let middle = (low + high) / 2
      if condition(entries[middle]) { low = middle + 1 } else { high = middle }
    }
    return low
  }
}

extension KeyRange {
  /// The fewest sorted ranges that contain the same keys.
  static func union(of ranges: [KeyRange]) -> [KeyRange] {
    var union: [KeyRange] = []
    for range in ranges.sorted(by: { compareKeys($0.start, $1.start) < 0 }) where !range.isEmptyRange {
      guard let last = union.indices.last else {
        union.append(range)
        continue
      }
      // A range without an end contains all later ones.
      guard let end = union[last].end else { break }
      if compareKeys(range.start, end) > 0 {
        union.append(range)
      } else if let further = range.end {
        if compareKeys(further, end) > 0 { union[last].end = further }
      } else {
        union[last].end = nil
      }
    }
    return union
  }

  /// Whether the range ends before another starts, without touching it.
  fileprivate func isBefore(_ other: KeyRange) -> Bool {
    guard let end else { return false }
    return compareKeys(end, other.start) < 0
  }

  /// Whether the range contains no key.
  var isEmptyRange: Bool {
    guard let end else { return false }
    return compareKeys(start, end) >= 0
  }
}
