// The layout of a Realtime Database's key space.
//
//   't' + path               a leaf: its value and priority
//   't' + path + 0x01        the priority of a location with children
//   'd' + session + 0x00 'c' who a session is, while it has registered something for its end
//   'd' + session + 0x00 'w' + path    a value to be set when the session ends (0x01 behind the path: a priority)
//
//   's' + name               a setting, rulesets, function triggers (see Settings/)
//   'i', 'j'                 indexes, and what is to be built of them (see Indexes/)
//   'p', 'q'                 where children have priorities (see PriorityUse)
//   'm'                      left by the last commit that cleared rows (see PassWriter)
//   'g', 'G', 'n', 'x'       subtrees whose rows lie elsewhere (see Generations/GenerationRows)
//
// A path is its keys' UTF-8, each followed by 0x00. Keys hold no byte below 0x20, so a location's rows are exactly those
// that begin with its path, its priority comes before its children, and those of one child are contiguous.
// Example: /shop/tea = 41 is 74 73686f70 00 746561 00 -> 02 ... (see NodeCoding).

import OrderedStore
import RealtimeModel

/// Builds and reads row keys.
enum RowKeys {
  static let tree = UInt8(ascii: "t")
  static let session = UInt8(ascii: "d")
  /// Left by the last commit that cleared rows.
  static let mark: [UInt8] = [UInt8(ascii: "m")]
  static let terminator: UInt8 = 0x00
  static let priority: UInt8 = 0x01

  /// The row of a leaf at a path, or of a priority if the path ends in `.priority`.
  static func row(of path: Path) -> [UInt8] { row(of: path.keys[...]) }

  static func row(of keys: ArraySlice<ChildKey>) -> [UInt8] {
    var bytes: [UInt8] = [tree]
    append(keys, to: &bytes)
    return bytes
  }

  static func append(_ keys: ArraySlice<ChildKey>, to bytes: inout [UInt8]) {
    for key in keys {
      if key.isPriority {
        bytes.append(priority)
      } else {
        bytes.append(contentsOf: key.text.utf8)
        bytes.append(terminator)
      }
    }
  }

  /// Every row of a location and what lies below it.
  static func range(of path: Path) -> KeyRange { KeyRange(prefix: row(of: path)) }

  /// Every row of every session.
  static let sessions = KeyRange(prefix: [session])

  static func prefix(ofSession name: String) -> [UInt8] { [session] + Array(name.utf8) + [terminator] }

  static func caller(ofSession name: String) -> [UInt8] { prefix(ofSession: name) + [UInt8(ascii: "c")] }

  /// The prefix of the values a session registered at and below a path; the row of the one at it.
  static func disconnect(ofSession name: String, at path: Path) -> [UInt8] {
    var bytes = prefix(ofSession: name) + [UInt8(ascii: "w")]
    append(path.keys[...], to: &bytes)
    return bytes
  }

  /// Splits the bytes of a path; the last key is `.priority` if they end in its mark.
  static func keys(in bytes: UnsafeRawBufferPointer) -> [ChildKey] {
    var keys: [ChildKey] = []
    var start = 0
    for i in bytes.indices {
      if bytes[i] == terminator {
        keys.append(
          ChildKey(String(decoding: UnsafeRawBufferPointer(rebasing: bytes[start..<i]), as: UTF8.self)))
        start = i + 1
      } else if bytes[i] == priority {
        keys.append(.priority)
        start = i + 1
      }
    }
    return keys
  }
}
