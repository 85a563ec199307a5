// Finds the children of a location by scanning its rows, and iterates over them in key order.
//
// Rows are sorted by bytes. Firebase sorts integer keys first, by value, and all other keys by UTF-16 code
// units. Two iterators, one for integer keys and one for other keys, find the children in Firebase's order
// with a few scans of rows.

import OrderedStore
import RealtimeModel

/// Finds the next child of a location in row order. It reads one row of each child.
struct ChildScanner {
  struct Child {
    let key: ChildKey
    /// The prefix of the child's rows, and the first possible key after them (`end`). Both are relative to
    /// the location.
    let start: [UInt8]
    let end: [UInt8]
    /// The key's UTF-8 bytes.
    var name: ArraySlice<UInt8> { start.dropLast() }
  }

  /// The ranges of row keys in which all integer keys lie. Other keys may lie there too.
  static let integers: [(start: [UInt8], end: [UInt8])] = [
    (Array("-0".utf8), Array("-:".utf8)), (Array("0".utf8), Array(":".utf8)),
  ]
  /// The ranges of row keys in which the non-canonical integers lie: negative ones, and those with leading
  /// zeros.
  static let nonCanonicalIntegers: [(start: [UInt8], end: [UInt8])] = [
    (Array("-0".utf8), Array("-:".utf8)), (Array("00".utf8), Array("0:".utf8)),
  ]

  let view: any ReadView
  /// The prefix of the location's rows.
  let prefix: [UInt8]

  /// The first child with a row at or after `start`. Both bounds are relative to the location.
  func first(from start: [UInt8], below end: [UInt8]?) throws -> Child? {
    try find(start, end, reverse: false)
  }

  /// The last child with a row before `end` and at or after `start`.
  func last(from start: [UInt8], below end: [UInt8]?) throws -> Child? {
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
        key: ChildKey(String(decoding: name, as: UTF8.self)), start: name + [RowKeys.terminator],
        end: name + [RowKeys.terminator + 1])
      return false
    }
    return child
  }
}

/// Iterates over children in UTF-16 order.
///
/// UTF-8 byte order differs from UTF-16 order in one case. In UTF-16, characters from U+E000 to U+FFFF (first
/// byte 0xEE or 0xEF) sort after the supplementary planes (first byte 0xF0...0xF4). A byte from 0xEE on
/// always begins a character, so the iterator splits ranges at such bytes. Example: in byte order "\u{FFFD}"
/// comes before "\u{1F600}", in UTF-16 order after it.
///
/// Invariant: `ranges` contains the remaining ranges, the next one last. Splits at earlier bytes than `depth`
/// have been made, so only bytes from `depth` on can still require a split.
struct UTF16KeyIterator {
  private struct Range {
    var start: [UInt8]
    var end: [UInt8]?
    let depth: Int
  }

  private static let firstHighBMP: UInt8 = 0xEE
  private static let firstSupplementary: UInt8 = 0xF0
  private static let afterAll: UInt8 = 0xF5

  private let scanner: ChildScanner
  private let reverse: Bool
  private var ranges: [Range] = []

  /// Creates an iterator that starts at a key, inclusive, or at the first child if `bound` is nil.
  init(_ scanner: ChildScanner, from bound: [UInt8]?, reverse: Bool) {
    self.scanner = scanner
    self.reverse = reverse
    var current = Range(start: [RowKeys.priority + 1], end: nil, depth: 0)
    guard let bound else {
      ranges = [current]
      return
    }
    // Splits each range that contains the bound, and keeps the parts that the iterator visits after the
    // bound. The innermost range is visited first.
    while let position = UTF16KeyIterator.position(in: bound[...], current.depth) {
      let (parts, index) = split(current, Array(bound[..<position]), bound[position])
      ranges += reverse ? Array(parts[..<index]) : parts[(index + 1)...].reversed()
      current = parts[index]
    }
    if reverse {
      current.end = bound + [RowKeys.terminator + 1]
    } else {
      current.start = bound + [RowKeys.terminator]
    }
    ranges.append(current)
  }

  /// The position of the first byte from 0xEE on.
  private static func position(in name: ArraySlice<UInt8>, _ depth: Int) -> Int? {
    name.dropFirst(depth).firstIndex { $0 >= firstHighBMP }
  }

