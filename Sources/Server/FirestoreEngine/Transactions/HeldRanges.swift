// The ranges that one transaction holds in one mode, as few as say the same.
//
// Invariant: they are in order and neither overlap nor touch, so that a key lies in one of them at most, however many
// queries a transaction has made.

import OrderedStore

/// A union of ranges, and where each stands in the table's index.
struct HeldRanges {
  /// One range and its number in the index.
  struct Entry {
    var range: KeyRange
    var id: UInt64
  }

  private(set) var entries: [Entry] = []

  /// Adds a range: returns what it grows to, and the entries that go up in that; nil if it is held already.
  ///
  /// The caller changes the index and then calls `replace`.
  func absorbing(_ range: KeyRange) -> (merged: KeyRange, absorbed: Range<Int>)? {
    // The first entry that ends at the range's start or behind it, and those up to the range's end.
    let first = partition { entry in
      guard let end = entry.range.end else { return false }
      return compareKeys(end, range.start) < 0
    }
    let last = partition { entry in
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

  /// Puts one entry in the place of those that went up in it.
  mutating func replace(_ absorbed: Range<Int>, with entry: Entry) {
    entries.replaceSubrange(absorbed, with: CollectionOfOne(entry))
  }

  /// Whether everything in a range is held.
  func covers(_ range: KeyRange) -> Bool {
    let first = partition { entry in
      guard let end = entry.range.end else { return false }
      return compareKeys(end, range.start) <= 0
    }
    guard first < entries.count, compareKeys(entries[first].range.start, range.start) <= 0 else {
      return false
    }
    guard let end = entries[first].range.end else { return true }
    guard let wanted = range.end else { return false }
    return compareKeys(wanted, end) <= 0
  }

  /// The number of entries at the beginning for which something holds that holds for none behind them.
  private func partition(_ holds: (Entry) -> Bool) -> Int {
    var low = 0
    var high = entries.count
    while low < high {
      let middle = (low + high) / 2
      if holds(entries[middle]) { low = middle + 1 } else { high = middle }
    }
    return low
  }
}

extension KeyRange {
  /// The fewest ranges that have the keys of these, in order.
  static func union(of ranges: [KeyRange]) -> [KeyRange] {
    var union: [KeyRange] = []
    for range in ranges.sorted(by: { compareKeys($0.start, $1.start) < 0 }) where !range.isEmptyRange {
      guard let last = union.indices.last else {
        union.append(range)
        continue
      }
      // Without an end, it has all that follow.
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

  /// Whether there is no key inside.
  var isEmptyRange: Bool {
    guard let end else { return false }
    return compareKeys(start, end) >= 0
  }
}
