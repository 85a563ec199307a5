// Reads the window of a query in key order, which is the children that it selects, from the rows of a location. The
// cost depends on the size of the window, not of the location.
//
// Rows are sorted by bytes. In key order integers come first, by value, and then all other keys in UTF-16
// order (see UTF16KeyIterator). Canonical integers are found one after the other from the lower bound on (see
// IntegerKeyIterator). Negative integers and those with leading zeros are rare: they are found by prefix and
// sorted. Backwards, integers cannot be found one after the other, because larger integers may have rows
// anywhere among the others. A query for the last children that needs integer keys therefore reads all of
// them within its bounds.

import OrderedStore
import RealtimeModel

extension Tree {
  /// The maximum number of children outside the window that one query may read.
  private static let maximumMisses = 256

  /// The keys of a query's window in key order; nil if finding them would read more than `maximumMisses`
  /// other children.
  ///
  /// - Parameter query: a query ordered by key, or by priority if no child has a priority.
  func keysInOrder(_ query: QuerySpec, at path: Path) throws -> [ChildKey]? {
    guard let bounds = KeyBounds(query) else { return [] }
    let scanner = ChildScanner(view: view, prefix: RowKeys.row(of: path))
    var missBudget = Tree.maximumMisses
    let limit = query.limit?.count ?? .max
    if case .last = query.limit {
      guard let strings = try strings(scanner, bounds, limit, reverse: true, &missBudget) else { return nil }
      guard strings.count < limit else { return strings.reversed() }
      guard let integers = try allIntegers(scanner, bounds, &missBudget) else { return nil }
      return Array((integers + strings.reversed()).suffix(limit))
    }
    guard let integers = try firstIntegers(scanner, bounds, limit, &missBudget) else { return nil }
    guard integers.count < limit else { return integers }
    guard let strings = try strings(scanner, bounds, limit - integers.count, reverse: false, &missBudget)
    else {
      return nil
    }
    return integers + strings
  }

  /// The keys within the bounds that are not integers, from the lower bound up, or in reverse from the upper
  /// bound down.
  private func strings(
    _ scanner: ChildScanner, _ bounds: KeyBounds, _ limit: Int, reverse: Bool, _ missBudget: inout Int
  ) throws -> [ChildKey]? {
    guard bounds.mayContainStrings else { return [] }
    var found: [ChildKey] = []
    var strings = UTF16KeyIterator(
      scanner, from: reverse ? bounds.upperString : bounds.lowerString, reverse: reverse)
    while found.count < limit, let next = try strings.next() {
      if bounds.contains(next.key), next.key.integerValue == nil {
        found.append(next.key)
      } else {
        if next.key.integerValue == nil, bounds.isPastEnd(next.key, reverse: reverse) { break }
        missBudget -= 1
        guard missBudget >= 0 else { return nil }
      }
    }
    return found
  }

  // MARK: Integers

  /// All integer keys within the bounds, in order.
  private func allIntegers(_ scanner: ChildScanner, _ bounds: KeyBounds, _ missBudget: inout Int) throws
    -> [ChildKey]?
  {
    guard bounds.mayContainIntegers else { return [] }
    var found: [ChildKey] = []
    for range in ChildScanner.integers {
      guard try integers(scanner, range, bounds, &found, &missBudget) else { return nil }
    }
    return found.sorted()
  }

  /// The first integer keys within the bounds, in order.
  private func firstIntegers(
    _ scanner: ChildScanner, _ bounds: KeyBounds, _ limit: Int, _ missBudget: inout Int
  ) throws -> [ChildKey]? {
    guard bounds.mayContainIntegers else { return [] }
    var found: [ChildKey] = []
    for range in ChildScanner.nonCanonicalIntegers {
      guard try integers(scanner, range, bounds, &found, &missBudget) else { return nil }
    }
    // Negative integers come first. If they fill the window, no other key is needed.
    found.sort()
    if found.count(where: { ($0.integerValue ?? 0) < 0 }) >= limit { return Array(found.prefix(limit)) }
    var numbers = IntegerKeyIterator(scanner, from: bounds.lowerInteger)
    var canonicalCount = 0
    while canonicalCount < limit {
      guard let key = try numbers.next(missBudget: &missBudget) else { break }
      if !bounds.contains(key) {
        if bounds.isPastEnd(key, reverse: false) { break }
        continue
      }
      canonicalCount += 1
      found.append(key)
    }
    guard missBudget >= 0 else { return nil }
    return Array(found.sorted().prefix(limit))
  }

  /// Adds the integer keys within the bounds whose rows are in a range. Returns false if reading the range
  /// exhausts `missBudget`.
  private func integers(
    _ scanner: ChildScanner, _ range: (start: [UInt8], end: [UInt8]), _ bounds: KeyBounds,
    _ found: inout [ChildKey],
    _ missBudget: inout Int
  ) throws -> Bool {
    var next: [UInt8]? = range.start
    while let from = next, let child = try scanner.first(from: from, below: range.end) {
      next = child.end
      missBudget -= 1
      guard missBudget >= 0 else { return false }
      if child.key.integerValue != nil, bounds.contains(child.key) { found.append(child.key) }
    }
    return true
  }
}

/// The bounds of a query in key order.
private struct KeyBounds {
  private let lower: ChildKey?
  private let upper: ChildKey?
  private let query: QuerySpec

  /// Returns nil if the bounds are empty.
  init?(_ query: QuerySpec) {
    self.query = query
    // The query is ordered by key, or by priority without priorities. So the sort value of every child is
    // null, and bounds compare keys only.
    switch query.startSortKey.map({ ($0.value, $0.key) }) {
    case nil, (.null, .minimum)?: lower = nil
    case (.null, let key)?: lower = key
    default: return nil
    }
    switch query.endSortKey.map({ ($0.value, $0.key) }) {
    case (.null, let key)? where key != .maximum: upper = key
    default: upper = nil
    }
  }

  func contains(_ key: ChildKey) -> Bool { query.contains(SortKey(value: .null, key: key)) }

  /// Whether a key is at or past the bound at which the iteration ends.
  func isPastEnd(_ key: ChildKey, reverse: Bool) -> Bool {
    reverse ? lower.map { key <= $0 } ?? false : upper.map { $0 <= key } ?? false
  }

  var mayContainIntegers: Bool { lower.map { $0.integerValue != nil } ?? true }
  var mayContainStrings: Bool {
    (upper.map { $0.integerValue == nil && $0 != .minimum } ?? true) && lower != .maximum
  }

  /// The lower bound as an integer; nil if it is not an integer.
  var lowerInteger: Int32? { lower?.integerValue }
  /// The bounds as UTF-8; nil if they are integers.
  var lowerString: [UInt8]? { lower.flatMap { $0.integerValue == nil ? Array($0.text.utf8) : nil } }
  var upperString: [UInt8]? { upper.flatMap { $0.integerValue == nil ? Array($0.text.utf8) : nil } }
}
