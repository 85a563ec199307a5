// Builds and parses the row keys of a Realtime Database.
//
//   't' + path               a leaf: its value and priority
//   't' + path + 0x01        the priority of a location with children
//   'd' + session + 0x00 'c' the caller of a session with onDisconnect operations
//   'd' + session + 0x00 'w' + path    the value of an onDisconnect operation (0x01 after the path: a
//   priority)
//
//   's' + name               a setting, rulesets, function triggers (see Settings/)
//   'i', 'j'                 indexes, and the builds of indexes (see Indexes/)
//   'p', 'q'                 the locations whose children have priorities (see PriorityUse)
//   'm'                      set by the last commit that cleared rows (see BatchWriter)
//   'g', 'G', 'n', 'x'       subtrees with rows under another prefix (see Generations/GenerationRows)
//
// A path is the UTF-8 of its keys, each followed by 0x00. Keys contain no byte below 0x20. Therefore the rows of a
// location are those with its path as prefix. Its priority row precedes the rows of its children, and the rows of
// each child are contiguous. Example: /shop/tea = 41 is 74 73686f70 00 746561 00 -> 02 ... (see NodeCoding).

import OrderedStore
import RealtimeModel

/// In this module `ChildKey` is a key of the tree. Row keys are plain bytes.
typealias ChildKey = RealtimeModel.ChildKey

/// The layout of row keys.
enum RowKeys {
  static let tree = UInt8(ascii: "t")
  static let session = UInt8(ascii: "d")
  /// The key of the mark row, which the last commit that cleared rows has written (see `BatchWriter`).
  static let mark: [UInt8] = [UInt8(ascii: "m")]
  static let terminator: UInt8 = 0x00
  static let priority: UInt8 = 0x01

  /// The row key of a leaf at a path, or of a priority if the path ends in `.priority`.
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

  /// All rows at and below a location.
  static func range(of path: Path) -> KeyRange { KeyRange(prefix: row(of: path)) }

  /// The range of all onDisconnect rows of all sessions.
  static let sessions = KeyRange(prefix: [session])

  static func prefix(ofSession name: String) -> [UInt8] { [session] + Array(name.utf8) + [terminator] }

  static func caller(ofSession name: String) -> [UInt8] { prefix(ofSession: name) + [UInt8(ascii: "c")] }

  /// The prefix of the rows of a session's onDisconnect values at and below a path. It is also the row key of
  /// the value at the path itself.
  static func disconnect(ofSession name: String, at path: Path) -> [UInt8] {
    var bytes = prefix(ofSession: name) + [UInt8(ascii: "w")]
    append(path.keys[...], to: &bytes)
    return bytes
  }

  /// Parses the bytes of a path. The last key is `.priority` if they end in 0x01.
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
