// Builds the keys of index rows. An indexed location has one row for each child and each indexed order, so that a query
// reads only the rows of its window, the children that it selects.
//
//   row key      'j' + path + 0x02 + order + 0x00 + sort value + child key
//   row value    0x01 if the sort value is truncated, else 0x00; then the child's key as UTF-8
//
// The path is encoded as in the tree (see RowKeys). The order is encoded as its name in the protocol. Sort
// value and child key are encoded so that byte order equals the protocol's order:
//
//   value   0x10 null | 0x20 false | 0x21 true | 0x30 number | 0x40 string | 0x50 object
//   number  the double's bits, inverted if negative, else with the sign set; 2 bytes with an integer's
//   remainder
//   string  UTF-8 in UTF-16 order (see `utf16Order`), 0x00 as 0x00 0xFF; 0x00 0x01, or 0x00 0x02 if truncated
//   key     0x01, the number, the length and the string for an integer; else 0x02 and the string
//
// Example: /notes/n1/due = 5, indexed by due: 6a 6e6f746573 00 02 647565 00 30 c014000000000000 8000 02 6e31
// -> 00 6e31

import OrderedStore
import RealtimeModel

/// The layout of index rows.
enum IndexRows {
  static let tree = UInt8(ascii: "j")
  private static let order: UInt8 = 0x02
  /// Maximum bytes of a string in a row. A query that finds a truncated string cannot use the index, and
  /// reads the children's values instead.
  static let maximumStringBytes = 1_000

  /// The prefix of all rows of a location and its descendants.
  static func prefix(of path: Path) -> [UInt8] {
    var bytes: [UInt8] = [tree]
    RowKeys.append(path.keys[...], to: &bytes)
    return bytes
  }

  /// The prefix of the rows of one order of a location.
  static func prefix(of path: Path, by ordering: Ordering) -> [UInt8] {
    prefix(of: path) + [order] + Array(ordering.wireText.utf8) + [RowKeys.terminator]
  }

  /// The index row of a child: its key without the prefix of the location and the order, and its value.
  static func row(_ sortKey: SortKey) -> (key: [UInt8], value: [UInt8]) {
    var key: [UInt8] = []
    let isTruncated = append(sortKey.value, to: &key)
    append(sortKey.key, to: &key)
    return (key, [isTruncated ? 0x01 : 0x00] + Array(sortKey.key.text.utf8))
  }

  /// The key bytes of a query's bound; nil if the bound would be truncated, so that its position among the
  /// rows is unknown.
  static func bound(_ sortKey: SortKey) -> [UInt8]? {
    var bytes: [UInt8] = []
    if append(sortKey.value, to: &bytes) { return nil }
    append(sortKey.key, to: &bytes)
    return bytes
  }

  /// Appends a value. Returns whether it was truncated.
  private static func append(_ value: OrderingValue, to bytes: inout [UInt8]) -> Bool {
    switch value {
    case .null: bytes.append(0x10)
    case .leaf(.bool(let flag)): bytes.append(flag ? 0x21 : 0x20)
    case .leaf(.int(let number)): append(Double(number), remainder: remainder(number), to: &bytes)
    case .leaf(.double(let number)): append(number, remainder: 0, to: &bytes)
    case .leaf(.string(let string)):
      bytes.append(0x40)
      let isTruncated = string.utf8.count > maximumStringBytes
      for byte in string.utf8.prefix(maximumStringBytes) {
        bytes.append(utf16Order(of: byte))
        if byte == 0x00 { bytes.append(0xFF) }
      }
      bytes += [0x00, isTruncated ? 0x02 : 0x01]
      return isTruncated
    case .leaf(.deferred): bytes.append(0x18)
    case .object: bytes.append(0x50)
    }
    return false
  }

  private static func append(_ number: Double, remainder: Int, to bytes: inout [UInt8]) {
    bytes.append(0x30)
    let bits = number.bitPattern
    append(bits >> 63 == 1 ? ~bits : bits | 1 << 63, to: &bytes)
    let rest = UInt16(truncatingIfNeeded: remainder &+ 0x8000)
    bytes += [UInt8(rest >> 8), UInt8(rest & 0xFF)]
  }

  /// The difference between an integer and the nearest double: between -512 and 512.
  private static func remainder(_ number: Int64) -> Int {
    let nearest = Double(number)
    if let same = Int64(exactly: nearest) { return Int(number &- same) }
    return Int(number &- Int64.max) - 1
  }

  private static func append(_ key: ChildKey, to bytes: inout [UInt8]) {
    if key == .minimum { return }
    if key == .maximum { return bytes.append(0xFF) }
    if let number = key.integerValue {
      let count = UInt16(clamping: key.text.utf8.count)
      let bits = UInt32(bitPattern: number) ^ 1 << 31
      bytes.append(0x01)
      for shift in [24, 16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(shift))) }
      bytes += [UInt8(count >> 8), UInt8(count & 0xFF)] + Array(key.text.utf8)
    } else {
      bytes.append(0x02)
      for byte in key.text.utf8 { bytes.append(utf16Order(of: byte)) }
    }
  }

  /// Maps the first byte of a character so that bytes sort in UTF-16 order. In this order, supplementary characters
  /// (0xF0...) precede the characters from U+E000 to U+FFFF (0xEE, 0xEF).
  private static func utf16Order(of byte: UInt8) -> UInt8 {
    switch byte {
    case 0xEE, 0xEF: byte + 5
    case 0xF0...0xF4: byte - 2
    default: byte
    }
  }

  private static func append(_ bits: UInt64, to bytes: inout [UInt8]) {
    for shift in stride(from: 56, through: 0, by: -8) {
      bytes.append(UInt8(truncatingIfNeeded: bits >> UInt64(shift)))
    }
  }
}