  /// Splits a range by the byte that follows `name`. The parts are in UTF-16 order: smaller keys, the
  /// supplementary planes, U+E000 to U+FFFF, larger keys. `index` is the part of keys that continue with
  /// `byte`.
  private func split(_ range: Range, _ name: [UInt8], _ byte: UInt8) -> (parts: [Range], index: Int) {
    let depth = name.count + 1
    let parts = [
      Range(start: range.start, end: name + [UTF16KeyIterator.firstHighBMP], depth: range.depth),
      Range(
        start: name + [UTF16KeyIterator.firstSupplementary], end: name + [UTF16KeyIterator.afterAll],
        depth: depth),
      Range(
        start: name + [UTF16KeyIterator.firstHighBMP], end: name + [UTF16KeyIterator.firstSupplementary],
        depth: depth),
      Range(start: name + [UTF16KeyIterator.afterAll], end: range.end, depth: range.depth),
    ]
    return (parts, byte >= UTF16KeyIterator.firstSupplementary ? 1 : 2)
  }

  /// The next child; nil after the last.
  mutating func next() throws -> ChildScanner.Child? {
    while let range = ranges.popLast() {
      let found =
        reverse
        ? try scanner.last(from: range.start, below: range.end)
        : try scanner.first(from: range.start, below: range.end)
      guard let child = found else { continue }
      guard let position = UTF16KeyIterator.position(in: child.name, range.depth) else {
        var rest = range
        if reverse { rest.end = child.start } else { rest.start = child.end }
        ranges.append(rest)
        return child
      }
      let name = Array(child.name[..<position])
      let parts = split(range, name, child.name[position]).parts
      // The scan found no key in the first part (in reverse: in the last part), so it is dropped. The other
      // parts are limited to the original range.
      for part in reverse ? Array(parts.dropLast()) : parts.dropFirst().reversed() {
        ranges.append(limited(part, to: range))
      }
    }
    return nil
  }

  private func limited(_ part: Range, to range: Range) -> Range {
    var part = part
    if part.start.lexicographicallyPrecedes(range.start) { part.start = range.start }
    if let end = range.end, part.end.map({ end.lexicographicallyPrecedes($0) }) ?? true { part.end = end }
    return part
  }
}

/// Iterates over the children whose keys are canonical integers of at least zero, in the order of their
/// values.
///
/// In row order integers of different lengths are mixed: "10" comes before "9". The iterator therefore
/// searches for one number of digits after the other. If a scan finds a key of another length, that key
/// determines the next candidate.
struct IntegerKeyIterator {
  private let scanner: ChildScanner
  private var number: Int64

  init(_ scanner: ChildScanner, from lower: Int32?) {
    self.scanner = scanner
    number = Int64(max(0, lower ?? 0))
  }

  /// The next integer key; nil after the last, or when `missBudget` is exhausted. `missBudget` decreases with
  /// each other key found, and is negative when exhausted.
  mutating func next(missBudget: inout Int) throws -> ChildKey? {
    while number <= Int64(Int32.max) {
      let text = Array(String(number).utf8)
      let lengthEnd = text.count < 10 ? IntegerKeyIterator.power(text.count) : Int64(Int32.max) + 1
      guard let child = try scanner.first(from: text, below: [UInt8(ascii: ":")]) else {
        number = lengthEnd
        continue
      }
      if child.name.elementsEqual(text) {
        number += 1
        return child.key
      }
      missBudget -= 1
      guard missBudget >= 0 else { return nil }
      number = min(lengthEnd, IntegerKeyIterator.candidate(after: child.name, length: text.count))
    }
    return nil
  }

  /// The smallest number with `length` digits whose row key is `name` or sorts after it.
  private static func candidate(after name: ArraySlice<UInt8>, length: Int) -> Int64 {
    let digits = name.prefix { (48...57).contains($0) }.prefix(length)
    let value = digits.reduce(Int64(0)) { $0 * 10 + Int64($1 - 48) }
    let scale = power(length - digits.count)
    if digits.count == length { return name.count == length ? value : value + 1 }
    // The name continues with a byte that is not a digit. If that byte sorts after the digits, all numbers
    // that begin with the same digits precede the name.
    if digits.count < name.count, name[name.startIndex + digits.count] > 57 { return (value + 1) * scale }
    return value * scale
  }

  private static func power(_ exponent: Int) -> Int64 { (0..<exponent).reduce(1) { power, _ in power * 10 } }
}
