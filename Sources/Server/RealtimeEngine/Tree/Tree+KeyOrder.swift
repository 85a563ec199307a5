// The children of a window in key order, found in the order in which rows are stored: what that costs is the window, not the
// location.
//
// Rows stand in the order of their bytes, keys in another: those that read as integers first, by number, all others by
// UTF-16 (see TextWalk). Numbers are looked for one after the other from the lower bound on (see NumberWalk); the few that
// are written in another way, and negative ones, are found by what they begin with, and sorted. From the upper end on
// numbers cannot be looked for: a longer one may stand anywhere.

import OrderedStore
import RealtimeModel

extension Tree {
  /// The most children that are looked at beside those of the window.
  private static let mostBeside = 256

  /// The keys of the children in a query's window, in order, where that order is by key; nil where rows do not give
  /// them without looking at many others.
  ///
  /// - Parameter query: ordered by key, or by priority where no child has one.
  func keysInOrder(_ query: QuerySpec, at path: Path) throws -> [ChildKey]? {
    guard let bounds = KeyBounds(query) else { return [] }
    let walk = ChildWalk(view: view, prefix: RowKeys.row(of: path))
    var beside = Tree.mostBeside
    let limit = query.limit?.count ?? .max
    if case .last = query.limit {
      guard let texts = try texts(walk, bounds, limit, reverse: true, &beside) else { return nil }
      guard texts.count < limit else { return texts.reversed() }
      guard let integers = try allIntegers(walk, bounds, &beside) else { return nil }
      return Array((integers + texts.reversed()).suffix(limit))
    }
    guard let integers = try firstIntegers(walk, bounds, limit, &beside) else { return nil }
    guard integers.count < limit else { return integers }
    guard let texts = try texts(walk, bounds, limit - integers.count, reverse: false, &beside) else {
      return nil
    }
    return integers + texts
  }

  /// The keys inside bounds that read as no integers, from one end on.
  private func texts(
    _ walk: ChildWalk, _ bounds: KeyBounds, _ limit: Int, reverse: Bool, _ beside: inout Int
  ) throws -> [ChildKey]? {
    guard bounds.mayHoldTexts else { return [] }
    var found: [ChildKey] = []
    var texts = TextWalk(walk, from: reverse ? bounds.upperText : bounds.lowerText, reverse: reverse)
    while found.count < limit, let next = try texts.next() {
      if bounds.contains(next.key), next.key.integerValue == nil {
        found.append(next.key)
      } else {
        if next.key.integerValue == nil, bounds.isBehind(next.key, reverse: reverse) { break }
        beside -= 1
        guard beside >= 0 else { return nil }
      }
    }
    return found
  }

  // MARK: Integers

  /// All keys inside bounds that read as integers, in order.
  private func allIntegers(_ walk: ChildWalk, _ bounds: KeyBounds, _ beside: inout Int) throws -> [ChildKey]?
  {
    guard bounds.mayHoldIntegers else { return [] }
    var found: [ChildKey] = []
    for range in ChildWalk.integers {
      guard try integers(walk, range, bounds, &found, &beside) else { return nil }
    }
    return found.sorted()
  }

  /// The first keys inside bounds that read as integers, in order.
  private func firstIntegers(
    _ walk: ChildWalk, _ bounds: KeyBounds, _ limit: Int, _ beside: inout Int
  ) throws -> [ChildKey]? {
    guard bounds.mayHoldIntegers else { return [] }
    var found: [ChildKey] = []
    for range in ChildWalk.unusualIntegers {
      guard try integers(walk, range, bounds, &found, &beside) else { return nil }
    }
    // Negative ones come first: with enough of them nothing else is looked for.
    found.sort()
    if found.count(where: { ($0.integerValue ?? 0) < 0 }) >= limit { return Array(found.prefix(limit)) }
    var numbers = NumberWalk(walk, from: bounds.lowerInteger)
    var usual = 0
    while usual < limit {
      guard let key = try numbers.next(&beside) else { break }
      if !bounds.contains(key) {
        if bounds.isBehind(key, reverse: false) { break }
        continue
      }
      usual += 1
      found.append(key)
    }
    guard beside >= 0 else { return nil }
    return Array(found.sorted().prefix(limit))
  }

  /// Adds the integers inside bounds whose rows stand in a range; false if there is too much beside them.
  private func integers(
    _ walk: ChildWalk, _ range: (start: [UInt8], end: [UInt8]), _ bounds: KeyBounds,
    _ found: inout [ChildKey],
    _ beside: inout Int
  ) throws -> Bool {
    var next: [UInt8]? = range.start
    while let from = next, let child = try walk.first(from: from, below: range.end) {
      next = child.end
      beside -= 1
      guard beside >= 0 else { return false }
      if child.key.integerValue != nil, bounds.contains(child.key) { found.append(child.key) }
    }
    return true
  }
}

/// The bounds of a window in key order.
private struct KeyBounds {
  private let lower: ChildKey?
  private let upper: ChildKey?
  private let query: QuerySpec

  /// nil if nothing lies inside.
  init?(_ query: QuerySpec) {
    self.query = query
    // All children have the same value in this order, null.
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

  /// Whether a key lies outside, behind the far end.
  func isBehind(_ key: ChildKey, reverse: Bool) -> Bool {
    reverse ? lower.map { key <= $0 } ?? false : upper.map { $0 <= key } ?? false
  }

  var mayHoldIntegers: Bool { lower.map { $0.integerValue != nil } ?? true }
  var mayHoldTexts: Bool {
    (upper.map { $0.integerValue == nil && $0 != .minimum } ?? true) && lower != .maximum
  }

  /// The number of the lower bound.
  var lowerInteger: Int32? { lower?.integerValue }
  /// The bounds as far as they are texts.
  var lowerText: [UInt8]? { lower.flatMap { $0.integerValue == nil ? Array($0.text.utf8) : nil } }
  var upperText: [UInt8]? { upper.flatMap { $0.integerValue == nil ? Array($0.text.utf8) : nil } }
}
