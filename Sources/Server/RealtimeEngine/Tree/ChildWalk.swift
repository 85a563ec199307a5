// The children of a location by their rows: in the order of bytes, in that of texts, and as numbers one after the other.

import OrderedStore
import RealtimeModel

/// Finds the children of a location by their rows, one of each.
struct ChildWalk {
  struct Child {
    let key: ChildKey
    /// What its rows begin with, and the first key behind them, relative to the location.
    let start: [UInt8]
    let end: [UInt8]
    /// The bytes of the key.
    var name: ArraySlice<UInt8> { start.dropLast() }
  }

  /// What keys begin with that may read as integers.
  static let integers: [(start: [UInt8], end: [UInt8])] = [
    (Array("-0".utf8), Array("-:".utf8)), (Array("0".utf8), Array(":".utf8)),
  ]
  /// The same without those that are written as numbers are: with zeros before them, or below zero.
  static let unusualIntegers: [(start: [UInt8], end: [UInt8])] = [
    (Array("-0".utf8), Array("-:".utf8)), (Array("00".utf8), Array("0:".utf8)),
  ]

  let view: any ReadView
  /// What the rows of the location begin with.
  let prefix: [UInt8]

  /// The first child whose rows begin at or after a key, given relative to the location.
  func first(from start: [UInt8], below end: [UInt8]?) throws -> Child? {
    try find(start, end, reverse: false)
  }

  /// The last child with rows before a key.
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

/// Walks over children in the order of UTF-16, which differs from that of their bytes where a character from U+E000 on
/// (0xEE, 0xEF) meets one outside the basic plane (0xF0...0xF4), which comes before it. These bytes begin a character
/// wherever they stand.
///
/// Invariant: `ranges` are what is left, the next on top; within a range all keys are the same up to `depth`, or none of
/// those bytes stands before it.
struct TextWalk {
  private struct Range {
    var start: [UInt8]
    var end: [UInt8]?
    let depth: Int
  }

  private static let firstAbove: UInt8 = 0xEE
  private static let firstOutside: UInt8 = 0xF0
  private static let behindAll: UInt8 = 0xF5

  private let walk: ChildWalk
  private let reverse: Bool
  private var ranges: [Range] = []

  /// Walks from a text on, itself included; nil for all.
  init(_ walk: ChildWalk, from bound: [UInt8]?, reverse: Bool) {
    self.walk = walk
    self.reverse = reverse
    var whole = Range(start: [RowKeys.priority + 1], end: nil, depth: 0)
    guard let bound else {
      ranges = [whole]
      return
    }
    // The bound cuts the ranges in which it lies; of each what comes behind it is left, the innermost is next.
    while let position = TextWalk.position(in: bound[...], whole.depth) {
      let (parts, index) = split(whole, Array(bound[..<position]), bound[position])
      ranges += reverse ? Array(parts[..<index]) : parts[(index + 1)...].reversed()
      whole = parts[index]
    }
    if reverse {
      whole.end = bound + [RowKeys.terminator + 1]
    } else {
      whole.start = bound + [RowKeys.terminator]
    }
    ranges.append(whole)
  }

  /// Where the first of those bytes stands.
  private static func position(in name: ArraySlice<UInt8>, _ depth: Int) -> Int? {
    name.dropFirst(depth).firstIndex { $0 >= firstAbove }
  }

  /// A range around such a byte: what comes before it, outside, above, and behind, in this order; and which of them
  /// a byte is in.
  private func split(_ range: Range, _ name: [UInt8], _ byte: UInt8) -> (parts: [Range], index: Int) {
    let depth = name.count + 1
    let parts = [
      Range(start: range.start, end: name + [TextWalk.firstAbove], depth: range.depth),
      Range(start: name + [TextWalk.firstOutside], end: name + [TextWalk.behindAll], depth: depth),
      Range(start: name + [TextWalk.firstAbove], end: name + [TextWalk.firstOutside], depth: depth),
      Range(start: name + [TextWalk.behindAll], end: range.end, depth: range.depth),
    ]
    return (parts, byte >= TextWalk.firstOutside ? 1 : 2)
  }

  /// The next child; nil behind the last.
  mutating func next() throws -> ChildWalk.Child? {
    while let range = ranges.popLast() {
      let found =
        reverse
        ? try walk.last(from: range.start, below: range.end)
        : try walk.first(from: range.start, below: range.end)
      guard let child = found else { continue }
      guard let position = TextWalk.position(in: child.name, range.depth) else {
        var rest = range
        if reverse { rest.end = child.start } else { rest.start = child.end }
        ranges.append(rest)
        return child
      }
      let name = Array(child.name[..<position])
      let parts = split(range, name, child.name[position]).parts
      // There is nothing before what was found first, or behind what was found last. The range may begin, or end, among them.
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

/// Walks over the children whose keys are numbers from zero on, written as numbers are, in their order.
///
/// Rows hold numbers of different lengths among each other. One length is looked through after the other; what is found
/// there of another length, or is no number, says how far to go on.
struct NumberWalk {
  private let walk: ChildWalk
  private var number: Int64

  init(_ walk: ChildWalk, from lower: Int32?) {
    self.walk = walk
    number = Int64(max(0, lower ?? 0))
  }

  /// The next number; nil behind the last, or with `beside` below zero after many looks for nothing.
  mutating func next(_ beside: inout Int) throws -> ChildKey? {
    while number <= Int64(Int32.max) {
      let text = Array(String(number).utf8)
      let lengthEnd = text.count < 10 ? NumberWalk.power(text.count) : Int64(Int32.max) + 1
      guard let child = try walk.first(from: text, below: [UInt8(ascii: ":")]) else {
        number = lengthEnd
        continue
      }
      if child.name.elementsEqual(text) {
        number += 1
        return child.key
      }
      beside -= 1
      guard beside >= 0 else { return nil }
      number = min(lengthEnd, NumberWalk.candidate(behind: child.name, length: text.count))
    }
    return nil
  }

  /// The least number of so many digits whose row may be that of a key or stand behind it.
  private static func candidate(behind name: ArraySlice<UInt8>, length: Int) -> Int64 {
    let digits = name.prefix { (48...57).contains($0) }.prefix(length)
    let value = digits.reduce(Int64(0)) { $0 * 10 + Int64($1 - 48) }
    let scale = power(length - digits.count)
    if digits.count == length { return name.count == length ? value : value + 1 }
    // What follows the digits decides whether those that go on with a digit come before it or behind it.
    if digits.count < name.count, name[name.startIndex + digits.count] > 57 { return (value + 1) * scale }
    return value * scale
  }

  private static func power(_ exponent: Int) -> Int64 { (0..<exponent).reduce(1) { power, _ in power * 10 } }
}
