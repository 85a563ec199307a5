// Text of the rules language: a sequence of UTF-16 code units, as in Java.
//
// Text that is valid Unicode is a Swift string. A slice may cut a surrogate pair, and an escape may write half of one;
// only then the units are stored as well.

import FirestoreModel

/// Text in rules, measured and indexed in UTF-16 code units.
package struct RuleText: Hashable, Sendable {
  /// The text; an unpaired surrogate is U+FFFD here.
  package let string: String
  /// The code units; nil if `string` has exactly these.
  private let units: [UInt16]?

  /// Text that is valid Unicode.
  package init(_ string: String) {
    self.string = string
    units = nil
  }

  /// Text of code units, which may contain unpaired surrogates.
  package init(units: [UInt16]) {
    string = String(decoding: units, as: UTF16.self)
    self.units = string.utf16.elementsEqual(units) ? nil : units
  }

  /// Whether the text is valid Unicode: no surrogate is unpaired.
  var isValid: Bool { units == nil }

  /// The number of code units.
  package var count: Int { units?.count ?? string.utf16.count }

  /// The bytes of the text in UTF-8, as a measure of the work that it causes.
  package var byteCount: Int { string.utf8.count }

  /// The text of a range of code units. The range must lie within the text.
  package func slice(_ range: Range<Int>) -> RuleText {
    if let units { return RuleText(units: Array(units[range])) }
    let view = string.utf16
    let start = view.index(view.startIndex, offsetBy: range.lowerBound)
    let end = view.index(start, offsetBy: range.count)
    let startsAtScalar = start == view.endIndex || !UTF16.isTrailSurrogate(view[start])
    if startsAtScalar, end == view.endIndex || !UTF16.isTrailSurrogate(view[end]) {
      return RuleText(String(string[start..<end]))
    }
    return RuleText(units: Array(view[start..<end]))
  }

  /// This text followed by another.
  package static func + (left: RuleText, right: RuleText) -> RuleText {
    if left.units == nil, right.units == nil { return RuleText(left.string + right.string) }
    return RuleText(units: Array(left.codeUnits) + Array(right.codeUnits))
  }

  /// The texts one after another.
  package init(joining parts: [RuleText]) {
    if parts.allSatisfy({ $0.units == nil }) {
      self.init(parts.map(\.string).joined())
    } else {
      self.init(units: parts.flatMap(\.codeUnits))
    }
  }

  private var codeUnits: [UInt16] { units ?? Array(string.utf16) }

  /// Whether both texts have the same code units.
  package static func == (left: RuleText, right: RuleText) -> Bool {
    guard left.string.hasSameUTF8(as: right.string) else { return false }
    return (left.units == nil && right.units == nil) || left.units == right.units
  }

  /// Hashes what `==` compares.
  package func hash(into hasher: inout Hasher) {
    let done: Void? = string.utf8.withContiguousStorageIfAvailable {
      hasher.combine(bytes: UnsafeRawBufferPointer($0))
    }
    if done == nil { for byte in string.utf8 { hasher.combine(byte) } }
    hasher.combine(0xFF as UInt8)
  }

  /// Whether this text comes first in the order of UTF-16 code units.
  package static func < (left: RuleText, right: RuleText) -> Bool {
    if left.units == nil, right.units == nil {
      return left.string.utf16.lexicographicallyPrecedes(right.string.utf16)
    }
    return left.codeUnits.lexicographicallyPrecedes(right.codeUnits)
  }
}
