// The children of a window in key order, found in the order in which rows are stored: what that costs is the window, not the
// location.
//
// Rows stand in the order of their bytes, keys in another: those that read as integers first, by number, all others by
// UTF-16. Integers are found by what they begin with, and sorted; among the others the two orders differ only where
// characters from U+E000 on meet, which are left to those who read the whole location.

import OrderedStore
import RealtimeModel

extension Tree {
  /// The most children that are looked at beside those of the window.
  private static let mostBeside = 256

  /// The keys of the children in a query's window, in order, where that order is by key; nil where rows do not give
  /// them without looking at many others.
  ///
  /// - Parameter query: ordered by key, or by priority where no child has one.
  func keysInOrder(_ query: QuerySpec, at path: Path) throws -> [Key]? {
    guard let bounds = KeyBounds(query) else { return [] }
    var walk = ChildWalk(view: view, prefix: RowKeys.row(of: path))
    var beside = Tree.mostBeside
    var integers: [Key] = []
    if bounds.mayHoldIntegers {
      for range in ChildWalk.integers {
        var next: [UInt8]? = range.start
        while let from = next, let found = try walk.first(from: from, below: range.end) {
          next = found.end
          beside -= 1
          guard beside >= 0 else { return nil }
          if found.key.integerValue != nil, bounds.contains(found.key) { integers.append(found.key) }
        }
      }
      integers.sort()
    }
    let limit = query.limit?.count ?? .max
    if case .last = query.limit {
      guard let texts = try texts(&walk, bounds, limit, reverse: true, &beside) else { return nil }
      return Array((integers + texts.reversed()).suffix(limit))
    }
    guard integers.count < limit else { return Array(integers.prefix(limit)) }
    guard let texts = try texts(&walk, bounds, limit - integers.count, reverse: false, &beside) else {
      return nil
    }
    return integers + texts
  }

  /// The keys inside bounds that read as no integers, from one end on.
  private func texts(
    _ walk: inout ChildWalk, _ bounds: KeyBounds, _ limit: Int, reverse: Bool, _ beside: inout Int
  ) throws -> [Key]? {
    guard bounds.mayHoldTexts else { return [] }
    guard let range = bounds.textRange else { return nil }
    var found: [Key] = []
    var (start, end) = (range.start, range.end)
    while found.count < limit {
      let next = reverse ? try walk.last(from: start, below: end) : try walk.first(from: start, below: end)
      guard let next else { return found }
      if reverse { end = next.start } else { start = next.end }
      if next.key.integerValue != nil || !bounds.contains(next.key) {
        beside -= 1
        guard beside >= 0 else { return nil }
      } else {
        guard next.isOrdered else { return nil }
        found.append(next.key)
      }
    }
    return found
  }
}

/// The bounds of a window in key order.
private struct KeyBounds {
  private let lower: Key?
  private let upper: Key?
  private let query: QuerySpec

  /// nil if nothing lies inside.
  init?(_ query: QuerySpec) {
    self.query = query
    // All children have the same value in this order, null.
    switch query.startPlace.map({ ($0.value, $0.key) }) {
    case nil, (.null, .minimum)?: lower = nil
    case (.null, let key)?: lower = key
    default: return nil
    }
    switch query.endPlace.map({ ($0.value, $0.key) }) {
    case (.null, let key)? where key != .maximum: upper = key
    default: upper = nil
    }
  }

  func contains(_ key: Key) -> Bool { query.contains(OrderingPlace(value: .null, key: key)) }

  var mayHoldIntegers: Bool { lower.map { $0.integerValue != nil } ?? true }
  var mayHoldTexts: Bool {
    (upper.map { $0.integerValue == nil && $0 != .minimum } ?? true) && lower != .maximum
  }

  /// Where the rows of texts inside the bounds lie, relative to the location; nil where rows stand in another order.
  var textRange: (start: [UInt8], end: [UInt8]?)? {
    var range: (start: [UInt8], end: [UInt8]?) = ([RowKeys.priority + 1], nil)
    if let lower, lower.integerValue == nil {
      guard ChildWalk.isOrdered(lower.text.utf8) else { return nil }
      range.start = Array(lower.text.utf8) + [RowKeys.terminator]
    }
    if let upper {
      guard ChildWalk.isOrdered(upper.text.utf8) else { return nil }
      range.end = Array(upper.text.utf8) + [RowKeys.terminator + 1]
    }
    return range
  }
}

/// Finds the children of a location by their rows, one of each.
private struct ChildWalk {
  struct Child {
    let key: Key
    /// What its rows begin with, and the first key behind them, relative to the location.
    let start: [UInt8]
    let end: [UInt8]
    /// Whether it stands among other texts where they belong.
    var isOrdered: Bool { ChildWalk.isOrdered(start) }
  }

  /// What keys begin with that may read as integers.
  static let integers: [(start: [UInt8], end: [UInt8])] = [
    (Array("-0".utf8), Array("-:".utf8)), (Array("0".utf8), Array(":".utf8)),
  ]

  /// Whether the order of texts by bytes is that of their keys.
  static func isOrdered(_ text: some Sequence<UInt8>) -> Bool { text.allSatisfy { $0 < 0xEE } }

  let view: any ReadView
  /// What the rows of the location begin with.
  let prefix: [UInt8]

  /// The first child whose rows begin at or after a key, given relative to the location.
  mutating func first(from start: [UInt8], below end: [UInt8]?) throws -> Child? {
    try find(start, end, reverse: false)
  }

  /// The last child with rows before a key.
  mutating func last(from start: [UInt8], below end: [UInt8]?) throws -> Child? {
    try find(start, end, reverse: true)
  }

  private func find(_ start: [UInt8], _ end: [UInt8]?, reverse: Bool) throws -> Child? {
    let range = KeyRange(
      start: prefix + start, end: end.map { prefix + $0 } ?? KeyRange.successor(ofPrefix: prefix))
    guard range.end.map({ range.start.lexicographicallyPrecedes($0) }) ?? true else { return nil }
    var child: Child?
    try view.scan(range, reverse: reverse) { row, _, _ in
      let suffix = UnsafeRawBufferPointer(rebasing: row[prefix.count...])
      guard let length = suffix.firstIndex(of: RowKeys.terminator) else { return false }
      let name = Array(suffix[..<length])
      child = Child(
        key: Key(String(decoding: name, as: UTF8.self)), start: name + [RowKeys.terminator],
        end: name + [RowKeys.terminator + 1])
      return false
    }
    return child
  }
}
