// The rows of indexes: one for each child of an indexed location and each order that is indexed there, so that a query
// visits the rows of its window and no others.
//
//   'j' + path + 0x02 + order + 0x00 + value + key     holds 0x01 if the value was cut, else 0x00, and the child's key
//
// The path is encoded as in the tree. The order is its wire text. Value and key sort as the protocol orders them:
//
//   value   0x10 null | 0x20 false | 0x21 true | 0x30 number | 0x40 string | 0x50 object
//   number  the double's bits, inverted if negative, else with the sign set; then what an integer has beyond it, 2 bytes
//   string  UTF-8 in the order of UTF-16 (see `text`), 0x00 as 0x00 0xFF; then 0x00 0x01, or 0x00 0x02 if it was cut
//   key     0x01, the number, the length, the text if it is an integer; else 0x02 and the text
//
// Example: /notes/n1/due = 5, indexed by due: 6a 6e6f746573 00 02 647565 00 30 c014000000000000 8000 02 6e31 -> 00 6e31

import OrderedStore
import RealtimeModel

/// Builds the keys of index rows.
enum IndexRows {
  static let tree = UInt8(ascii: "j")
  private static let order: UInt8 = 0x02
  /// Of longer strings only so many bytes are kept: queries that meet one look at the values themselves.
  static let mostTextBytes = 1_000

  /// What the rows of a location and everything below it begin with.
  static func prefix(of path: Path) -> [UInt8] {
    var bytes: [UInt8] = [tree]
    RowKeys.append(path.keys[...], to: &bytes)
    return bytes
  }

  /// What the rows of one order of a location begin with.
  static func prefix(of path: Path, by ordering: Ordering) -> [UInt8] {
    prefix(of: path) + [order] + Array(ordering.wireText.utf8) + [RowKeys.terminator]
  }

  /// The row of a child behind the prefix of its location and order, and what it holds.
  static func row(_ place: SortKey) -> (key: [UInt8], value: [UInt8]) {
    var key: [UInt8] = []
    let isCut = append(place.value, to: &key)
    append(place.key, to: &key)
    return (key, [isCut ? 0x01 : 0x00] + Array(place.key.text.utf8))
  }

  /// The bytes at which a bound stands; nil for one that rows do not tell apart from others.
  static func bound(_ place: SortKey) -> [UInt8]? {
    var bytes: [UInt8] = []
    if append(place.value, to: &bytes) { return nil }
    append(place.key, to: &bytes)
    return bytes
  }

  /// Appends a value; whether it was cut.
  private static func append(_ value: OrderingValue, to bytes: inout [UInt8]) -> Bool {
    switch value {
    case .null: bytes.append(0x10)
    case .leaf(.bool(let flag)): bytes.append(flag ? 0x21 : 0x20)
    case .leaf(.int(let number)): append(Double(number), beyond: beyond(number), to: &bytes)
    case .leaf(.double(let number)): append(number, beyond: 0, to: &bytes)
    case .leaf(.string(let string)):
      bytes.append(0x40)
      let isCut = string.utf8.count > mostTextBytes
      for byte in string.utf8.prefix(mostTextBytes) {
        bytes.append(text(byte))
        if byte == 0x00 { bytes.append(0xFF) }
      }
      bytes += [0x00, isCut ? 0x02 : 0x01]
      return isCut
    case .leaf(.deferred): bytes.append(0x18)
    case .object: bytes.append(0x50)
    }
    return false
  }

  private static func append(_ number: Double, beyond: Int, to bytes: inout [UInt8]) {
    bytes.append(0x30)
    let bits = number.bitPattern
    append(bits >> 63 == 1 ? ~bits : bits | 1 << 63, to: &bytes)
    let rest = UInt16(truncatingIfNeeded: beyond &+ 0x8000)
    bytes += [UInt8(rest >> 8), UInt8(rest & 0xFF)]
  }

  /// What an integer has beyond the double nearest to it: at most 512 either way.
  private static func beyond(_ number: Int64) -> Int {
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
      for byte in key.text.utf8 { bytes.append(text(byte)) }
    }
  }

  /// Lead bytes in the order of UTF-16: those of supplementary characters (0xF0...) before those of U+E000 and above.
  private static func text(_ byte: UInt8) -> UInt8 {
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
