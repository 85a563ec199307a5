// A set of text units: UTF-16 code units for Realtime Database rules, Unicode code points for Firestore rules.
//
// Invariant: the ranges are sorted and disjoint, and no two of them touch.

/// A set of text units, as sorted ranges.
package struct UnitSet: Sendable, Hashable {
  /// The ranges, ascending; between two of them is at least one unit that is not a member.
  package private(set) var ranges: [ClosedRange<UInt32>]
  /// The members below 64, as a bitmap. Most texts consist of units below 128.
  private var low: UInt64 = 0
  /// The members from 64 to 127, as a bitmap.
  private var high: UInt64 = 0

  /// The set of the units in `ranges`, which may overlap and have any order.
  package init(_ ranges: some Sequence<ClosedRange<UInt32>>) {
    var merged: [ClosedRange<UInt32>] = []
    for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
      if let last = merged.last,
        range.lowerBound <= last.upperBound || range.lowerBound == last.upperBound + 1
      {
        merged[merged.count - 1] = last.lowerBound...max(last.upperBound, range.upperBound)
      } else {
        merged.append(range)
      }
    }
    assert(
      zip(merged, merged.dropFirst()).allSatisfy { $0.upperBound + 1 < $1.lowerBound },
      "invariant: the ranges of a set are sorted and do not touch")
    self.ranges = merged
    for range in merged where range.lowerBound < 128 {
      for unit in range.lowerBound...min(range.upperBound, 127) {
        if unit < 64 { low |= 1 << unit } else { high |= 1 << (unit - 64) }
      }
    }
  }

  /// The set of one unit.
  package init(_ unit: UInt32) { self.init(CollectionOfOne(unit...unit)) }

  /// Whether `unit` is a member.
  package func contains(_ unit: UInt32) -> Bool {
    if unit < 64 { return low >> unit & 1 == 1 }
    if unit < 128 { return high >> (unit - 64) & 1 == 1 }
    var lower = 0
    var upper = ranges.count
    while lower < upper {
      let middle = (lower + upper) / 2
      if ranges[middle].upperBound < unit { lower = middle + 1 } else { upper = middle }
    }
    return lower < ranges.count && ranges[lower].lowerBound <= unit
  }

  /// The units up to `maximum` that are not members.
  package func inverted(upTo maximum: UInt32) -> UnitSet {
    var gaps: [ClosedRange<UInt32>] = []
    var next: UInt32 = 0
    for range in ranges where range.lowerBound <= maximum {
      if range.lowerBound > next { gaps.append(next...range.lowerBound - 1) }
      guard range.upperBound < maximum else { return UnitSet(gaps) }
      next = range.upperBound + 1
    }
    gaps.append(next...maximum)
    return UnitSet(gaps)
  }

  /// The units that are members of at least one of the sets.
  package func union(_ other: UnitSet) -> UnitSet { UnitSet(ranges + other.ranges) }
}
